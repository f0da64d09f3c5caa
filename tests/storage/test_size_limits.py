"""Small files that unfold to more than memory holds: refused by what they declare, before anything is unfolded."""

from __future__ import annotations

import io
import zipfile
from copy import copy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credalens.storage import open_predictions, read_labels, save_predictions
from credalens.storage.formats.files import UnsuitableError, check_unfolded
from tests.arrow_features import can_write_null_lists
from tests.memory_use import with_peak
from tests.strategies import batch_of

VALUES = batch_of("flat", 2, 5, 3)
HALVES = np.full((1, 100_000, 2), 0.5, np.float32)


def peak_of(action) -> int:
    return with_peak(action)[1]


def test_what_is_not_asked_for_is_not_inflated(tmp_path):
    np.savez_compressed(tmp_path / "m.npz", probs=VALUES, bomb=np.zeros(1 << 22))
    assert peak_of(lambda: open_predictions(tmp_path / "m.npz").read()) < 1 << 20


@pytest.mark.parametrize("form", ["npz", "parquet"])
def test_declared_sizes_are_compared_with_the_limit(tmp_path, form):
    path, needed = tmp_path / f"m.{form}", HALVES.nbytes
    if form == "npz":
        np.savez_compressed(path, probs=HALVES)
    else:
        save_predictions(path, HALVES)
    message = rf"m.{form}: .* bytes unfold to 800,000, .* 799,999.*max_bytes=800000 \(--max-bytes 800000\)"
    with pytest.raises(ValueError, match=message):
        open_predictions(path, max_bytes=needed - 1)
    predictions = open_predictions(path, max_bytes=needed)
    for opened in (predictions, copy(predictions)):  # a copy is opened anew, as in another process
        np.testing.assert_array_equal(opened.read(), HALVES)


@pytest.mark.skipif(not can_write_null_lists(), reason="this pyarrow cannot write a missing list")
def test_missing_lists_take_as_much_memory_as_others(tmp_path):
    """In the file a missing row takes no bytes, in memory a list of zeros."""
    rows = pa.nulls(50, pa.list_(pa.list_(pa.float32(), 100), 100))
    pq.write_table(pa.table({"probs": rows}), tmp_path / "m.parquet")
    assert (tmp_path / "m.parquet").stat().st_size < 1_000
    with pytest.raises(ValueError, match="unfold to 2,000,000"):
        open_predictions(tmp_path / "m.parquet", max_bytes=1_999_999)


def test_files_of_plain_memory_unfold_nothing(tmp_path):
    for suffix in (".npy", ".npz", ".safetensors"):
        save_predictions(tmp_path / f"m{suffix}", VALUES)
        np.testing.assert_array_equal(open_predictions(tmp_path / f"m{suffix}", max_bytes=1).read(), VALUES)


def test_a_million_equal_labels_in_a_few_bytes(tmp_path):
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"label": np.zeros(1_000_000, np.int64)}), path)
    with pytest.raises(ValueError, match="unfold to 8,000,000"):
        read_labels(path, max_bytes=1_000_000)
    before = pa.total_allocated_bytes()
    with pytest.raises(ValueError, match="1,000,000 labels for 5 rows"):
        read_labels(path, rows=5)
    assert pa.total_allocated_bytes() - before < 1_000_000


@pytest.mark.parametrize(("needed", "size", "allowed"), [(1 << 30, 1, True), ((1 << 30) + 1, 744, False),
                                                         (10**12, 10**10, True), (10**12 + 1, 10**10, False)])  # fmt: skip
def test_the_limit_is_a_gibibyte_or_a_hundred_times_the_file(needed, size, allowed):
    if allowed:
        check_unfolded(needed, size, None)
    else:
        with pytest.raises(UnsuitableError, match="max_bytes"):
            check_unfolded(needed, size, None)


def test_a_npy_header_of_gigabytes_is_not_read(tmp_path):
    """Version 2 has a length of four bytes, and NumPy reads as much before it looks."""
    with (
        zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("probs.npy", "w") as entry,
    ):
        entry.write(np.lib.format.magic(2, 0) + (1 << 24).to_bytes(4, "little"))
        entry.write(b" " * (1 << 24))

    def refuse():
        with pytest.raises(ValueError, match="cannot be read"):
            open_predictions(tmp_path / "m.npz")

    assert peak_of(refuse) < 1 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_without_a_bound_is_refused(tmp_path, method):
    """Python unfolds these without a limit, whatever size the entry declares."""
    buffer = io.BytesIO()
    np.save(buffer, VALUES)
    with zipfile.ZipFile(tmp_path / "m.npz", "w", method) as archive:
        archive.writestr("probs.npy", buffer.getvalue())
    with pytest.raises(ValueError, match=r"probs.npy is compressed in a way that NumPy never writes"):
        open_predictions(tmp_path / "m.npz")
