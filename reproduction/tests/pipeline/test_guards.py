"""Numbers of guards in a reproduction are those of guards on its predictions."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from credalens import wrap
from credalens.guard import Guard
from credalens_paper.measures.guarding import RATE, Halves
from credalens_paper.training.spec import TrainSpec
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run
from reproduction.tests.tiny_preset import TINY


def test_they_agree_with_guards_fitted_on_the_stored_predictions(tmp_path):
    run(tmp_path, "GuardPromises", engine=FakeEngine(), preset=TINY.only(["mlp"]))
    evaluations = list((tmp_path / "smoke" / "evaluations").glob("*.json"))
    assert evaluations
    for path in evaluations:
        stored = json.loads(path.read_text())
        known, unknown = (_prediction(tmp_path / "smoke", stored, name) for name in ("requests", "babble"))
        halves = Halves(zlib.crc32(path.stem.encode()), TINY.repeats)
        for score, side in {"total": "credal", "mean_epistemic": "classical"}.items():
            judged = [
                (Guard.fit(known[learnt], score=score, false_alarm_rate=RATE), known[~learnt])
                for learnt, _ in halves.fitted(known.score(score))
            ]
            expected = {
                "requests": ("false_alarms", [1 - guard.decide(rest).accepted.mean() for guard, rest in judged]),
                "babble": ("turned_away", [1 - guard.decide(unknown).accepted.mean() for guard, _ in judged]),
            }
            for name, (metric, shares) in expected.items():
                number = stored["sets"][name]["numbers"][f"{side}.{score}.{metric}"]
                assert number == pytest.approx(100 * np.mean(shares))


def _prediction(store, evaluation, name):
    specs = [TrainSpec(**spec) for spec in evaluation["ensemble"]["specs"]]
    return wrap(np.concatenate([np.load(store / "predictions" / spec.key / f"{name}.npy") for spec in specs]))
