"""Rows read from a file are the rows that were saved, in every format, precision and order of reading."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import wrap
from credalens.storage import open_predictions, read_labels, save_predictions
from credalens.storage.formats.parquet import fixed_lists
from tests.memory_use import with_peak
from tests.strategies import batch_of

torch = pytest.importorskip("torch")
save_tensors = pytest.importorskip("safetensors.torch").save_file

FORMATS = (".npy", ".npz", ".parquet", ".safetensors")


def members(rows: int = 40, dtype: str = "float32", count: int = 3, classes: int = 4) -> np.ndarray:
    return batch_of("peaked", count, rows, classes).astype(dtype)


@st.composite
def saved(draw: st.DrawFn) -> tuple[str, np.ndarray, list[tuple[int, int]]]:
    """A format, an array and slices of its rows in any order."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(2, 5)))
    dtype = draw(st.sampled_from(["float16", "float32", "float64"]))
    values = np.random.default_rng(draw(st.integers(0, 99))).random(shape).astype(dtype)
    row = st.integers(0, shape[1])
    slices = draw(st.lists(st.tuples(row, row).map(sorted).map(tuple), min_size=1, max_size=5))
    return draw(st.sampled_from(FORMATS)), values, slices


@given(saved())
@settings(derandomize=True, deadline=None, max_examples=80)
def test_every_slice_comes_back_as_it_was_saved(tmp_path_factory, case):
    suffix, values, slices = case
    path = tmp_path_factory.mktemp("saved") / f"members{suffix}"
    save_predictions(path, values, logits=True)
    predictions = open_predictions(path, member_axis=0, logits=True)
    assert predictions.shape == values.shape
    assert predictions.dtype == values.dtype.name
    for start, stop in slices:
        part = predictions.read(start, stop)
        assert part.dtype == values.dtype
        np.testing.assert_array_equal(part, values[:, start:stop])


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("rows", [1, 7, 40, 100])
def test_chunks_in_a_row_are_the_whole(tmp_path, suffix, rows):
    save_predictions(tmp_path / f"m{suffix}", members())
    chunks = list(open_predictions(tmp_path / f"m{suffix}").chunks(rows))
    assert max(chunk.shape[1] for chunk in chunks) <= rows
    np.testing.assert_array_equal(np.concatenate(chunks, axis=1), members())


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".safetensors"])
def test_labels_lie_next_to_the_predictions(tmp_path, suffix):
    path, labels = tmp_path / f"m{suffix}", np.arange(40) % 4
    save_predictions(path, members(), labels)
    assert open_predictions(path).has_labels
    read = read_labels(path, rows=40, classes=4)
    assert read.dtype == np.int64
    np.testing.assert_array_equal(read, labels)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_labels_in_a_file_of_their_own(tmp_path, dtype):
    labels = np.array([3, 0, 2], dtype=dtype)
    np.save(tmp_path / "labels.npy", labels)
    np.savez(tmp_path / "labels.npz", y=labels)
    pq.write_table(pa.table({"label": labels}), tmp_path / "labels.parquet")
    for suffix in (".npy", ".npz", ".parquet"):
        np.testing.assert_array_equal(read_labels(tmp_path / f"labels{suffix}"), [3, 0, 2])


