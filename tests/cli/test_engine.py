"""The options for other machines: what they refuse, and that folders need no Ray."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from credalens.cli import shared_options
from tests.cli.running import run
from tests.scoring.tables import spoil_row, write_model, write_table
from tests.strategies import batch_of

VALUES = batch_of("mixed", 3, 40, 4)


def refused(capsys, *args: object) -> str:
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


@pytest.fixture
def source(tmp_path):
    write_table(tmp_path / "in", VALUES, (15, 15, 10))
    return tmp_path / "in"


def test_a_folder_is_scored_and_told(capsys, tmp_path, source):
    code, out, err = run(capsys, "score", source, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "40 rows of 3 members and 4 classes" in out
    assert "3 parts; 1 worker, " in out
    assert "rows a second for each worker; 0 retries." in out
    _, out, _ = run(capsys, "score", source, "-o", tmp_path / "out")
    assert "3 parts, 3 of them by an earlier run; 0 workers; 0 retries." in out


def test_one_part_is_counted_in_the_singular(capsys, tmp_path):
    write_table(tmp_path / "in", VALUES, (40,))
    _, out, _ = run(capsys, "score", tmp_path / "in", "-o", tmp_path / "out")
    assert "\n1 part; 1 worker, " in out


def test_rows_that_tables_do_not_share_are_told(capsys, tmp_path):
    ids = pa.array(range(40))
    write_model(tmp_path / "a", VALUES[0], ids, [np.r_[0:30, 7]])
    write_model(tmp_path / "b", VALUES[1], ids, [np.arange(40)])
    args = ("score", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert "a: 1 row with the id of an earlier row, such as 7." in refused(capsys, *args)
    code, _, err = run(capsys, *args, "--join", "first")
    assert code == 0
    assert "1 row with the id of an earlier row.\n" in err
    assert f"left out: 10 rows of {tmp_path}/b that the first table does not have.\n" in err


def test_bad_parts_are_left_out_on_request(capsys, tmp_path, source):
    spoil_row(source / "part-1.parquet", 11)
    message = refused(capsys, "score", source, "-o", tmp_path / "out")
    assert "part-1.parquet: row 11, member 0: it sums to 2" in message
    code, out, err = run(capsys, "score", source, "-o", tmp_path / "out", "--on-error", "skip")
    assert code == 0
    assert "2 parts, 1 of them by an earlier run" in out
    assert err.startswith(f"left out: {source}/part-1.parquet: row 11, member 0")
    code, out, err = run(capsys, "score", source, "-o", tmp_path / "out", "--on-error", "skip", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["skipped"][0]["part"] == f"{source}/part-1.parquet"


def test_several_folders_are_joined_by_the_column_that_is_named(capsys, tmp_path):
    ids = pa.array(np.arange(40))
    for number, order in enumerate([np.arange(40), np.arange(40)[::-1]]):
        write_model(tmp_path / f"model-{number}", VALUES[number], ids, [order])
    models = [tmp_path / "model-0", tmp_path / "model-1"]
    code, out, _ = run(capsys, "score", *models, "-o", tmp_path / "out", "--id", "id", "--json")
    assert (code, json.loads(out)["members"]) == (0, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("model-*/*")}
    for out in (models[1], models[1] / "scored", tmp_path):
        assert "the input is in" in refused(capsys, "score", *models, "-o", out, "--id", "id")
    assert {path: path.read_bytes() for path in tmp_path.rglob("model-*/*")} == before
    assert "no column 'key' of row ids" in refused(capsys, "score", *models, "-o", tmp_path / "no", "--id", "key")


TRAIN = ("train", "--data", "digits", "--schedule", "smoke")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("score", "x", "-o", "y", "--engine", "dask"), "--engine is local or ray, got 'dask'"),
        (("score", "x", "-o", "y", "--address", "head:6379"), "--address is for --engine ray"),
        (("score", "x", "-o", "y", "--workers", "2"), "--workers is for --engine ray"),
        (("score", "x.npy", "-o", "y", "--on-error", "skip"), "--id, --on-error and --join are for folders"),
        (("score", "x.npy", "-o", "y", "--id", "key"), "--id, --on-error and --join are for folders"),
        ((*TRAIN, "--cpus", "2"), "--cpus is for --engine ray"),
        ((*TRAIN, "--engine", "ray", "--side-by-side", "2"), "--side-by-side is for --engine local"),
        ((*TRAIN, "--engine", "ray", "--device", "foo"), "device must be 'cpu', 'cuda', 'cuda:1' or another name"),
        (("reproduce", "PIA", "--gpus", "0.5"), "--gpus is for --engine ray"),
        (("reproduce", "PIA", "--engine", "ray", "--preset", "huge"), "unknown preset 'huge'"),
        (("reproduce", "PIA", "--engine", "ray", "--time-limit", "0"), "the time limit is a positive number"),
        (("reproduce", "PIA", "--engine", "ray", "--side-by-side", "2"), "--side-by-side is for --engine local"),
    ],
)
def test_bad_calls_are_refused_on_one_line(capsys, monkeypatch, args, message):
    monkeypatch.setattr(shared_options, "find_spec", lambda name: object())
    assert message in refused(capsys, *args)


@pytest.mark.parametrize("args", [("score", "x", "-o", "y"), TRAIN, ("reproduce", "PIA")], ids=lambda args: args[0])
def test_without_ray_it_says_how_to_get_it(capsys, monkeypatch, args):
    monkeypatch.setattr(shared_options, "find_spec", lambda name: None)
    assert "--engine ray needs Ray: pip install 'credalens[ray]'" in refused(capsys, *args, "--engine", "ray")
