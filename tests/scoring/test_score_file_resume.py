"""A run that stops anywhere goes on where it stopped: nothing lost, nothing doubled, the same bytes."""

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


@pytest.fixture
def source(tmp_path):
    save_predictions(tmp_path / "in.npy", batch_of("mixed", 3, 40, 4))
    return tmp_path / "in.npy"


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("name", ["replace", "fsync", "unlink"])
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
    assert 5 <= calls < 99


def test_finished_parts_are_not_scored_again(tmp_path, monkeypatch, source):
    with monkeypatch.context() as patch:
        stop_after(patch, "replace", 3)  # the manifest and two parts
        with pytest.raises(Stop):
            score_file(source, tmp_path / "out.parquet", chunk_rows=10)
    heard = []
    summary = score_file(source, tmp_path / "out.parquet", chunk_rows=10, progress=lambda *x: heard.append(x))
    assert summary.resumed_rows == 20
    assert heard[0] == ("scoring", 20, 40)


HALF = f".part-00000002.arrow.{'0123' * 8}.partial"


def test_what_a_kill_left_half_written_is_swept_first(tmp_path, monkeypatch, source):
    folder = unfinished(tmp_path, monkeypatch, source)
    (folder / HALF).write_bytes(b"half")
    seen = []
    score_file(source, tmp_path / "out.parquet", chunk_rows=10, progress=lambda *_: seen.extend(names(folder)))
    assert HALF not in seen
    assert {".lock", "manifest.json", "part-00000000.arrow", "part-00000001.arrow"} <= set(seen[:5])


def unfinished(tmp_path, monkeypatch, source, **options):
    with monkeypatch.context() as patch:
        stop_after(patch, "replace", 3)
        with pytest.raises(Stop):
            score_file(source, tmp_path / "out.parquet", chunk_rows=10, **options)
    return tmp_path / "out.parquet.parts"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "gamma_maximin"}, "rule was 'maximality' and is now 'gamma_maximin'"),
        ({"base": 10}, "base was 2.0 and is now 10.0"),
        ({"chunk_rows": 5}, "chunk_rows was 10 and is now 5"),
        ({"logits": True}, "logits was False and is now True"),
        ({"scores": ["total"]}, r"scores was \['total', .* and is now \['total'\]"),
    ],
)
@pytest.mark.filterwarnings("ignore:these logits are probabilities")
def test_other_options_are_refused_until_restarted(tmp_path, monkeypatch, source, options, message):
    folder = unfinished(tmp_path, monkeypatch, source)
    kept = names(folder)
    with pytest.raises(ValueError, match=f"{message}.*--restart"):
        score_file(source, tmp_path / "out.parquet", **{"chunk_rows": 10, **options})
    assert names(folder) == kept
    score_file(source, tmp_path / "fresh.parquet", **{"chunk_rows": 10, **options})
    summary = score_file(source, tmp_path / "out.parquet", **{"chunk_rows": 10, **options}, restart=True)
    assert summary.resumed_rows == 0
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "fresh.parquet").read_bytes()
    assert not folder.exists()


def test_another_input_is_refused(tmp_path, monkeypatch, source):
    unfinished(tmp_path, monkeypatch, source)
    times = (source.stat().st_atime_ns, source.stat().st_mtime_ns)
    save_predictions(source, batch_of("mixed", 3, 40, 4, seed=1))
    os.utime(source, ns=times)  # same name, size and time: only the content tells
    with pytest.raises(ValueError, match=r"the input is another file, or one that has changed.*--restart"):
        score_file(source, tmp_path / "out.parquet", chunk_rows=10)


def test_an_input_that_changes_under_the_run_is_noticed(tmp_path, source):
    def touch(what, done, rows):
        os.utime(source, ns=(0, done))

    with pytest.raises(ValueError, match="was changed while it was being scored"):
        score_file(source, tmp_path / "out.parquet", chunk_rows=10, progress=touch)
    assert names(tmp_path) == ["in.npy"]