def test_numpy_reads_what_was_saved(tmp_path):
    save_predictions(tmp_path / "m.npy", members())
    save_predictions(tmp_path / "m.npz", members(), labels=np.arange(40))
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy", allow_pickle=False), members())
    with np.load(tmp_path / "m.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["probs"], members())
        np.testing.assert_array_equal(archive["labels"], np.arange(40))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_safetensors_package_agrees_both_ways(tmp_path, dtype):
    values, labels = members(dtype=dtype), np.arange(40)
    save_predictions(tmp_path / "ours.safetensors", values, labels)
    loaded = safetensors.numpy.load_file(tmp_path / "ours.safetensors")
    np.testing.assert_array_equal(loaded["probs"], values)
    np.testing.assert_array_equal(loaded["labels"], labels)
    safetensors.numpy.save_file({"probs": values, "labels": labels}, tmp_path / "theirs.safetensors", {"a": "b"})
    np.testing.assert_array_equal(open_predictions(tmp_path / "theirs.safetensors").read(), values)
    np.testing.assert_array_equal(read_labels(tmp_path / "theirs.safetensors"), labels)


def test_bfloat16_gives_what_wrap_gives_for_the_tensor(tmp_path):
    tensor = torch.from_numpy(members(dtype="float64")).to(torch.bfloat16)
    save_tensors({"probs": tensor}, tmp_path / "m.safetensors")
    predictions = open_predictions(tmp_path / "m.safetensors")
    assert predictions.dtype == "bfloat16"
    read, given = wrap(predictions.read()), wrap(tensor)
    np.testing.assert_allclose(read.probability, given.probability.numpy(), atol=1e-6)
    np.testing.assert_allclose(read.epistemic, given.epistemic.numpy(), atol=1e-5)
    save_predictions(tmp_path / "m.npy", tensor)
    np.testing.assert_allclose(wrap(open_predictions(tmp_path / "m.npy").read()).lower, given.lower.numpy(), atol=1e-6)


def test_bfloat16_logits_are_read_bit_for_bit(tmp_path):
    tensor = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    save_tensors({"logits": tensor}, tmp_path / "m.safetensors")
    read = open_predictions(tmp_path / "m.safetensors", logits=True).read()
    np.testing.assert_array_equal(read, tensor.float().numpy())


def test_bfloat16_rows_that_are_no_distribution_are_still_refused(tmp_path):
    save_tensors({"probs": torch.ones(1, 2, 3, dtype=torch.bfloat16)}, tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="sums to 3"):
        wrap(open_predictions(tmp_path / "m.safetensors").read())


def test_other_memory_orders_are_understood(tmp_path):
    np.save(tmp_path / "fortran.npy", np.asfortranarray(members()))
    np.save(tmp_path / "big.npy", members().astype(">f4"))
    for name in ("fortran", "big"):
        part = open_predictions(tmp_path / f"{name}.npy").read(3, 9)
        assert part.dtype == np.float32
        assert part.flags.c_contiguous
        np.testing.assert_array_equal(part, members()[:, 3:9])


def test_npz_is_mapped_unless_it_is_compressed(tmp_path):
    np.savez(tmp_path / "plain.npz", probs=members(), other=np.zeros(3))
    np.savez_compressed(tmp_path / "small.npz", whatever=members())
    plain, small = open_predictions(tmp_path / "plain.npz"), open_predictions(tmp_path / "small.npz")
    assert (plain.access, small.access) == ("memory-mapped", "loaded whole")
    np.testing.assert_array_equal(plain.read(5, 9), members()[:, 5:9])
    np.testing.assert_array_equal(small.read(5, 9), members()[:, 5:9])


@pytest.mark.parametrize("group", [1, 7, 1000])
def test_both_parquet_layouts_over_row_groups(tmp_path, group):
    values = members()
    nested = pa.table({"id": np.arange(40), "probs": fixed_lists(np.ascontiguousarray(values.transpose(1, 0, 2)))})
    columns = pa.table({f"member_{n}": fixed_lists(values[n]) for n in (2, 0, 1)})
    for name, table in (("nested", nested), ("columns", columns)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=group)
        predictions = open_predictions(tmp_path / f"{name}.parquet")
        for start, stop in ((0, 3), (3, 11), (30, 40), (2, 29), (29, 29)):
            np.testing.assert_array_equal(predictions.read(start, stop), values[:, start:stop])


def test_polars_arrays_are_understood(tmp_path):
    frame = pl.DataFrame({f"member_{n}": pl.Series(p, dtype=pl.Array(pl.Float32, 4)) for n, p in enumerate(members())})
    frame.write_parquet(tmp_path / "m.parquet")
    np.testing.assert_array_equal(open_predictions(tmp_path / "m.parquet").read(), members())


def test_ten_members_keep_their_order(tmp_path):
    values = members(count=12)
    pq.write_table(pa.table({f"member_{n}": fixed_lists(values[n]) for n in range(12)}), tmp_path / "m.parquet")
    np.testing.assert_array_equal(open_predictions(tmp_path / "m.parquet").read(), values)


@pytest.mark.parametrize("suffix", FORMATS)
def test_logits_go_under_their_own_name(tmp_path, suffix):
    path, logits = tmp_path / f"m{suffix}", np.log(members())
    save_predictions(path, logits, logits=True)
    assert open_predictions(path, logits=True).logits
    np.testing.assert_array_equal(open_predictions(path, logits=True).read(), logits)
    if suffix != ".npy":
        with pytest.raises(ValueError, match="holds logits, not probabilities"):
            open_predictions(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_reading_a_few_rows_takes_the_memory_of_a_few_rows(tmp_path, suffix):
    values = np.full((4, 50_000, 5), 0.2)
    save_predictions(tmp_path / f"m{suffix}", values)
    predictions = open_predictions(tmp_path / f"m{suffix}")
    _, peak = with_peak(lambda: predictions.read(20_000, 20_100))
    assert peak < values.nbytes / 50


def test_one_large_row_group_is_streamed(tmp_path):
    values = np.random.default_rng(0).random((4, 200_000, 5))
    table = pa.table({"probs": fixed_lists(np.ascontiguousarray(values.transpose(1, 0, 2)))})
    pq.write_table(table, tmp_path / "m.parquet", row_group_size=200_000, use_dictionary=False)
    del table
    before = pa.total_allocated_bytes()
    predictions = open_predictions(tmp_path / "m.parquet")
    np.testing.assert_array_equal(predictions.read(0, 100), values[:, :100])
    assert pa.total_allocated_bytes() - before < values.nbytes / 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wrap_does_not_copy_a_memory_map(tmp_path, dtype):
    values = batch_of("flat", 40, 50, 4).astype(dtype).repeat(400, axis=1)  # many chunks: one's work memory is 2.5 MB
    np.save(tmp_path / "m.npy", values)
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r", allow_pickle=False)
    _ = wrap(mapped, threads=1).classical  # compiles what is not in the cache yet

    def work():
        prediction = wrap(mapped, threads=1)
        _ = prediction.classical
        return prediction

    prediction, peak = with_peak(work)
    assert peak < values.nbytes / 2
    np.testing.assert_array_equal(prediction.lower, wrap(values).lower)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
def test_rows_first_is_read_with_member_axis_1(tmp_path, suffix):
    values = np.random.default_rng(0).dirichlet(np.ones(4), (3, 20))
    save_predictions(tmp_path / f"m{suffix}", values.swapaxes(0, 1))
    with pytest.warns(UserWarning, match=r"20 members, .* 3 rows, .*--member-axis 1.*member_axis=0 confirms"):
        open_predictions(tmp_path / f"m{suffix}")
    assert open_predictions(tmp_path / f"m{suffix}", member_axis=0).shape == (20, 3, 4)
    predictions = open_predictions(tmp_path / f"m{suffix}", member_axis=1)
    for found in (predictions, pickle.loads(pickle.dumps(predictions))):  # noqa: S301
        assert (found.members, found.rows, found.classes) == (3, 20, 4)
        np.testing.assert_array_equal(found.read(5, 12), values[:, 5:12])
        np.testing.assert_array_equal(np.concatenate(list(found.chunks(7)), axis=1), values)


def test_rows_of_parquet_are_rows(tmp_path):
    save_predictions(tmp_path / "m.parquet", np.full((20, 3, 4), 0.25))
    assert open_predictions(tmp_path / "m.parquet").shape == (20, 3, 4)
    with pytest.raises(ValueError, match=r"leave it out, .*member_axis=1"):
        open_predictions(tmp_path / "m.parquet", member_axis=1)


def test_a_file_of_probabilities_is_not_read_as_logits(tmp_path):
    save_predictions(tmp_path / "m.npz", np.full((2, 3, 4), 0.25))
    with pytest.raises(ValueError, match=r"m\.npz: .*leave out logits=True \(--logits\)"):
        open_predictions(tmp_path / "m.npz", logits=True)


def test_maps_are_not_told_to_become_rows(tmp_path):
    """Pixels are no samples, unless somebody says that they are."""
    np.save(tmp_path / "maps.npy", np.full((3, 5, 8, 8, 4), 0.25))
    with pytest.raises(ValueError, match=r"got \(3, 5, 8, 8, 4\)\. .* pixels of an image are not") as e:
        open_predictions(tmp_path / "maps.npy")
    assert "if every entry really is a sample of its own" in str(e.value)
    np.save(tmp_path / "one.npy", np.full((5, 4), 0.25))
    with pytest.raises(ValueError, match=r"got \(5, 4\)\. .*array\[None\]\.$"):
        open_predictions(tmp_path / "one.npy")
