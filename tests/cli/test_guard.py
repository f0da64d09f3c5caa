"""credalens guard: fits, writes, checks, and one clear line for everything that can be wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from credalens import wrap
from credalens.guard import ConformalSets, Guard
from credalens.storage import save_predictions
from tests.cli.running import run as run_command
from tests.strategies import batch_of

VALUES = batch_of("peaked", 3, 300, 4, seed=1)
LABELS = wrap(VALUES).predict()


@pytest.fixture
def folder(tmp_path):
    save_predictions(tmp_path / "id.npy", VALUES)
    save_predictions(tmp_path / "both.npz", VALUES, LABELS)
    save_predictions(tmp_path / "new.npy", batch_of("peaked", 3, 200, 4, seed=2))
    save_predictions(tmp_path / "flat.npy", batch_of("flat", 3, 200, 4, seed=2))
    np.save(tmp_path / "y.npy", LABELS)
    return tmp_path


def run(capsys, *args: object) -> tuple[int, str, str]:
    return run_command(capsys, "guard", *args)


def test_fit_writes_the_guard_that_python_fits(capsys, folder):
    promised = ("--max-error", 0.02, "--sets", 0.1, "--members", "three networks")
    code, out, err = run(
        capsys, "fit", folder / "id.npy", "--labels", folder / "y.npy", *promised, "-o", folder / "g.json"
    )
    assert (code, err) == (0, "")
    assert "errors among the accepted (0.00%)" in out
    assert "error rate of at most 0.02 among accepted inputs, with 0.95 confidence (0 of" in out
    promise = Guard.load(folder / "g.json").promises[0]
    assert f"at the observed error rate, 0.00%, that is {promise.refused:.0%} of such data" in out
    assert f"these allow, {promise.highest:.2%}, it is {promise.refused_at_highest:.0%}" in out
    assert ("breaks the promise" in out) == (promise.highest > 0.02)
    assert "calls at most 0.05 of new inputs like these unlike the calibration data, on average" in out
    prediction = wrap(VALUES)
    expected = Guard.fit(
        prediction, LABELS, max_error=0.02, sets=ConformalSets.fit(prediction, LABELS), note="three networks"
    )
    assert Guard.load(folder / "g.json").digest == expected.digest
    low, high = expected.false_alarm_range
    assert f"(this guard: {low:.2g} to {high:.2g}, with 95 % probability)" in out
    run(capsys, "fit", folder / "both.npz", *promised, "-o", folder / "h.json")
    assert Guard.load(folder / "h.json").digest == expected.digest
    _, out, _ = run(capsys, "fit", folder / "both.npz", *promised, "--json", "-o", folder / "h.json")
    assert json.loads(out)["promised"][0]["refused_at_highest"] == promise.refused_at_highest


def test_check_says_which_promises_it_could_not_check(capsys, folder):
    prediction = wrap(np.load(folder / "id.npy"))
    Guard.fit(prediction, prediction.predict(), max_error=0.05).save(folder / "g.json")
    _, out, _ = run(capsys, "check", folder / "g.json", folder / "new.npy")
    assert out.count("Not checked: promises about errors and sets") == out.count("Not checked") == 1
    np.save(folder / "y.npy", wrap(np.load(folder / "new.npy")).predict())
    _, out, _ = run(capsys, "check", folder / "g.json", folder / "new.npy", "--labels", folder / "y.npy")
    assert "Not checked" not in out


def test_check_says_whether_promises_hold(capsys, folder):
    run(capsys, "fit", folder / "id.npy", "-o", folder / "g.json")
    code, out, _ = run(capsys, "check", folder / "g.json", folder / "new.npy")
    assert code == 0
    assert "holds up to" in out
    assert out.count("holds") == 2
    code, out, _ = run(capsys, "check", folder / "g.json", folder / "flat.npy", "--json")
    found = json.loads(out)
    counts = Guard.load(folder / "g.json").check_promises(wrap(np.load(folder / "flat.npy")))
    assert code == 3
    assert (found["unlike"], found["promises"][0]["kept"]) == (counts[0].hits, False)
    code, out, _ = run(capsys, "check", folder / "g.json", folder / "flat.npy")
    assert code == 3
    assert "broken" in out


def test_chunks_give_the_same_counts(capsys, folder, monkeypatch):
    run(capsys, "fit", folder / "both.npz", "--max-error", 0.05, "-o", folder / "g.json")
    whole = run(capsys, "check", folder / "g.json", folder / "both.npz", "--json")
    monkeypatch.setattr("credalens.storage.source.rows_at_a_time", lambda *_: 7)
    assert run(capsys, "check", folder / "g.json", folder / "both.npz", "--json") == whole


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fit", "id.npy", "--max-error", 0.02, "-o", "g.json"), "a promise about errors needs labels"),
        (("fit", "id.npy", "--sets", 0.1, "-o", "g.json"), "sets of classes need labels"),
        (("fit", "both.npz", "--max-error", 0.001, "-o", "g.json"), "at least 2,995 are needed"),
        (("fit", "id.npy", "--false-alarm-rate", 0.001, "-o", "g.json"), "at least 999 are needed"),
        (("fit", "id.npy", "--score", "size", "-o", "g.json"), "score must be one of"),
        (("fit", "none.npy", "-o", "g.json"), "none.npy"),
        (("check", "none.json", "id.npy"), "No such file or directory"),
        (("check", "y.npy", "id.npy"), "is not a saved guard"),
    ],
)
def test_what_is_wrong_is_one_line_and_writes_nothing(capsys, folder, monkeypatch, args, message):
    monkeypatch.chdir(folder)
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (folder / "g.json").exists()


def test_the_help_names_both(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "fit" in out
    assert "check" in out


@pytest.mark.filterwarnings("default:.*the highest .* there can be")
def test_a_guard_that_many_inputs_are_too_tied_for_says_so(capsys, folder):
    """At every fit, and at every check."""
    code, out, err = run(capsys, "fit", folder / "flat.npy", "--score", "total", "-o", folder / "blind.json")
    assert (code, "warning: " in err) == (0, True)
    assert "have the highest 'total' there can be, 2, because their credal sets contain the uniform distribution" in err
    assert "this guard: 0 to 0.0" in out
    code, out, _ = run(capsys, "check", folder / "blind.json", folder / "new.npy")
    assert code == 0
    assert "Try another score, which is at its highest value less often" in out
    run(capsys, "fit", folder / "id.npy", "-o", folder / "g.json")
    assert "there can be" not in run(capsys, "check", folder / "g.json", folder / "new.npy")[1]


@pytest.mark.parametrize("option", ["both.npz", "y.npy", "link.npz", "same.npz"])
def test_a_guard_takes_the_place_of_nothing_that_it_is_fitted_on(capsys, folder, option):
    (folder / "link.npz").symlink_to(folder / "both.npz")
    (folder / "same.npz").hardlink_to(folder / "both.npz")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    target = folder / option
    code, out, err = run(capsys, "fit", folder / "both.npz", "--labels", folder / "y.npy", "-o", target)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: cannot write {target}: it is the file that is being read")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
