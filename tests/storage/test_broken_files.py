"""Files that are damaged, cut short or hold something else: one clear ValueError that names the file, never a number."""

from __future__ import annotations

import io
import os
import pickle
import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens.scoring import score_file
from credalens.storage import open_predictions, read_labels, save_predictions
from credalens.storage.formats.files import ALL_FORMATS
from credalens.storage.formats.parquet import fixed_lists
from tests.arrow_features import can_write_null_lists
from tests.strategies import batch_of

FORMATS = (".npy", ".npz", ".parquet", ".safetensors")
VALUES = batch_of("flat", 3, 20, 4).astype(np.float32)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("kept", [0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(tmp_path, suffix, kept):
    path = tmp_path / f"members{suffix}"
    save_predictions(path, VALUES)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ValueError, match=rf"members\{suffix}: cannot be read: it is damaged"):
        open_predictions(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_shrinks_after_it_was_opened_is_refused(tmp_path, suffix):
    path = tmp_path / f"members{suffix}"
    save_predictions(path, VALUES)
    predictions = open_predictions(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="cannot be read"):
        predictions.read(15, 20)


def test_an_npy_header_that_never_ends(tmp_path):
    """NumPy raises a TokenError here, which is no ValueError."""
    save_predictions(tmp_path / "m.npy", VALUES)
    (tmp_path / "m.npy").write_bytes((tmp_path / "m.npy").read_bytes().replace(b"}", b"("))
    with pytest.raises(ValueError, match=r"m.npy: cannot be read"):
        open_predictions(tmp_path / "m.npy")


@given(st.sampled_from(FORMATS), st.data())
@settings(derandomize=True, deadline=None, max_examples=75)
def test_any_damage_gives_an_array_or_a_value_error(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("damaged") / f"members{suffix}"
    save_predictions(path, VALUES)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    path.write_bytes(content)
    message = read_or_message(path)
    assert not message or str(path) in message


def test_what_no_memory_can_hold_is_refused_by_name(tmp_path, monkeypatch):
    """A changed size in front of a page of Parquet makes Arrow ask for gigabytes."""
    save_predictions(tmp_path / "m.parquet", VALUES)

    def iter_batches(*args, **kwargs):
        raise pa.ArrowMemoryError("malloc of size 2147483648 failed")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    with pytest.raises(OSError, match=r"m\.parquet: .* memory .*size 21.*fewer rows"):
        open_predictions(tmp_path / "m.parquet").read()


def read_or_message(path) -> str:
    try:
        predictions = open_predictions(path)
        assert predictions.read().shape == predictions.shape
    except ValueError as error:
        return str(error)
    return ""


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_pickles_are_never_loaded(tmp_path):
    trap = Trap(tmp_path / "sprung")
    objects = np.empty((1, 1, 2), dtype=object)
    objects[:] = trap
    np.save(tmp_path / "object.npy", objects)
    np.savez(tmp_path / "object.npz", probs=objects)
    np.savez_compressed(tmp_path / "small.npz", probs=objects)
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(trap))
    for name in ("object.npy", "object.npz", "small.npz"):
        with pytest.raises(ValueError, match=rf"{name}: holds pickled Python objects, which are never loaded"):
            open_predictions(tmp_path / name)
    with pytest.raises(ValueError, match=r"raw.npy: cannot be read"):
        open_predictions(tmp_path / "raw.npy")
    with pytest.raises(ValueError, match="pickled"):
        read_labels(tmp_path / "object.npy")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((4, 3), np.float32), r"shape \(members, rows, classes\); got \(4, 3\).*array\[None\]"),
        (np.ones((2, 2, 4, 3), np.float32), r"got \(2, 2, 4, 3\).*reshape"),
        (np.ones((2, 4, 3), np.uint32), "must hold one of float16, bfloat16, float32, float64, int8, .*; got uint32"),
        (np.ones((2, 4, 3), complex), "got complex128"),
        (np.ones((0, 4, 3)), "has no members"),
        (np.ones((2, 0, 3)), "has no rows"),
        (np.ones((2, 4, 1)), "at least two classes"),
    ],
)
def test_arrays_of_another_kind_are_refused_on_both_ways(tmp_path, values, message):
    np.save(tmp_path / "m.npy", values)
    with pytest.raises(ValueError, match=message):
        open_predictions(tmp_path / "m.npy")
    with pytest.raises(ValueError, match=message):
        save_predictions(tmp_path / "saved.npz", values)
    assert not (tmp_path / "saved.npz").exists()


