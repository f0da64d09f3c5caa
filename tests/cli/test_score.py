"""credalens score: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from credalens import wrap, wrap_logits
from credalens.guard import Guard
from credalens.scoring import score_file
from credalens.storage import save_predictions
from tests.cli.running import run as run_command
from tests.scoring.tables import write_table
from tests.strategies import batch_of

VALUES = batch_of("mixed", 3, 40, 4)


@pytest.fixture
def source(tmp_path):
    save_predictions(tmp_path / "in.npy", VALUES)
    return tmp_path / "in.npy"


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run(capsys, *args: object) -> tuple[int, str, str]:
    return run_command(capsys, "score", *args)


def refused(capsys, *args: object) -> str:
    """The one line on stderr of a command that must leave with code 2 and print nothing else."""
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_the_table_tells_the_means_and_the_output(capsys, tmp_path, source):
    code, out, err = run(capsys, source, "-o", tmp_path / "out.parquet")
    prediction = wrap(VALUES)
    assert (code, err) == (0, "")
    assert "40 rows of 3 members and 4 classes" in out
    assert "bits" in out
    assert f"{prediction.epistemic.mean():.4f}" in out
    assert f"{prediction.classical.epistemic.mean():.4f}" in out
    assert "".join(out.split()).endswith(f"Writtento{tmp_path}/out.parquet")
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 40


def test_json_is_for_machines(capsys, tmp_path):
    logits = np.log(VALUES)
    save_predictions(tmp_path / "in.safetensors", logits, logits=True)
    options = ("--logits", "--base", "e", "--rule", "gamma_maximin", "--json", "--threads", "1", "--chunk-rows", "7")
    code, out, err = run(capsys, tmp_path / "in.safetensors", "-o", tmp_path / "out.npz", *options)
    summary = json.loads(out)
    assert (code, err) == (0, "")
    assert summary["output"] == str(tmp_path / "out.npz")
    assert (summary["base"], summary["rule"], summary["logits"]) == (math.e, "gamma_maximin", True)
    prediction = wrap_logits(logits, base=math.e)
    assert summary["means"]["total"] == pytest.approx(prediction.total.mean())
    with np.load(tmp_path / "out.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["set"], prediction.predict_set("gamma_maximin"))


def test_a_compressed_npz_is_said_to_be_loaded_whole(capsys, tmp_path):
    np.savez_compressed(tmp_path / "in.npz", probs=VALUES)
    _, out, _ = run(capsys, tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert "loaded whole" in " ".join(out.split())


@pytest.mark.filterwarnings("always:the members are nearly one-hot")
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".safetensors", ""])
@pytest.mark.parametrize("dtype", ["int64", "uint8"])
def test_votes_are_scored_as_wrap_scores_them(capsys, tmp_path, suffix, dtype):
    """Members that are certain, as integers: in every format, and in a folder."""
    votes = np.eye(4, dtype=dtype)[np.random.default_rng(0).integers(0, 4, (3, 20))]
    source = tmp_path / f"in{suffix}"
    if suffix:
        save_predictions(source, votes)
    else:
        write_table(source, votes, (12, 8))
    code, out, err = run(capsys, source, "-o", tmp_path / ("out.parquet" if suffix else "out"), "--json")
    assert code == 0
    assert err.startswith("warning: the members are nearly one-hot: ")
    assert err.count("\n") == 1
    assert json.loads(out)["means"]["epistemic"] == pytest.approx(wrap(votes).epistemic.mean())
    scored = pq.read_table(tmp_path / ("out.parquet" if suffix else "out"))
    np.testing.assert_array_equal(scored["prediction"].to_numpy(), wrap(votes).predict())


def test_an_existing_output_is_replaced(capsys, tmp_path, source):
    (tmp_path / "out.parquet").write_bytes(b"old")
    assert run(capsys, source, "-o", tmp_path / "out.parquet")[0] == 0
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 40


@pytest.mark.parametrize("folder", [False, True])
def test_ctrl_c_says_how_to_go_on(capsys, tmp_path, monkeypatch, source, folder):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"credalens.scoring.score_{'folder' if folder else 'file'}", interrupted)
    code, out, err = run(capsys, tmp_path if folder else source, "-o", tmp_path / "out.parquet")
    assert (code, out) == (130, "")
    assert err == f"interrupted; give the same command again to {'resume' if folder else 'begin anew'}.\n"


def bad_file(tmp_path, kind: str):
    """A file that cannot be scored."""
    path = tmp_path / "bad.npy"
    if kind == "two axes":
        np.save(path, VALUES[0])
    elif kind == "integers":
        np.save(path, VALUES.astype(int))
    elif kind == "objects":
        np.save(path, np.array([[["a", None]]], dtype=object))
    elif kind.startswith("truncated"):
        path = tmp_path / f"bad{kind.removeprefix('truncated ')}"
        save_predictions(path, VALUES)
        path.write_bytes(path.read_bytes()[:-30])
    elif kind == "unknown":
        path = tmp_path / "bad.pkl"
    return path


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "bad.npy: no such file"),
        ("unknown", "unknown format '.pkl'"),
        ("two axes", "must have shape (members, rows, classes); got (40, 4)"),
        ("integers", "bad.npy: row 0, member 0: it sums to 0; a row must sum to 1"),
        ("objects", "holds pickled Python objects"),
        ("truncated .npy", "bad.npy: cannot be read: it is damaged, cut short"),
        ("truncated .npz", "bad.npz: cannot be read: it is damaged, cut short"),
        ("truncated .parquet", "bad.parquet: cannot be read: it is damaged, cut short"),
        ("truncated .safetensors", "bad.safetensors: cannot be read: it is damaged, cut short"),
    ],
)
def test_bad_files_are_refused_on_one_line(capsys, tmp_path, kind, message):
    path = bad_file(tmp_path, kind)
    before = names(tmp_path)
    assert message in refused(capsys, path, "-o", tmp_path / "out.parquet")
    assert names(tmp_path) == before


@pytest.mark.parametrize(
    ("value", "logits", "message"),
    [
        (np.nan, False, "row 27, member 1: class 2 is nan; every value must be finite"),
        (-0.5, False, "row 27, member 1: class 2 is -0.5; probabilities are at least 0"),
        (3.0, False, "row 27, member 1: it sums to 3"),
        (np.nan, True, "row 27, member 1: class 2 is nan"),
        (np.inf, True, "row 27, member 1: class 2 is inf"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_bad_row_is_named_by_its_place_in_the_file(capsys, tmp_path, value, logits, message, suffix):
    values = np.log(VALUES + 0.1) if logits else VALUES.copy()
    values[1, 27, 2] = value
    values[0, 33, 0] = value
    save_predictions(tmp_path / f"in{suffix}", values, logits=logits)
    options = ["--chunk-rows", 10, *(["--logits"] if logits else [])]
    assert message in refused(capsys, tmp_path / f"in{suffix}", "-o", tmp_path / "out.parquet", *options)
    assert names(tmp_path) == [f"in{suffix}"]


def test_a_row_without_a_possible_class_is_named(capsys, tmp_path):
    values = 2 * VALUES
    values[2, 31] = -np.inf
    save_predictions(tmp_path / "in.npy", values, logits=True)
    err = refused(capsys, tmp_path / "in.npy", "--logits", "-o", tmp_path / "out.npz", "--chunk-rows", 10)
    assert "row 31, member 2: the logits rule out every class" in err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out.csv", "unknown format '.csv'; the name must end in .parquet or .npz"),
        ("absent/out.npz", "there is no folder"),
        ("in.npy/out.npz", "there is no folder"),
        (
            "folder.npz",
            "it is a folder, and the input is a single file; for in.npy name a .parquet or .npz file",
        ),
    ],
)
def test_bad_outputs_are_refused(capsys, tmp_path, source, target, message):
    (tmp_path / "folder.npz").mkdir()
    before = names(tmp_path)
    assert message in refused(capsys, source, "-o", tmp_path / target)
    assert names(tmp_path) == before


def test_the_input_is_not_overwritten(capsys, tmp_path):
    save_predictions(tmp_path / "in.npz", VALUES)
    content = (tmp_path / "in.npz").read_bytes()
    (tmp_path / "link.npz").symlink_to(tmp_path / "in.npz")
    (tmp_path / "same.npz").hardlink_to(tmp_path / "in.npz")
    for name in ("in.npz", "link.npz", "same.npz"):
        assert "it is the file that is being scored" in refused(capsys, tmp_path / "in.npz", "-o", tmp_path / name)
    assert (tmp_path / "in.npz").read_bytes() == content
    assert names(tmp_path) == ["in.npz", "link.npz", "same.npz"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "best"], "rule must be one of 'interval_dominance', 'maximality'"),
        (["--base", "1"], "base must be finite and above 1"),
        (["--chunk-rows", "0"], "Invalid value for '--chunk-rows'"),
        (["--threads", "0"], "Invalid value for '--threads'"),
    ],
)
def test_bad_options_are_refused(capsys, tmp_path, source, options, message):
    assert message in refused(capsys, source, "-o", tmp_path / "out.npz", *options)
    assert names(tmp_path) == ["in.npy"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(capsys, tmp_path, source):
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "Permission denied" in refused(capsys, source, "-o", tmp_path / "closed" / "out.npz")


def fail(monkeypatch, name: str, calls: int, number: int = errno.ENOSPC) -> None:
    """Make the disk refuse ``os.<name>`` after it has worked a few times."""
    real, left = getattr(os, name), [calls]

    def failing(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, failing)


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_at_any_step_leaves_no_half_output(capsys, tmp_path, monkeypatch, source, name):
    out, whole = tmp_path / "out.parquet", tmp_path / "whole.parquet"
    score_file(source, whole, chunk_rows=10)
    for calls in range(100):
        with monkeypatch.context() as patch:
            fail(patch, name, calls)
            code, _, err = run(capsys, source, "-o", out, "--chunk-rows", 10)
        if code == 0:
            break
        assert code == 2
        assert err == f"error: cannot write {out}: No space left on device.\n"
        assert not out.exists() or out.read_bytes() == whole.read_bytes()
        assert [found for found in names(tmp_path) if found != out.name] == ["in.npy", "whole.parquet"]
        out.unlink(missing_ok=True)
    assert 1 <= calls < 100


def limit_files() -> None:
    import resource  # POSIX only

    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_a_real_refusal_of_the_system(tmp_path, suffix):
    """The output is larger than the limit for a file; then the limit is lifted."""
    source, out = tmp_path / "in.npy", tmp_path / f"out{suffix}"
    save_predictions(source, np.random.default_rng(0).dirichlet(np.ones(4), (3, 800)))
    command = [sys.executable, "-m", "credalens.cli", "score", source, "-o", out, "--chunk-rows", "40"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit_files)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: cannot write {out}: File too large.\n"
    assert names(tmp_path) == ["in.npy"]
    assert score_file(source, out, chunk_rows=40).rows == 800
    assert names(tmp_path) == ["in.npy", out.name]


@pytest.mark.filterwarnings("always::UserWarning")
def test_mistakes_that_give_plausible_numbers_cause_a_line_on_stderr(capsys, tmp_path):
    np.save(tmp_path / "rows_first.npy", VALUES.swapaxes(0, 1))
    np.save(tmp_path / "probs.npy", VALUES)
    np.save(tmp_path / "single.npy", VALUES[:1])
    target = ["-o", tmp_path / "out.npz", "--json"]
    code, out, err = run(capsys, tmp_path / "rows_first.npy", *target)
    assert (code, json.loads(out)["members"]) == (0, 40)
    assert err.startswith("warning: ")
    assert "40 members, more than its 3 rows, and 4 classes. If the rows come first, pass" in err
    code, out, err = run(capsys, tmp_path / "rows_first.npy", "--member-axis", 1, *target)
    assert (code, err, json.loads(out)["members"], json.loads(out)["rows"]) == (0, "", 3, 40)
    assert json.loads(out)["means"]["total"] == pytest.approx(wrap(VALUES).total.mean())
    assert "warning: these logits are probabilities" in run(capsys, tmp_path / "probs.npy", "--logits", *target)[2]
    assert "warning: there is a single member" in run(capsys, tmp_path / "single.npy", *target)[2]
    assert "--member-axis is for arrays" in refused(capsys, tmp_path, "--member-axis", 1, "-o", tmp_path / "out")


def test_scores_are_chosen_on_the_command_line(capsys, source, tmp_path):
    code, out, _ = run(capsys, source, "-o", tmp_path / "out.npz", "--scores", "imprecision, mean_total")
    assert code == 0
    assert "maximum mean imprecision" in out
    with np.load(tmp_path / "out.npz") as scored:
        assert {"imprecision", "mean_total"} <= set(scored)
        assert "total" not in scored
    assert "a score must be one of 'total'" in refused(capsys, source, "-o", tmp_path / "b.npz", "--scores", "totl")


def test_the_guard_is_not_overwritten_by_what_it_decides(capsys, tmp_path, source):
    guard = tmp_path / "guard.npz"
    Guard.fit(wrap(batch_of("peaked", 3, 300, 4))).save(tmp_path / "guard.json")
    (tmp_path / "guard.json").rename(guard)
    before = guard.read_bytes()
    assert "it is the file that is being read" in refused(capsys, source, "-o", guard, "--guard", guard)
    assert guard.read_bytes() == before
