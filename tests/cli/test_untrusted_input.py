"""Commands on input that somebody else made: files that unfold, names that are no names."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

import numpy as np
import pytest

from credalens.storage import open_predictions, save_predictions
from tests.cli.running import run
from tests.strategies import batch_of

VALUES = batch_of("mixed", 3, 40, 4)


@pytest.fixture
def compressed(tmp_path):
    np.savez_compressed(tmp_path / "m.npz", probs=VALUES, labels=np.arange(40) % 4)
    return tmp_path / "m.npz"


def test_a_file_that_unfolds_to_more_than_the_limit(capsys, tmp_path, compressed):
    size = VALUES.nbytes + 40 * 8  # with the labels
    evaluate = ("evaluate", "--id", compressed, "-o", tmp_path / "report")
    score = ("score", compressed, "-o", tmp_path / "scored.npz")
    for command in (evaluate, score):
        code, out, err = run(capsys, *command, "--max-bytes", size - 1)
        assert (code, out) == (2, "")
        assert f"m.npz: its {compressed.stat().st_size:,} bytes unfold to {size:,}" in err
        assert f"--max-bytes {size})" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.npz"]
    assert run(capsys, *score, "--max-bytes", size)[0] == 0


def test_a_part_that_unfolds_to_more_than_the_limit(capsys, tmp_path):
    (tmp_path / "in").mkdir()
    save_predictions(tmp_path / "in" / "a.parquet", VALUES)
    command = ("score", tmp_path / "in", "-o", tmp_path / "out", "--max-bytes")
    code, _, err = run(capsys, *command, VALUES.nbytes - 1)
    assert code == 2
    assert f"a.parquet: its {(tmp_path / 'in' / 'a.parquet').stat().st_size:,} bytes unfold to {VALUES.nbytes:,}" in err
    assert run(capsys, *command, VALUES.nbytes)[0] == 0


EVIL = "a\x1b[31m\x9b2J\u202e"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_names_cannot_steer_the_terminal(capsys, tmp_path, compressed, form):
    (tmp_path / "classes.txt").write_text("\n".join([EVIL, "b", "c", "d"]))
    ood, output = f"{EVIL}={compressed}", tmp_path / EVIL
    options = ["--classes", tmp_path / "classes.txt", "--replicates", 40, *form]
    code, out, err = run(capsys, "evaluate", "--id", compressed, "--ood", ood, "-o", output, *options)
    assert (code, err) == (0, "")
    assert not set("\x1b\x9b\u202e") & set(out)
    assert r"a\u001b[31m\u009b2J\u202e" in "".join(out.split())


def test_errors_cannot_steer_the_terminal(capsys, tmp_path):
    np.savez(tmp_path / f"{EVIL}.npz", **{EVIL: VALUES, "b": VALUES})
    for source in (tmp_path / f"{EVIL}.npz", tmp_path / f"{EVIL}.npy"):
        code, out, err = run(capsys, "score", source, "-o", tmp_path / "out.npz")
        assert (code, out) == (2, "")
        assert not set("\x1b\x9b\u202e") & set(err)
        assert r"a\u001b[31m\u009b2J\u202e" in err
    with pytest.raises(ValueError, match=r"\\u001b") as caught:
        open_predictions(tmp_path / f"{EVIL}.npz")
    assert not set("\x1b\x9b\u202e") & set(str(caught.value))


def interrupted_import(*args, **options):
    """What the macro import_array() of NumPy makes of an interrupt: the cause is lost."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    raise ImportError("numpy.core.multiarray failed to import")


@pytest.fixture
def listening():
    """Python's own handler of Ctrl-C, which a process that a shell starts in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_an_interrupt_that_becomes_another_error_is_an_interrupt(capsys, tmp_path, monkeypatch, compressed):
    monkeypatch.setattr("credalens.scoring.score_file", interrupted_import)
    code, out, err = run(capsys, "score", compressed, "-o", tmp_path / "out.npz")
    assert (code, out, err) == (130, "", "error: interrupted.\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_while_the_commands_are_imported(capsys, monkeypatch):
    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name == "credalens.cli.app":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "credalens.cli.app", raising=False)
    assert run(capsys, "--version") == (130, "", "")


def test_bins_that_would_fill_the_memory(capsys, tmp_path, compressed):
    code, out, err = run(capsys, "evaluate", "--id", compressed, "-o", tmp_path / "report", "--bins", 100_000_000)
    assert (code, out) == (2, "")
    assert "bins must be at most 10000; got 100000000" in err