def test_files_that_are_no_files(tmp_path):
    *others, last = ALL_FORMATS
    with pytest.raises(FileNotFoundError, match=r"absent.npy: no such file"):
        open_predictions(tmp_path / "absent.npy")
    with pytest.raises(
        ValueError, match=rf"unknown format '.pkl'; .* {re.escape(', '.join(others))} or {re.escape(last)}\."
    ):
        open_predictions(tmp_path / "members.pkl")
    with pytest.raises(ValueError, match="no suffix"):
        open_predictions(tmp_path)
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        open_predictions(tmp_path / "folder.npy")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save_predictions(tmp_path / "folder.npy", VALUES)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_predictions(tmp_path / "absent" / "m.npy", VALUES)


def test_which_array_is_meant_must_be_clear(tmp_path):
    np.savez(tmp_path / "two.npz", a=VALUES, b=VALUES)
    with pytest.raises(ValueError, match=r"'probs'.* found 'a', 'b'.*save_predictions"):
        open_predictions(tmp_path / "two.npz")
    np.savez(tmp_path / "labels.npz", labels=np.arange(3))
    with pytest.raises(ValueError, match="found 'labels'"):
        open_predictions(tmp_path / "labels.npz")


def parquet_columns(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_member_columns_must_fit_together(tmp_path):
    four, three = fixed_lists(VALUES[0]), fixed_lists(np.ascontiguousarray(VALUES[0][:, :3]))
    gap = parquet_columns(tmp_path / "gap.parquet", member_0=four, member_2=four)
    with pytest.raises(ValueError, match="must be member_0 to member_1; got member_0, member_2"):
        open_predictions(gap)
    uneven = parquet_columns(tmp_path / "uneven.parquet", member_0=four, member_1=three)
    with pytest.raises(ValueError, match="one length and one type"):
        open_predictions(uneven)
    with pytest.raises(ValueError, match=r"must be fixed-size lists.*got member_0: double"):
        open_predictions(parquet_columns(tmp_path / "scalars.parquet", member_0=pa.array([0.5])))


ROWS = VALUES.transpose(1, 0, 2).astype(np.float64)
LISTS = pa.list_(pa.list_(pa.float64()))


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"probs": pa.array(ROWS.tolist(), LISTS)}, "probs"),
        ({"probs": pa.array(ROWS.tolist(), LISTS), "label": pa.array([0] * len(ROWS))}, "probs"),
        ({"probs": pa.array(ROWS.tolist(), pa.large_list(pa.list_(pa.float64(), 4)))}, "probs"),
        ({"probs": pa.array(ROWS.tolist(), pa.list_(pa.list_(pa.float64()), 3))}, "probs"),
        ({"image": pa.array(["a"] * len(ROWS)), "probs": pa.array(ROWS[:, 0].tolist())}, "probs"),
        ({f"member_{n}": pa.array(ROWS[:, n].tolist()) for n in range(len(VALUES))}, "member_."),
    ],
)
def test_lists_of_variable_size_are_named_with_the_line_that_converts_them(tmp_path, columns, named):
    path = parquet_columns(tmp_path / "variable.parquet", **columns)
    with pytest.raises(ValueError, match=rf"variable\.parquet: array '{named}'.*fixed-size") as raised:
        open_predictions(path)
    line = re.search(r"column\.cast\(.*\)(?= converts)", str(raised.value)).group()
    names = {"pa": pa, "MEMBERS": len(VALUES), "CLASSES": VALUES.shape[2]}
    fixed = {
        name: eval(line, names, {"column": column}) if pa.types.is_nested(column.type) else column  # noqa: S307
        for name, column in columns.items()
    }
    converted = open_predictions(parquet_columns(tmp_path / "fixed.parquet", **fixed))
    np.testing.assert_array_equal(converted.read(), VALUES[: len(converted.read())])


def test_lists_inside_other_types_are_not_told_to_be_cast(tmp_path):
    kind = pa.struct({"values": pa.list_(pa.float64())})
    path = parquet_columns(tmp_path / "struct.parquet", member_0=pa.array([{"values": [0.5, 0.5]}], kind))
    with pytest.raises(ValueError, match=r"struct\.parquet: array 'member_.*float16.*got struct<"):
        open_predictions(path)


def test_lists_of_words_are_no_predictions(tmp_path):
    words = parquet_columns(tmp_path / "words.parquet", tags=pa.array([["a", "b"]]))
    with pytest.raises(ValueError, match="found none"):
        open_predictions(words)


def test_labels_are_read_next_to_lists_of_variable_size(tmp_path):
    path = parquet_columns(tmp_path / "m.parquet", probs=pa.array(ROWS.tolist()), label=pa.array([1] * len(ROWS)))
    assert read_labels(path).tolist() == [1] * len(ROWS)


