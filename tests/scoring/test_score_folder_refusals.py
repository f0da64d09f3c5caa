"""Folders and options that are refused before anything is touched."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credalens.scoring import score_folder
from tests.scoring.folders import names


def test_an_unknown_address_is_refused(tmp_path, source):
    with pytest.raises(ValueError, match="no file system for this address"):
        score_folder(source, "carrier-pigeon://nest/out")


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_someone_else_is_left_alone(tmp_path, source, restart):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.parquet").write_text("precious")
    with pytest.raises(ValueError, match=r"contains other files \(.*thesis.parquet\)"):
        score_folder(source, tmp_path / "out", restart=restart)
    assert names(tmp_path / "out") == ["thesis.parquet"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("in", "the input is in"),
        ("in/out", "the input is in"),
        ("other/../in/out", "the input is in"),
        ("link/out", "the input is in"),
        ("file", "it is a file"),
    ],
)
def test_bad_targets_are_refused(tmp_path, source, target, message):
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(source)
    before = names(source)
    with pytest.raises((ValueError, NotADirectoryError), match=message):
        score_folder(source, tmp_path / target)
    assert names(source) == before


def test_an_output_that_links_of_the_input_lead_to_is_refused(tmp_path, source):
    score_folder(source, tmp_path / "out")
    (source / "scored").symlink_to(tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(ValueError, match="the input is in"):
        score_folder(source, tmp_path / "out", restart=True)
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_part_whose_name_is_not_utf_8_is_named(tmp_path, source, on_error):
    bad = source / os.fsdecode(b"p\xff.parquet")
    shutil.copy(next(source.glob("*.parquet")), bad)
    with pytest.raises(ValueError, match=r"in/p\\udcff\.parquet: .*; rename it"):
        score_folder(source, tmp_path / "out", on_error=on_error)
    with pytest.raises(ValueError, match=r"p\\udcff\.parquet: its name is not UTF-8"):
        score_folder(bad, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    bad.rename(bad.with_suffix(".txt"))  # which is not data
    score_folder(source, tmp_path / "out")


def test_bad_sources_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in.npy").touch()
    with pytest.raises(FileNotFoundError, match="absent: no such folder"):
        score_folder(tmp_path / "absent", tmp_path / "out")
    with pytest.raises(ValueError, match="holds no Parquet files"):
        score_folder(tmp_path / "in", tmp_path / "out")
    with pytest.raises(ValueError, match=r"must be a folder of Parquet files.*numpy\.stack"):
        score_folder(tmp_path / "in.npy", tmp_path / "out")
    with pytest.raises(ValueError, match="name at least one folder"):
        score_folder([], tmp_path / "out")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "in" / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: .*'probs', or in the only array"):
        score_folder(tmp_path / "in", tmp_path / "out")
    pq.write_table(pa.table({"image": ["a"], "probs": [[0.5, 0.5]]}), tmp_path / "in" / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: probs .*fixed-size.*column\.cast\(pa\.list_"):
        score_folder(tmp_path / "in", tmp_path / "out", id_column="image")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "on_error must be one of 'fail', 'skip'"),
        ({"rule": "best"}, "rule must be one of"),
        ({"base": 1}, "base must be finite and above 1"),
        ({"chunk_rows": 0}, "chunk_rows must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"id_column": "label"}, "cannot be in 'label'"),
        ({"id_column": "key"}, "has no column 'key' of row ids; it has probs"),
    ],
)
def test_bad_options_are_refused(tmp_path, source, options, message):
    with pytest.raises(ValueError, match=message):
        score_folder(source, tmp_path / "out", **options)
