"""A scored folder holds, part by part, what wrap() gives for the rows of each part."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from credalens import wrap, wrap_logits
from credalens.scoring import score_folder, tables
from credalens.scoring.job import in_this_process
from credalens.scoring.settings import score_columns
from credalens.storage import source as sources
from credalens.storage.formats.parquet import fixed_lists
from tests.scoring.folders import SIZES, VALUES, assert_scored, names, parts
from tests.scoring.tables import read_columns, spoil_row, write_part, write_table
from tests.strategies import batch_of


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("chunk_rows", [1, 7, 10, None])
def test_one_output_part_for_each_input_part(tmp_path, dtype, chunk_rows):
    values = VALUES.astype(dtype)
    write_table(tmp_path / "in", values, SIZES)
    summary = score_folder(tmp_path / "in", tmp_path / "out", chunk_rows=chunk_rows)
    assert [pq.read_metadata(path).num_rows for path in parts(tmp_path / "out")] == list(SIZES)
    assert_scored(tmp_path / "out", wrap(values))
    assert (summary.parts, summary.scores.rows, summary.scores.dtype) == (3, 60, dtype)
    assert (summary.skipped, summary.retries, summary.resumed_parts) == ((), 0, 0)


def test_options_reach_the_numbers(tmp_path):
    logits = np.log(VALUES)
    write_table(tmp_path / "in", logits, SIZES, name="logits")
    options = {"logits": True, "base": math.e, "rule": "gamma_maximin"}
    summary = score_folder(tmp_path / "in", tmp_path / "out", **options)
    prediction = wrap_logits(logits, base=math.e)
    assert_scored(tmp_path / "out", prediction, rule="gamma_maximin")
    assert summary.scores.means["total"] == pytest.approx(prediction.total.mean(), abs=1e-12)
    assert summary.scores.mean_set_size == pytest.approx(prediction.predict_set("gamma_maximin").sum(-1).mean())
    stored = json.loads(pq.read_schema(tmp_path / "out" / "part-0.parquet").metadata[b"credalens"])
    assert (stored["rule"], stored["base"], stored["members"]) == ("gamma_maximin", math.e, 3)
    with pytest.raises(ValueError, match="holds logits, not probabilities"):
        score_folder(tmp_path / "in", tmp_path / "other")


def test_members_may_stand_in_columns_of_their_own(tmp_path, source):
    for number, path in enumerate(parts(source)):
        rows = VALUES[:, sum(SIZES[:number]) : sum(SIZES[: number + 1])]
        pq.write_table(pa.table({f"member_{n}": fixed_lists(rows[n]) for n in (2, 0, 1)}), path)
    score_folder(source, tmp_path / "out")
    assert_scored(tmp_path / "out", wrap(VALUES))


def test_folders_in_folders_keep_their_names_and_hidden_files_are_no_data(tmp_path, source):
    shutil.move(source / "part-1.parquet", source / "part-00.parquet")
    (source / "day=2").mkdir()
    shutil.move(source / "part-2.parquet", source / "day=2" / "part.parquet")
    for stranger in ("_SUCCESS", ".part-0.parquet.crc", "_metadata.parquet", "notes.txt"):
        (source / stranger).write_text("no data")
    summary = score_folder(source, tmp_path / "out")
    assert summary.parts == 3
    assert names(tmp_path / "out") == ["_credalens.json", "day=2", "part-0.parquet", "part-00.parquet"]
    assert pq.read_metadata(tmp_path / "out" / "day=2" / "part.parquet").num_rows == 15


def test_links_may_lead_elsewhere_but_never_multiply_rows(tmp_path, source):
    (tmp_path / "more").mkdir()
    shutil.move(source / "part-2.parquet", tmp_path / "more" / "part.parquet")
    (source / "part-2").symlink_to(tmp_path / "more")
    (tmp_path / "more" / "back").symlink_to(source)  # a cycle of two
    (source / "loop").symlink_to(".")
    (source / "up").symlink_to("..")  # above the table, where its output is too
    (source / "again").symlink_to("part-2")
    summary = score_folder(source, tmp_path / "out")
    assert (summary.parts, summary.scores.rows) == (3, 60)
    assert score_folder(source, tmp_path / "out").resumed_parts == 3


def test_a_part_without_rows_has_an_output_without_rows(tmp_path, source):
    write_part(source / "part-3.parquet", VALUES.transpose(1, 0, 2)[:0])
    assert score_folder(source, tmp_path / "out").scores.rows == 60
    empty = pq.read_schema(tmp_path / "out" / "part-3.parquet")
    assert empty.equals(pq.read_schema(tmp_path / "out" / "part-0.parquet"))
    for path in parts(source)[:3]:
        path.unlink()
    with pytest.raises(ValueError, match="no part has a row"):
        score_folder(source, tmp_path / "none")


def test_one_file_is_a_table_of_one_part(tmp_path, source):
    score_folder(source / "part-1.parquet", tmp_path / "out")
    assert_scored(tmp_path / "out", wrap(VALUES[:, 25:45]))


@pytest.fixture
def in_groups(monkeypatch):
    """Files of one table are cut into parts of at least 20 rows; their row groups have seven."""
    monkeypatch.setattr(tables, "PART_BYTES", VALUES[:, :20].nbytes)


@pytest.mark.usefixtures("in_groups")
def test_a_large_file_is_cut_at_its_row_groups(tmp_path):
    write_part(tmp_path / "one.parquet", VALUES.transpose(1, 0, 2))
    summary = score_folder(tmp_path / "one.parquet", tmp_path / "out", chunk_rows=8)
    written = sorted((tmp_path / "out").glob("*.parquet"))
    assert [path.name for path in written] == ["one-00000.parquet", "one-00001.parquet", "one-00002.parquet"]
    assert [pq.read_metadata(path).num_rows for path in written] == [21, 21, 18]
    assert (summary.parts, summary.scores.rows) == (3, 60)
    for name, column in score_columns(wrap(VALUES), "maximality").items():
        np.testing.assert_array_equal(read_columns(written)[name], column)
    written[1].unlink()
    assert score_folder(tmp_path / "one.parquet", tmp_path / "out").resumed_parts == 2
    assert [pq.read_metadata(path).num_rows for path in written] == [21, 21, 18]


@pytest.mark.usefixtures("in_groups")
@pytest.mark.parametrize("rows", [0, 20, 60])
def test_row_groups_without_rows_are_no_parts(tmp_path, rows):
    table = pa.table({"probs": fixed_lists(VALUES[:, :rows].transpose(1, 0, 2).copy())})
    with pq.ParquetWriter(tmp_path / "one.parquet", table.schema) as writer:
        for chunk in (table[:0], table, table[:0]):
            writer.write_table(chunk)
    if rows:
        assert score_folder(tmp_path / "one.parquet", tmp_path / "out").parts == 1
    else:
        with pytest.raises(ValueError, match="no part has a row"):
            score_folder(tmp_path / "one.parquet", tmp_path / "out")


@pytest.mark.usefixtures("in_groups")
def test_a_bad_row_of_a_large_file_is_named_by_its_place_in_the_file(tmp_path):
    write_part(tmp_path / "one.parquet", VALUES.transpose(1, 0, 2))
    spoil_row(tmp_path / "one.parquet", 30)
    with pytest.raises(ValueError, match=r"one\.parquet: row 30, member 0: .*1 of 3 parts are kept"):
        score_folder(tmp_path / "one.parquet", tmp_path / "out", chunk_rows=4)


@pytest.mark.usefixtures("in_groups")
@pytest.mark.parametrize("order", [np.arange(60), np.r_[0:50, 59:49:-1]], ids=["lined up", "scattered in the end"])
def test_large_files_of_several_models_are_joined(tmp_path, order):
    ids = pa.array(np.arange(60))
    for number, rows in enumerate([np.arange(60), order]):
        write_part(tmp_path / f"{number}.parquet", VALUES[number][rows], ids.take(rows))
    score_folder([tmp_path / "0.parquet", tmp_path / "1.parquet"], tmp_path / "out", chunk_rows=8)
    found = read_columns(sorted((tmp_path / "out").glob("*.parquet")))
    assert found["id"].tolist() == list(range(60))
    np.testing.assert_array_equal(found["lower"], wrap(VALUES[:2]).lower)


def test_row_ids_are_kept(tmp_path):
    ids = pa.array([f"image {n:03d}" for n in range(60)])
    write_table(tmp_path / "in", VALUES, SIZES, ids=ids)
    score_folder(tmp_path / "in", tmp_path / "out", id_column="id", chunk_rows=8)
    found = pa.concat_tables(pq.read_table(path) for path in parts(tmp_path / "out"))
    assert found["id"].to_pylist() == ids.to_pylist()
    assert_scored(tmp_path / "out", wrap(VALUES))


@pytest.mark.parametrize("way", ["subtree", "uri"])
def test_other_file_systems_give_the_same_bytes(tmp_path, source, way):
    score_folder(source, tmp_path / "out")
    if way == "uri":
        score_folder(f"file://{source}", f"file://{tmp_path}/other")
    else:  # a file system that is not the machine's own: written to the side, then moved
        score_folder("in", "other", filesystem=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    for path in parts(tmp_path / "out"):
        assert (tmp_path / "other" / path.name).read_bytes() == path.read_bytes()
    assert names(tmp_path / "other") == names(tmp_path / "out")


def test_a_failed_write_elsewhere_leaves_nothing(tmp_path, source, monkeypatch):
    monkeypatch.setattr(pq.ParquetWriter, "write_table", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        score_folder("in", "out", filesystem=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    assert names(tmp_path / "out") == ["_credalens.json"]


RESIDENT = """
import os, sys
from pathlib import Path
import credalens.scoring.settings as work
from credalens.scoring import score_folder
from credalens.storage.formats import parquet