@pytest.mark.skipif(not can_write_null_lists(), reason="this pyarrow cannot write a missing list")
def test_missing_values_in_parquet_are_named_or_nan(tmp_path):
    kind = pa.list_(pa.list_(pa.float32(), 2), 2)
    good = [[0.5, 0.5], [1.0, 0.0]]
    row = parquet_columns(tmp_path / "row.parquet", probs=pa.array([good, good, None, good], kind))
    with pytest.raises(ValueError, match="column 'probs' has no value in row 2"):
        open_predictions(row).read()
    rows = [good, [None, [0.5, 0.5]], [[1.0, 0.0], None]]
    member = parquet_columns(tmp_path / "member.parquet", probs=pa.array(rows, kind))
    with pytest.raises(ValueError, match="lacks one member's list"):
        open_predictions(member).read()
    number = parquet_columns(tmp_path / "number.parquet", probs=pa.array([good, [[0.5, None], [1.0, 0.0]]], kind))
    read = open_predictions(number).read()
    assert np.isnan(read).nonzero()[0].tolist() == [0]
    assert np.isnan(read[0, 1, 1])
    labels = parquet_columns(tmp_path / "labels.parquet", label=pa.array([1, None]))
    with pytest.raises(ValueError, match="column 'label' has no value in row 1"):
        read_labels(labels)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    ("damage", "where"),
    [
        *((name, "both") for name in (b"labels\0npy", b"labels.np\0", b"labels.nqy", b"labels/npy", b"\0abels.npy")),
        *((name, "directory") for name in (b"labels\0npy", b"labels.nqy", b"lab\xffls.npy", b"labelt.npy")),
    ],
)
def test_labels_whose_name_is_damaged_do_not_vanish(tmp_path, save, damage, where):
    path = tmp_path / "m.npz"
    save(path, probs=VALUES, labels=np.zeros(20, int))
    content = path.read_bytes()
    at = content.rindex(b"labels.npy")
    broken = content[:at] + damage + content[at + 10 :]
    path.write_bytes(broken.replace(b"labels.npy", damage) if where == "both" else broken)
    with pytest.raises(ValueError, match=r"m\.npz: cannot be read: it is damaged"):
        open_predictions(path)


def test_an_array_that_comes_twice_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, VALUES)
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("probs.npy", buffer.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("probs.npy", buffer.getvalue())
    with pytest.raises(ValueError, match=r"has 2 entries 'probs.npy'"):
        open_predictions(tmp_path / "m.npz")


def test_a_header_that_promises_more_than_there_is(tmp_path):
    """A few bytes must not make the reader ask for terabytes."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**9, 10**3)}
    )
    (tmp_path / "m.npy").write_bytes(buffer.getvalue())
    with zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probs.npy", buffer.getvalue())
    for suffix in (".npy", ".npz"):
        with pytest.raises(ValueError, match="cannot be read"):
            open_predictions(tmp_path / f"m{suffix}")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0.0, 1.0]), "must be integers"),
        (np.eye(2, dtype=int), r"shape \(2, 2\).*argmax"),
        (np.array([0, 1, 1]), "3 labels for 2 rows"),
        (np.array([0, 2]), "the first is 2 in row 1; labels are from 0 to 1"),
        (np.array([-1, 0]), "the first is -1 in row 0"),
    ],
)
def test_labels_that_do_not_fit(tmp_path, labels, message):
    np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(ValueError, match=message):
        read_labels(tmp_path / "labels.npy", rows=2, classes=2)


def test_labels_that_are_not_there(tmp_path):
    np.savez(tmp_path / "m.npz", probs=VALUES, other=VALUES)
    with pytest.raises(ValueError, match="holds no labels; found 'probs', 'other'"):
        read_labels(tmp_path / "m.npz")


def test_predicted_labels_are_not_taken_for_true_ones(tmp_path):
    save_predictions(tmp_path / "m.npy", VALUES)
    for suffix, message in (
        (".parquet", "holds scores, not predictions"),
        (".npz", "holds no labels; found 'prediction'"),
    ):
        score_file(tmp_path / "m.npy", tmp_path / f"scored{suffix}")
        with pytest.raises(ValueError, match=message):
            read_labels(tmp_path / f"scored{suffix}")
    with pytest.raises(ValueError, match="holds scores, not predictions of members"):
        open_predictions(tmp_path / "scored.parquet")


def test_rows_out_of_range(tmp_path):
    save_predictions(tmp_path / "m.npy", VALUES)
    predictions = open_predictions(tmp_path / "m.npy")
    for start, stop in ((-1, 3), (0, 21), (5, 4)):
        with pytest.raises(ValueError, match=f"cannot read rows {start} to {stop}"):
            predictions.read(start, stop)
    with pytest.raises(ValueError, match="at least 1 row"):
        list(predictions.chunks(0))
