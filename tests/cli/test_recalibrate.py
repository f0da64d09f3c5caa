"""``credalens recalibrate``, and its file in every command that takes one: all of them predict as ``wrap`` does with it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from credalens import Recalibration, wrap
from credalens.guard import Guard
from credalens.storage import open_predictions, save_predictions
from tests.cli.running import run
from tests.core.test_recalibration import overconfident


@pytest.fixture
def folder(tmp_path, capsys):
    logits, labels = overconfident(900)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for name, rows in (("cal", slice(0, 400)), ("id", slice(400, 700)), ("new", slice(700, 900))):
        save_predictions(tmp_path / f"{name}.npz", p[:, rows], labels[rows])
    assert run(capsys, "recalibrate", tmp_path / "cal.npz", "-o", tmp_path / "r.json")[0] == 0
    return tmp_path


def predictions(folder, name, **options):
    stored = open_predictions(folder / f"{name}.npz")
    return wrap(stored.read(0, stored.rows), **options)


def test_what_it_writes_is_what_python_fits(folder, capsys):
    stored = open_predictions(folder / "cal.npz")
    expected = Recalibration.fit(stored.read(0, 400), stored.read_labels(0, 400))
    assert Recalibration.load(folder / "r.json").temperatures.tolist() == expected.temperatures.tolist()
    more = ("--through", "members", "--json")
    _, out, _ = run(capsys, "recalibrate", folder / "cal.npz", "-o", folder / "again.json", *more)
    assert len(json.loads(out)["temperatures"]) == 5


def test_what_it_says(folder, capsys):
    _, out, _ = run(capsys, "recalibrate", folder / "cal.npz", "-o", folder / "r.json")
    assert "One temperature for all members: " in out
    assert "400 labelled inputs" in out


def test_scores_are_those_of_recalibrated_members(folder, capsys):
    r = ("--recalibration", folder / "r.json")
    assert run(capsys, "score", folder / "new.npz", "-o", folder / "scored.npz", *r)[0] == 0
    expected = predictions(folder, "new", recalibration=Recalibration.load(folder / "r.json"))
    with np.load(folder / "scored.npz", allow_pickle=False) as scored:
        np.testing.assert_allclose(scored["total"], expected.total, atol=1e-12)


def test_a_guard_brings_its_temperatures_and_refuses_others(folder, capsys):
    options = ("--recalibration", folder / "r.json", "--max-error", 0.45, "-o", folder / "guard.json")
    assert run(capsys, "guard", "fit", folder / "id.npz", *options)[0] == 0
    guard = Guard.load(folder / "guard.json")
    expected = guard.decide(predictions(folder, "new", recalibration=Recalibration.load(folder / "r.json")))
    with_guard = ("score", folder / "new.npz", "--guard", folder / "guard.json", "-o", folder / "scored.npz")
    for more in ((), ("--recalibration", folder / "r.json")):
        assert run(capsys, *with_guard, *more)[0] == 0
        with np.load(folder / "scored.npz", allow_pickle=False) as scored:
            assert (scored["decision"] == np.asarray(expected.decision)).all()
    assert run(capsys, "guard", "check", folder / "guard.json", folder / "new.npz")[0] == 0
    Recalibration.of([3.0] * 5, classes=4).save(folder / "other.json")
    code, _, words = run(capsys, *with_guard, "--recalibration", folder / "other.json")
    assert code == 2
    assert "Use the same recalibration" in " ".join(words.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("recalibrate", "bare.npy", "-o", "x.json"), "--labels"),
        (("recalibrate", "cal.npz", "-o", "cal.npz"), "cal.npz"),
        (("recalibrate", "cal.npz", "-o", "x.json", "--through", "platt"), "through"),
        (("score", "new.npz", "-o", "s.npz", "--recalibration", "cal.npz"), "recalibration"),
    ],
)
def test_mistakes_are_one_line(folder, capsys, arguments, words):
    np.save(folder / "bare.npy", open_predictions(folder / "cal.npz").read(0, 400))
    code, _, error = run(capsys, arguments[0], *(folder / x if "." in x else x for x in arguments[1:]))
    assert code == 2
    assert words in error
    assert "Traceback" not in error