def test_a_part_the_disk_has_damaged_is_scored_again(tmp_path, monkeypatch, source):
    score_file(source, tmp_path / "whole.parquet", chunk_rows=10)
    folder = unfinished(tmp_path, monkeypatch, source)
    part = folder / "part-00000000.arrow"
    part.write_bytes(part.read_bytes()[:-20])
    assert score_file(source, tmp_path / "out.parquet", chunk_rows=10).resumed_rows == 10
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_an_empty_folder_of_parts_that_a_kill_left_is_removed(tmp_path, source):
    (tmp_path / "out.parquet.parts").mkdir()
    score_file(source, tmp_path / "out.parquet")
    assert names(tmp_path) == ["in.npy", "out.parquet"]


def test_a_byte_that_changed_in_a_finished_part_does_not_reach_the_output(tmp_path, monkeypatch, source):
    score_file(source, tmp_path / "whole.parquet", chunk_rows=10)
    for number in range(12):
        part = unfinished(tmp_path, monkeypatch, source) / "part-00000000.arrow"
        content = bytearray(part.read_bytes())
        content[len(content) * number // 12] ^= 1
        part.write_bytes(content)
        score_file(source, tmp_path / "out.parquet", chunk_rows=10)
        assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_manifest_is_refused(tmp_path, monkeypatch, source, text, restart):
    folder = unfinished(tmp_path, monkeypatch, source)
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest.json is damaged.*delete .* yourself"):
        score_file(source, tmp_path / "out.parquet", chunk_rows=10, restart=restart)


def test_files_of_the_user_stay_where_parts_are_kept(tmp_path, monkeypatch, source):
    folder = unfinished(tmp_path, monkeypatch, source)
    mine = {".thesis.partial", "part-00000000.csv", "part-x/data.csv"}
    (folder / "part-x").mkdir()
    for name in mine:
        (folder / name).write_text("precious")
    score_file(source, tmp_path / "out.parquet", chunk_rows=5, restart=True)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == mine


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_someone_else_is_left_alone(tmp_path, source, restart):
    folder = tmp_path / "out.parquet.parts"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match=r"contains other files \(thesis.tex\)"):
        score_file(source, tmp_path / "out.parquet", restart=restart)
    assert names(folder) == ["thesis.tex"]


def test_two_runs_do_not_write_one_output(tmp_path, monkeypatch, source):
    unfinished(tmp_path, monkeypatch, source)
    options = {"chunk_rows": 10}

    def second(*news):
        for restart in (False, True):
            with pytest.raises(ValueError, match="another run is writing"):
                score_file(source, tmp_path / "out.parquet", **options, restart=restart)

    assert score_file(source, tmp_path / "out.parquet", **options, progress=second).resumed_rows == 20


def start(source, target) -> subprocess.Popen:
    command = [sys.executable, "-m", "credalens.cli", "score", source, "-o", target, "--chunk-rows", "50", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_when(process: subprocess.Popen, reached) -> int:
    while process.poll() is None and not reached():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode


def some_parts(folder, count: int):
    return lambda: len(list(folder.glob("part-*"))) >= count


def half_an_output(folder):
    return lambda: any(folder.glob(".out.*"))


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_killed_runs_lose_and_double_nothing(tmp_path, suffix):
    source, out, whole = tmp_path / "in.npy", tmp_path / f"out{suffix}", tmp_path / f"whole{suffix}"
    save_predictions(source, batch_of("mixed", 3, 100, 4).repeat(200, axis=1))  # 400 parts: time to be killed
    score_file(source, whole, chunk_rows=50)
    folder = tmp_path / f"{out.name}.parts"
    point = int(np.random.default_rng(len(suffix)).integers(1, 60))
    assert kill_when(start(source, out), some_parts(folder, point)) == -signal.SIGKILL
    assert not out.exists()
    kill_when(start(source, out), half_an_output(folder))
    summary, errors = start(source, out).communicate()
    assert errors == ""
    assert json.loads(summary)["rows"] == 20_000
    assert out.read_bytes() == whole.read_bytes()
    assert names(tmp_path) == ["in.npy", out.name, whole.name]