parquet.GROUP_ROWS = 8192  # both files have more rows than a row group of the output

def most(source, target):
    sizes, plain = [], work.score_columns
    def look(*args):
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        return plain(*args)
    work.score_columns = look
    score_folder(source, target, chunk_rows=4096, threads=1)
    work.score_columns = plain
    return max(sizes)

most(sys.argv[1], sys.argv[3] + "a")  # compiles what is not in the cache yet
before = most(sys.argv[1], sys.argv[3] + "b")
print(most(sys.argv[2], sys.argv[3] + "c") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
def test_memory_does_not_grow_with_a_part(tmp_path):
    rows = batch_of("one_hot", 40, 100, 10).astype(np.float32).transpose(1, 0, 2)
    write_part(tmp_path / "small" / "a.parquet", rows.repeat(150, axis=0), group=4_000)
    write_part(tmp_path / "large" / "a.parquet", rows.repeat(750, axis=0), group=4_000)
    command = [sys.executable, "-c", RESIDENT, tmp_path / "small", tmp_path / "large", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 0.4 * rows.nbytes * 600


@pytest.mark.filterwarnings("ignore:the members are nearly one-hot")
@pytest.mark.parametrize(
    ("dtype", "logits"), [("float16", False), ("float32", True), ("float64", False), ("int64", False)]
)
def test_a_rehearsal_is_like_a_part_and_leaves_no_trace(tmp_path, monkeypatch, dtype, logits):
    compute, seen = sources.wrap_members, []
    monkeypatch.setattr(
        sources, "wrap_members", lambda p, **options: seen.append((p, options)) or compute(p, **options)
    )

    def rehearsed(job, numbers):
        job.scorer.rehearse()
        assert names(tmp_path / "out") == [".lock", "_credalens.json"]
        return in_this_process(job, numbers)

    values = np.eye(4)[VALUES.argmax(-1)] if dtype == "int64" else VALUES * (2 if logits else 1)
    write_table(tmp_path / "in", values.astype(dtype), SIZES, name="logits" if logits else "probs")
    score_folder(tmp_path / "in", tmp_path / "out", logits=logits, base=10, threads=1, executor=rehearsed)
    (rehearsal, options), (part, its_options), *_ = seen
    assert (rehearsal.shape, rehearsal.dtype) == ((3, 1, 4), part.dtype)
    assert options == its_options == {"logits": logits, "base": 10.0, "recalibration": None, "threads": 1}


def test_labels_of_the_first_table_are_kept(tmp_path):
    labels = np.arange(60) % 4
    for table in ("a", "b"):
        start = 0
        for part, size in enumerate(SIZES):
            rows = slice(start, start := start + size)
            columns = {"probs": fixed_lists(VALUES[:, rows].transpose(1, 0, 2).copy()), "id": np.arange(60)[rows]}
            path = tmp_path / table / f"part-{part}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table(columns | ({"label": labels[rows]} if table == "a" else {})), path)
    score_folder([tmp_path / "a", tmp_path / "b"], tmp_path / "out", scores=["total"])
    found = read_columns(parts(tmp_path / "out"))
    assert list(found)[:3] == ["id", "prediction", "label"]
    np.testing.assert_array_equal(found["label"], labels)
    np.testing.assert_array_equal(found["prediction"], wrap(VALUES).predict())
    pq.write_table(
        pq.read_table(tmp_path / "a" / "part-1.parquet").drop_columns("label"), tmp_path / "a" / "part-1.parquet"
    )
    with pytest.raises(ValueError, match=r"part-1.*the first part .* and labels in label"):
        score_folder(tmp_path / "a", tmp_path / "other")
