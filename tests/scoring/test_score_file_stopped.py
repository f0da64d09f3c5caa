"""A run that stops anywhere leaves no output, or the whole one; the next run begins anew and gives the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from credalens.scoring import score_file
from credalens.storage import save_predictions
from tests.scoring.folders import names
from tests.scoring.stopping import Stop, stop_after
from tests.strategies import batch_of

SUFFIXES = (".parquet", ".npz")


@pytest.fixture
def source(tmp_path):
    save_predictions(tmp_path / "in.npy", batch_of("mixed", 3, 40, 4))
    return tmp_path / "in.npy"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["replace", "fsync", "unlink", "mkdir", "rmdir"])
def test_a_stop_at_any_step_is_made_good(tmp_path, monkeypatch, source, suffix, name):
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    score_file(source, whole, chunk_rows=9)
    for calls in range(100):
        with monkeypatch.context() as patch:
            stop_after(patch, name, calls)
            try:
                score_file(source, out, chunk_rows=9)
            except Stop:
                assert not out.exists() or out.read_bytes() == whole.read_bytes()
            else:
                break
        score_file(source, out, chunk_rows=9)
        assert out.read_bytes() == whole.read_bytes()
        out.unlink()
        assert names(tmp_path) == ["in.npy", whole.name]
    assert 1 <= calls < 99


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interrupted_run_keeps_the_older_output_and_leaves_nothing_else(tmp_path, source, suffix):
    out = tmp_path / f"out{suffix}"
    out.write_bytes(b"older")

    def interrupt(what, done, of):
        assert len(names(tmp_path)) == 3
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_file(source, out, chunk_rows=10, progress=interrupt)
    assert names(tmp_path) == ["in.npy", out.name]
    assert out.read_bytes() == b"older"
    heard = []
    summary = score_file(source, out, chunk_rows=10, progress=lambda *news: heard.append(news))
    assert (heard[0], summary.resumed_rows) == (("scoring", 0, 40), 0)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_grows_is_nobody_elses_to_read(tmp_path, source, suffix):
    out = tmp_path / f"out{suffix}"
    out.touch(0o600)
    seen = []
    score_file(source, out, progress=lambda *_: seen.append((tmp_path / f".{out.name}.partial").stat().st_mode & 0o777))
    assert set(seen) == {0o700}
    assert out.stat().st_mode & 0o777 == 0o600


def test_what_a_kill_left_half_written_is_deleted_first_and_files_of_the_user_stay(tmp_path, source):
    left = tmp_path / ".out.parquet.partial"
    (left / "files").mkdir(parents=True)
    (left / "files" / "half").write_bytes(b"half")
    (left / "thesis.tex").write_text("precious")
    seen = []
    score_file(source, tmp_path / "out.parquet", progress=lambda *_: seen.append(names(left / "files")))
    assert all("half" not in files for files in seen)
    assert names(left) == ["thesis.tex"]


def test_an_input_that_changes_under_the_run_is_noticed(tmp_path, source):
    def touch(what, done, rows):
        os.utime(source, ns=(0, done))

    with pytest.raises(ValueError, match=r"in\.npy was changed .*nothing was written"):
        score_file(source, tmp_path / "out.parquet", chunk_rows=10, progress=touch)
    assert names(tmp_path) == ["in.npy"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_two_runs_do_not_write_one_output(tmp_path, source, suffix):
    out = tmp_path / f"out{suffix}"

    def second(*news):
        with pytest.raises(
            ValueError,
            match=rf"{out.name} right now: process {os.getpid()} on ",
        ):
            score_file(source, out, base=10)

    summary = score_file(source, out, progress=second)
    assert summary.base == 2
    assert names(tmp_path) == ["in.npy", out.name]


def start(source, target) -> subprocess.Popen:
    command = [sys.executable, "-m", "credalens.cli", "score", source, "-o", target, "--chunk-rows", "50", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_when(process: subprocess.Popen, reached) -> int:
    while process.poll() is None and not reached():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_killed_runs_lose_and_double_nothing(tmp_path, suffix):
    source, out, whole = tmp_path / "in.npy", tmp_path / f"out{suffix}", tmp_path / f"whole{suffix}"
    save_predictions(source, batch_of("mixed", 3, 100, 4).repeat(200, axis=1))  # 400 chunks: time to be killed
    score_file(source, whole, chunk_rows=50)
    files = tmp_path / f".{out.name}.partial" / "files"
    assert kill_when(start(source, out), lambda: files.is_dir() and any(files.iterdir())) == -signal.SIGKILL
    assert not out.exists()
    assert files.is_dir()
    wait = float(np.random.default_rng(len(suffix)).uniform(0, 0.1))
    kill_when(start(source, out), lambda: files.is_dir() and not time.sleep(wait))
    summary, errors = start(source, out).communicate()
    assert errors == ""
    assert json.loads(summary)["rows"] == 20_000
    assert out.read_bytes() == whole.read_bytes()
    assert names(tmp_path) == ["in.npy", out.name, whole.name]
