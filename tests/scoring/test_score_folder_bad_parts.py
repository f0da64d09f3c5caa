"""A bad part stops the job or is left out, as asked; it is named, and nothing else is lost."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credalens import wrap
from credalens.scoring import score_folder
from credalens.scoring.job import in_this_process
from tests.arrow_features import can_write_null_lists
from tests.scoring.folders import VALUES, assert_scored, names, parts, truncate
from tests.scoring.tables import spoil_row, write_part
from tests.strategies import batch_of


def flip(path) -> None:
    """The footer stays whole, a page does not."""
    content = bytearray(path.read_bytes())
    content[10:40] = bytes(255 - value for value in content[10:40])
    path.write_bytes(content)


def spoil(path) -> None:
    spoil_row(path, 11)


BAD = [
    (truncate, "part-1.parquet: cannot be read: it is damaged"),
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
    with pytest.raises(ValueError, match=r"3 parts left out; .*part-0.parquet: row 11"):
        score_folder(source, tmp_path / "out", on_error="skip")
    for path in parts(source):
        truncate(path)
    with pytest.raises(ValueError, match=r"nothing can be read of its 3 parts; the first: .*part-0.parquet"):
        score_folder(source, tmp_path / "out2", on_error="skip")


def test_a_part_of_another_shape_is_a_bad_part(tmp_path, source):
    write_part(source / "part-2.parquet", batch_of("flat", 2, 5, 4).transpose(1, 0, 2))
    with pytest.raises(ValueError, match=r"part-2.parquet: .*2 members of 4 classes.*3 members of 4 classes"):
        score_folder(source, tmp_path / "out")


@pytest.mark.skipif(not can_write_null_lists(), reason="this pyarrow cannot write a missing list")
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
    with pytest.raises(OSError, match=r"No space left on device .*part-1.parquet.*2 of 3 parts are kept"):
        score_folder(source, tmp_path / "out", on_error="skip")


def test_a_worker_with_other_code_does_not_mix_its_digits_in(tmp_path, source):
    def elsewhere(job, numbers):
        other = replace(job, scorer=replace(job.scorer, settings=replace(job.scorer.settings, kernels="of last year")))
        return in_this_process(other, numbers)

    with pytest.raises(OSError, match=r"has another credalens.*0 of 3 parts are kept"):
        score_folder(source, tmp_path / "out", executor=elsewhere, on_error="skip")
