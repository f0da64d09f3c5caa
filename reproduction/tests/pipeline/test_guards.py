"""Numbers of guards in a reproduction are those of guards on its predictions."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from credalens import wrap
from credalens.guard import ConformalSets, Guard
from credalens_paper.measures.guarding import RATE, Halves
from credalens_paper.training.spec import TrainSpec
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run
from reproduction.tests.tiny_preset import TINY


@pytest.mark.filterwarnings("ignore:.*the highest .* there can be")  # the numbers of such guards count too
def test_they_agree_with_guards_and_sets_fitted_on_the_stored_predictions(tmp_path):
    run(tmp_path, "GuardPromises", engine=FakeEngine(), preset=TINY.only(["mlp"]))
    evaluations = list((tmp_path / "smoke" / "evaluations").glob("*.json"))
    assert evaluations
    labels = np.load(tmp_path / "smoke" / "labels" / "requests.npy")
    for path in evaluations:
        stored = json.loads(path.read_text())
        known, unknown = (_prediction(tmp_path / "smoke", stored, name) for name in ("requests", "babble"))
        inside, outside = (stored["sets"][name]["numbers"] for name in ("requests", "babble"))
        halves = Halves(zlib.crc32(path.stem.encode()), TINY.repeats)
        learnt = list(halves.of(len(labels)))
        for score, side in {"total": "credal", "mean_epistemic": "classical"}.items():
            guards = [Guard.fit(known[half], score=score, false_alarm_rate=RATE) for half in learnt]
            alarms = [
                1 - guard.decide(known[~half]).accepted.mean() for guard, half in zip(guards, learnt, strict=True)
            ]
            turned = [1 - guard.decide(unknown).accepted.mean() for guard in guards]
            assert inside[f"{side}.{score}.false_alarms"] == pytest.approx(100 * np.mean(alarms))
            assert outside[f"{side}.{score}.turned_away"] == pytest.approx(100 * np.mean(turned))
            # So few inputs can promise no error rate, and such a guard accepts nothing.
            assert inside[f"{side}.{score}.halved_accepted"] == 0
            assert outside[f"{side}.{score}.halved_turned_away"] == 100
        for method, side in {"lac": "classical", "intersection": "credal"}.items():
            sets = [
                ConformalSets.fit(known[half], labels[half], alpha=RATE, method=method).predict_set(known[~half])
                for half in learnt
            ]
            sizes = [one.sum(axis=-1).mean() for one in sets]
            assert inside[f"{side}.classes_in_set"] == pytest.approx(np.mean(sizes))


def test_coverage_is_neither_won_nor_lost(tmp_path):
    (result,) = run(tmp_path, "GuardPromises", engine=FakeEngine(), preset=TINY.only(["mlp"])).results
    assert {entry.keys.metric for entry in result.improvements} == {"classes_in_set"}


def _prediction(store, evaluation, name):
    specs = [TrainSpec(**spec) for spec in evaluation["ensemble"]["specs"]]
    return wrap(np.concatenate([np.load(store / "predictions" / spec.key / f"{name}.npy") for spec in specs]))
