"""A scored folder is gone on with: only what is new, damaged or missing is scored again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import fs

from credalens import wrap
from credalens.scoring import score_folder
from credalens.scoring.job import score_part
from tests.engines.waiting import wait_until
from tests.scoring.folders import VALUES, assert_scored, names, parts, truncate
from tests.scoring.stopping import Stop, stop_after
from tests.scoring.tables import spoil_row, write_part
from tests.strategies import batch_of


def test_a_finished_folder_is_found_finished(tmp_path, source):
    first = score_folder(source, tmp_path / "out")
    heard = []
    again = score_folder(source, tmp_path / "out", progress=lambda *news: heard.append(news))
    assert heard == [("parts", 3, 3)]
    assert (again.resumed_parts, again.workers, again.rows_a_second) == (3, 0, None)
    assert again.scores.means == first.scores.means


def test_a_part_that_was_written_again_is_scored_again(tmp_path, source):
    score_folder(source, tmp_path / "out")
    other = batch_of("mixed", 3, 20, 4, seed=1)
    write_part(source / "part-1.parquet", other.transpose(1, 0, 2))
    os.utime(source / "part-1.parquet", ns=(1, 1))
    assert score_folder(source, tmp_path / "out").resumed_parts == 2
    assert_scored(tmp_path / "out", wrap(np.concatenate([VALUES[:, :25], other, VALUES[:, 45:]], axis=1)))
    spoil_row(source / "part-1.parquet", 11)  # what was scored before is of no use now
    assert score_folder(source, tmp_path / "out", on_error="skip").parts == 2
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-2.parquet"]


def test_a_damaged_output_part_is_scored_again(tmp_path, source):
    score_folder(source, tmp_path / "out")
    truncate(tmp_path / "out" / "part-2.parquet")
    assert score_folder(source, tmp_path / "out").resumed_parts == 2
    assert_scored(tmp_path / "out", wrap(VALUES))


def test_other_options_are_refused_until_restarted(tmp_path, source):
    score_folder(source, tmp_path / "out")
    with pytest.raises(ValueError, match=r"other settings: base was 2.0 and is now 10.0.*--restart"):
        score_folder(source, tmp_path / "out", base=10)
    assert score_folder(source, tmp_path / "out", base=10, restart=True).resumed_parts == 0
    assert_scored(tmp_path / "out", wrap(VALUES, base=10))


def test_parts_of_a_vanished_input_are_not_left_among_the_output(tmp_path, source):
    score_folder(source, tmp_path / "out")
    (source / "part-1.parquet").unlink()
    with pytest.raises(ValueError, match=r"1 part that the input no longer has, such as part-1.parquet"):
        score_folder(source, tmp_path / "out")
    assert score_folder(source, tmp_path / "out", restart=True).parts == 2
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-2.parquet"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_damaged_manifest_is_refused(tmp_path, source, restart):
    score_folder(source, tmp_path / "out")
    (tmp_path / "out" / "_credalens.json").write_text("{")
    with pytest.raises(ValueError, match=r"_credalens.json is damaged.*delete .* yourself"):
        score_folder(source, tmp_path / "out", restart=restart)
    assert len(parts(tmp_path / "out")) == 3


def test_a_restart_leaves_the_files_of_the_user(tmp_path, source):
    score_folder(source, tmp_path / "out")
    mine = ("thesis.parquet", "deep/part-0.parquet")
    (tmp_path / "out" / "deep").mkdir()
    for name in mine:
        (tmp_path / "out" / name).write_text("precious")
    assert score_folder(source, tmp_path / "out").resumed_parts == 3
    assert score_folder(source, tmp_path / "out", base=10, restart=True).parts == 3
    assert all((tmp_path / "out" / name).read_text() == "precious" for name in mine)


RUN = """
import sys, time
from pathlib import Path
import credalens.scoring.settings as settings
from credalens.scoring import score_folder
source, target, base, go_on = sys.argv[1:]

def wait(*args):
    while not Path(go_on).exists():
        time.sleep(0.01)
    return score(*args)

score, settings.score_columns = settings.score_columns, wait
try:
    score_folder(source, target, base=float(base), threads=1)
except ValueError as error:
    sys.exit(str(error))
"""


def test_of_two_runs_at_once_one_writes(tmp_path, source):
    command, go_on = [sys.executable, "-c", RUN, source, tmp_path / "out"], tmp_path / "go on"
    runs = {base: subprocess.Popen([*command, str(base), go_on], stderr=subprocess.PIPE, text=True) for base in (2, 10)}
    try:
        wait_until(lambda: any(process.poll() is not None for process in runs.values()))
    finally:
        go_on.touch()
    errors = {base: process.communicate()[1] for base, process in runs.items()}
    [winner] = [base for base, error in errors.items() if not error]
    [told] = filter(None, errors.values())
    assert re.search(rf"another run is writing into .*out right now: process {runs[winner].pid} on .*, since", told)
    assert_scored(tmp_path / "out", wrap(VALUES, base=winner))
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-1.parquet", "part-2.parquet"]


def test_the_lock_of_a_killed_run_keeps_nobody_out(tmp_path, source):
    score_folder(source, tmp_path / "out")
    (tmp_path / "out" / ".lock").write_text("process 7 on elsewhere, since 2020")
    assert score_folder(source, tmp_path / "out").resumed_parts == 3
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-1.parquet", "part-2.parquet"]


def test_in_an_object_store_a_run_stops_when_another_has_taken_over(tmp_path, source):
    """Nothing locks an object store; the manifest tells whose the output is."""
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def overtaken(job, parts):
        for part in parts:
            yield score_part(job, part)
            if part == 0:
                score_folder("in", "out", filesystem=store, base=10, restart=True)

    with pytest.raises(ValueError, match="another run has taken over out; nothing more is written"):
        score_folder("in", "out", filesystem=store, executor=overtaken)
    assert score_folder("in", "out", filesystem=store, base=10).scores.rows == 60
    assert_scored(tmp_path / "out", wrap(VALUES, base=10))


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("left", [f".{name}.{'1f' * 16}.partial" for name in ("part-0.parquet", "_credalens.json")])
def test_what_a_killed_run_left_half_written_keeps_no_run_out(tmp_path, source, left, restart):
    if "credalens" not in left:
        score_folder(source, tmp_path / "out")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / left).write_text("half")
    assert score_folder(source, tmp_path / "out", restart=restart).parts == 3
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-1.parquet", "part-2.parquet"]


@pytest.mark.parametrize("name", ["replace", "fsync", "unlink"])
def test_a_stop_at_any_step_is_made_good(tmp_path, monkeypatch, source, name):
    score_folder(source, tmp_path / "whole")
    for calls in range(50):
        with monkeypatch.context() as patch:
            stop_after(patch, name, calls)
            try:
                score_folder(source, tmp_path / "out")
            except Stop:
                done = parts(tmp_path / "out")
                assert all(path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes() for path in done)
            else:
                break
        assert score_folder(source, tmp_path / "out").parts == 3
        for path in parts(tmp_path / "whole"):
            assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
        assert names(tmp_path / "out") == names(tmp_path / "whole")
        shutil.rmtree(tmp_path / "out")
    assert calls >= 3
