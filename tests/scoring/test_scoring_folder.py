"""A scored folder holds, part by part, what wrap() gives for the rows of each part."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.scoring.tables import read_columns, spoil_row, write_part, write_table
from tests.strategies import batch_of

from credalens import wrap, wrap_logits
from credalens.scoring import COLUMNS, folder_part, score_folder
from credalens.scoring.columns import score_columns
from credalens.scoring.folder import one_by_one
from credalens.storage.parquet_files import fixed_lists

VALUES = batch_of("mixed", 3, 60, 4)
SIZES = (25, 20, 15)


@pytest.fixture
def source(tmp_path):
    write_table(tmp_path / "in", VALUES, SIZES)
    return tmp_path / "in"


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def parts(folder) -> list:
    return sorted(folder.glob("part-*.parquet"))


def assert_scored(folder, prediction, *, rule="maximality") -> None:
    found, expected = read_columns(parts(folder)), score_columns(prediction, rule)
    assert set(COLUMNS) <= set(found)
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)


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


def test_an_unknown_address_is_refused(tmp_path, source):
    with pytest.raises(ValueError, match="no file system for this address"):
        score_folder(source, "carrier-pigeon://nest/out")


# Bad parts


def truncate(path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def flip(path) -> None:
    """The footer stays whole, a page does not."""
    content = bytearray(path.read_bytes())
    content[10:40] = bytes(255 - value for value in content[10:40])
    path.write_bytes(content)


def spoil(path) -> None:
    spoil_row(path, 11)


BAD = [
    (truncate, "part-1.parquet: cannot be read, it is damaged"),
    (flip, "part-1.parquet: "),
    (spoil, r"part-1.parquet: row 11, member 0: it sums to 2; a row must sum to 1"),
]


@pytest.mark.parametrize(("damage", "message"), BAD)
def test_fail_stops_at_a_bad_part_and_goes_on_when_it_is_mended(tmp_path, source, damage, message):
    good = (source / "part-1.parquet").read_bytes()
    damage(source / "part-1.parquet")
    with pytest.raises(ValueError, match=rf"{message}.*1 of 3 parts are kept in .*--on-error skip"):
        score_folder(source, tmp_path / "out", chunk_rows=5)
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet"]
    (source / "part-1.parquet").write_bytes(good)
    summary = score_folder(source, tmp_path / "out", chunk_rows=5)
    assert (summary.resumed_parts, summary.scores.resumed_rows) == (1, 25)
    assert_scored(tmp_path / "out", wrap(VALUES))


@pytest.mark.parametrize(("damage", "message"), BAD)
def test_skip_leaves_a_bad_part_out_and_names_it(tmp_path, source, damage, message):
    damage(source / "part-1.parquet")
    summary = score_folder(source, tmp_path / "out", on_error="skip")
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-2.parquet"]
    [skipped] = summary.skipped
    assert skipped.part == str(source / "part-1.parquet")
    with pytest.raises(ValueError, match=message):
        raise ValueError(skipped.error)
    assert (summary.parts, summary.scores.rows) == (2, 40)
    assert_scored(tmp_path / "out", wrap(np.delete(VALUES, np.s_[25:45], axis=1)))
    assert json.loads(json.dumps(summary.as_dict()))["skipped"][0]["part"] == skipped.part


def test_the_first_part_may_be_the_bad_one(tmp_path, source):
    truncate(source / "part-0.parquet")
    assert score_folder(source, tmp_path / "out", on_error="skip").parts == 2


def test_nothing_but_bad_parts_is_an_error(tmp_path, source):
    for path in parts(source):
        spoil(path)
    with pytest.raises(ValueError, match=r"all 3 parts were left out; the first: .*part-0.parquet: row 11"):
        score_folder(source, tmp_path / "out", on_error="skip")
    for path in parts(source):
        truncate(path)
    with pytest.raises(ValueError, match=r"none of its 3 parts can be read; the first: .*part-0.parquet"):
        score_folder(source, tmp_path / "out2", on_error="skip")


def test_a_part_of_another_shape_is_a_bad_part(tmp_path, source):
    write_part(source / "part-2.parquet", batch_of("flat", 2, 5, 4).transpose(1, 0, 2))
    with pytest.raises(ValueError, match=r"part-2.parquet: holds 2 members of 4 classes.*holds 3 members of 4 classes"):
        score_folder(source, tmp_path / "out")


def test_a_missing_list_is_named_by_its_row(tmp_path, source):
    table = pq.read_table(source / "part-1.parquet")
    lists = table["probs"].to_pylist()
    lists[13] = None
    pq.write_table(pa.table({"probs": pa.array(lists, table["probs"].type)}), source / "part-1.parquet")
    with pytest.raises(ValueError, match=r"part-1.parquet: column 'probs' has no value in row 13"):
        score_folder(source, tmp_path / "out", chunk_rows=6)


def test_a_full_disk_is_no_fault_of_a_part(tmp_path, source, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    score_folder(source, tmp_path / "out")
    (tmp_path / "out" / "part-1.parquet").unlink()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot score .*part-1.parquet.*No space left.*2 of 3 parts are kept"):
        score_folder(source, tmp_path / "out", on_error="skip")


def test_a_worker_with_other_code_does_not_mix_its_digits_in(tmp_path, source):
    def elsewhere(job, numbers):
        other = replace(job, settings=job.settings | {"kernels": "of last year"})
        return one_by_one(other, numbers)

    with pytest.raises(OSError, match=r"has another credalens.*0 of 3 parts are kept"):
        score_folder(source, tmp_path / "out", spread=elsewhere, on_error="skip")


# Whose folder it is


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
    spoil(source / "part-1.parquet")  # what was scored before is of no use now
    assert score_folder(source, tmp_path / "out", on_error="skip").parts == 2
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-2.parquet"]


def test_a_damaged_output_part_is_scored_again(tmp_path, source):
    score_folder(source, tmp_path / "out")
    truncate(tmp_path / "out" / "part-2.parquet")
    assert score_folder(source, tmp_path / "out").resumed_parts == 2
    assert_scored(tmp_path / "out", wrap(VALUES))


def test_other_options_are_refused_until_restarted(tmp_path, source):
    score_folder(source, tmp_path / "out")
    with pytest.raises(ValueError, match=r"written with base 2.0 instead of 10.0.*--restart"):
        score_folder(source, tmp_path / "out", base=10)
    assert score_folder(source, tmp_path / "out", base=10, restart=True).resumed_parts == 0
    assert_scored(tmp_path / "out", wrap(VALUES, base=10))


def test_parts_of_a_vanished_input_are_not_left_among_the_output(tmp_path, source):
    score_folder(source, tmp_path / "out")
    (source / "part-1.parquet").unlink()
    with pytest.raises(ValueError, match=r"1 parts that the input no longer has, such as part-1.parquet"):
        score_folder(source, tmp_path / "out")
    assert score_folder(source, tmp_path / "out", restart=True).parts == 2
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-2.parquet"]


def test_a_damaged_manifest_is_refused_until_restarted(tmp_path, source):
    score_folder(source, tmp_path / "out")
    (tmp_path / "out" / "_credalens.json").write_text("{")
    with pytest.raises(ValueError, match=r"_credalens.json is damaged.*--restart"):
        score_folder(source, tmp_path / "out")
    assert score_folder(source, tmp_path / "out", restart=True).parts == 3


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("left", [".part-0.parquet.1f.partial", "._credalens.json.1f.partial"])
def test_what_a_killed_run_left_half_written_keeps_no_run_out(tmp_path, source, left, restart):
    if "credalens" not in left:
        score_folder(source, tmp_path / "out")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / left).write_text("half")
    assert score_folder(source, tmp_path / "out", restart=restart).parts == 3
    assert names(tmp_path / "out") == ["_credalens.json", "part-0.parquet", "part-1.parquet", "part-2.parquet"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_someone_else_is_left_alone(tmp_path, source, restart):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.parquet").write_text("precious")
    with pytest.raises(ValueError, match=r"files of another origin \(.*thesis.parquet\)"):
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


def test_bad_sources_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in.npy").touch()
    with pytest.raises(FileNotFoundError, match="absent: no such folder"):
        score_folder(tmp_path / "absent", tmp_path / "out")
    with pytest.raises(ValueError, match="holds no Parquet files"):
        score_folder(tmp_path / "in", tmp_path / "out")
    with pytest.raises(ValueError, match="must be a folder of Parquet files"):
        score_folder(tmp_path / "in.npy", tmp_path / "out")
    with pytest.raises(ValueError, match="name at least one folder"):
        score_folder([], tmp_path / "out")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "in" / "a.parquet")
    with pytest.raises(ValueError, match=r"a.parquet: fixed-size lists are looked for under 'probs'; found x: double"):
        score_folder(tmp_path / "in", tmp_path / "out")
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


class Stop(BaseException):
    """Not an Exception, so that nothing on the way may take it for bad input."""


@pytest.mark.parametrize("name", ["replace", "fsync", "unlink"])
def test_a_stop_at_any_step_is_made_good(tmp_path, monkeypatch, source, name):
    score_folder(source, tmp_path / "whole")
    real = getattr(os, name)
    for calls in range(50):
        left = [calls]

        def stopping(*args, left=left, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                raise Stop
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, stopping)
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


RESIDENT = """
import os, sys
from pathlib import Path
import credalens.scoring.folder_part as work
from credalens.scoring import score_folder

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


@pytest.mark.parametrize(("dtype", "logits"), [("float16", False), ("float32", True), ("float64", False)])
def test_a_rehearsal_is_like_a_part_and_leaves_no_trace(tmp_path, monkeypatch, dtype, logits):
    called = "wrap_logits" if logits else "wrap"
    compute, seen = getattr(folder_part, called), []
    monkeypatch.setattr(folder_part, called, lambda p, **options: seen.append((p, options)) or compute(p, **options))

    def rehearsed(job, numbers):
        folder_part.rehearse(job)
        assert names(tmp_path / "out") == ["_credalens.json"]
        return one_by_one(job, numbers)

    write_table(tmp_path / "in", VALUES.astype(dtype), SIZES, name="logits" if logits else "probs")
    score_folder(tmp_path / "in", tmp_path / "out", logits=logits, base=10, threads=1, spread=rehearsed)
    (rehearsal, options), (part, its_options), *_ = seen
    assert (rehearsal.shape, rehearsal.dtype) == ((3, 1, 4), part.dtype)
    assert options == its_options == {"base": 10.0, "threads": 1}
