"""Data sets: tiny files of every layout are written here and read back; what is wrong or missing is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from credalens.paper.corruptions import CORRUPTIONS, corrupt
from credalens.paper.data import (
    DATA_SETS,
    ImageSet,
    ImageSource,
    augment,
    corrupted_images,
    device_bytes,
    digits_images,
    load_corrupted,
    load_images,
    normalised,
    normalization,
    open_images,
    photo_images,
    texture_images,
    to_device_tensor,
)
from credalens.paper.data.pickles import read_pickle

WNIDS = [f"n{k:08d}" for k in range(1000)]


def some_images(count: int, height: int = 32, width: int | None = None, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, height, width or height, 3), dtype=np.uint8)


def png(image: np.ndarray) -> bytes:
    stored = io.BytesIO()
    Image.fromarray(image).save(stored, "PNG")
    return stored.getvalue()


# --- the original archives ---------------------------------------------------------------------------------------


def python2(value) -> bytes:
    """A value in the opcodes that Python 2 and NumPy 1 wrote: byte strings, old module names, protocol 2."""
    match value:
        case bool():
            return b"\x88" if value else b"\x89"
        case None:
            return b"N"
        case int():
            return b"J" + struct.pack("<i", value)
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case tuple():
            return b"(" + b"".join(map(python2, value)) + b"t"
        case list():
            return b"](" + b"".join(map(python2, value)) + b"e"
        case dict():
            return b"}(" + b"".join(python2(key) + python2(item) for key, item in value.items()) + b"u"
        case np.ndarray():
            code = b"cnumpy\ndtype\n" + python2((value.dtype.str[1:].encode(), 0, 1)) + b"R"
            order = value.dtype.str[:1].encode()
            dtype = code + python2((3, order, None, None, None, -1, -1, 0)) + b"b"
            empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + python2((0,)) + python2(b"b") + b"tR"
            state = b"(" + python2(1) + python2(value.shape) + dtype + python2(False) + python2(value.tobytes()) + b"t"
            return empty + state + b"b"
    raise TypeError(type(value))


def pickled2(content: dict) -> bytes:
    return b"\x80\x02" + python2(content) + b"."


def rows_of(images: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2).reshape(len(images), -1))


def write_cifar10(folder, write=pickled2):
    folder.mkdir(parents=True)
    images, labels = some_images(30), np.arange(30) % 10
    for k, name in enumerate([f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]):
        part = slice(5 * k, 5 * k + 5)
        content = {b"data": rows_of(images[part]), b"labels": labels[part].tolist(), b"batch_label": b"one"}
        (folder / name).write_bytes(write(content))
    names = [f"class {k}".encode() for k in range(10)]
    (folder / "batches.meta").write_bytes(write({b"label_names": names, b"num_vis": 3072}))
    return images, labels


WRITERS = {
    "python 2": pickled2,
    "protocol 2": lambda content: pickle.dumps(content, protocol=2),
    "protocol 4": lambda content: pickle.dumps(content, protocol=4),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_cifar10_batches_come_back(tmp_path, write):
    images, labels = write_cifar10(tmp_path / "cifar-10-batches-py", write)
    train, test = (load_images("cifar10", tmp_path, split=split) for split in ("train", "test"))
    np.testing.assert_array_equal(train.images, images[:25])
    np.testing.assert_array_equal(test.images, images[25:])
    np.testing.assert_array_equal(train.labels, labels[:25])
    assert train.labels.dtype == np.int64
    assert test.class_names[3] == "class 3"
    assert test.name == "cifar10"


def test_the_python2_writer_of_this_test_writes_real_pickles():
    content = {b"data": np.arange(6, dtype=np.uint8).reshape(2, 3), b"labels": [1, -2], b"name": b"x"}
    back = pickle.loads(pickled2(content), encoding="bytes")  # noqa: S301  # our own bytes
    assert back[b"labels"] == [1, -2]
    np.testing.assert_array_equal(back[b"data"], content[b"data"])


@pytest.mark.parametrize("place", ["cifar-10-batches-py", "cifar10/cifar-10-batches-py", "CIFAR-10"])
def test_a_set_is_found_in_its_own_folder_or_the_one_above(tmp_path, place):
    images, _ = write_cifar10(tmp_path / place)
    np.testing.assert_array_equal(load_images("cifar10", tmp_path).images, images[25:])
    np.testing.assert_array_equal(load_images("cifar10", str(tmp_path / place)).images, images[25:])


def test_cifar100_has_its_fine_labels(tmp_path):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    images = some_images(4)
    content = {b"data": rows_of(images), b"fine_labels": [5, 99, 0, 7], b"coarse_labels": [1, 2, 3, 4]}
    (folder / "train").write_bytes(pickled2(content))
    (folder / "meta").write_bytes(pickled2({b"fine_label_names": [f"fine {k}".encode() for k in range(100)]}))
    read = load_images("cifar100", tmp_path, split="train")
    np.testing.assert_array_equal(read.images, images)
    assert read.labels.tolist() == [5, 99, 0, 7]
    assert read.class_names[99] == "fine 99"
    with pytest.raises(FileNotFoundError, match="no test split of CIFAR-100"):
        load_images("cifar100", tmp_path, split="test")


def test_a_missing_batch_is_not_overlooked(tmp_path):
    write_cifar10(tmp_path / "cifar-10-batches-py")
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3 is missing beside its siblings"):
        load_images("cifar10", tmp_path, split="train")


class Malicious:
    """Unpickled by the usual reader this runs a command."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_pickle_that_runs_code_is_refused_and_not_run(tmp_path, protocol):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    trace = tmp_path / "it_ran"
    harmful = pickle.dumps({b"data": Malicious(f"touch {trace}"), b"labels": []}, protocol=protocol)
    (folder / "test_batch").write_bytes(harmful)
    with pytest.raises(ValueError, match=r"test_batch was not read: it asks for (posix|nt)\.system"):
        load_images("cifar10", tmp_path)
    assert not trace.exists()
    pickle.loads(harmful)  # noqa: S301  # to show that the file would have run
    assert trace.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"cbuiltins\neval\n(S'1+1'\ntR.",
        b"cbuiltins\ngetattr\n.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"ccredalens.paper.data.pickles\nread_pickle\n.",
        b"(ios\nsystem\nS'true'\n.",
        b"cos\nsystem\n.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    ],
)
def test_every_other_name_is_refused(tmp_path, body):
    (tmp_path / "file").write_bytes(body)
    with pytest.raises(ValueError, match=r"was not read: it asks for [\w.]+, which plain arrays do not need"):
        read_pickle(tmp_path / "file")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not a pickle",
        pickled2({b"data": b"x"})[:-4],
        pickle.dumps([1, 2]),
        pickle.dumps({b"data": np.array([{}, None])}, protocol=2),
        pickle.dumps({b"data": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])}, protocol=2),
        b"cnumpy\nndarray\n}b.",  # state for the class itself
        b"c_codecs\nencode\n(Vx\nVhex\ntRN}(S'a'\nK\x01u\x86b.",
        b"\x80\x02}(T\x04\x00\x00\x00datacnumpy\nndarray\n)R(K\x01K\x02tbu.",
    ],
)
def test_damaged_or_strange_pickles_are_refused(tmp_path, body):
    (tmp_path / "file").write_bytes(body)
    with pytest.raises(ValueError, match=r"is not a CIFAR pickle or is damaged .*download it again"):
        read_pickle(tmp_path / "file")


@given(st.binary(max_size=60))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_no_bytes_give_anything_but_a_dictionary_or_a_value_error(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / "random"
    path.write_bytes(b"\x80\x02}(" + body + b"u.")
    try:
        content = read_pickle(path)
    except ValueError:
        return
    assert isinstance(content, dict)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({b"labels": [1]}, r"has no 'data' of uint8 rows of 3072 values, but NoneType"),
        ({b"data": np.zeros((2, 5), np.uint8), b"labels": [1, 2]}, r"but uint8 of shape \(2, 5\)"),
        ({b"data": np.zeros((2, 3072), np.int32), b"labels": [1, 2]}, r"but int32 of shape \(2, 3072\)"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}, r"list 'labels' of 2 labels, but 1 values"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 12]}, r"1 of 2 labels .* first is 12 at index 1"),
    ],
)
def test_batches_with_wrong_content_are_refused(tmp_path, content, problem):
    (tmp_path / "test_batch").write_bytes(pickled2(content))
    with pytest.raises(ValueError, match=problem):
        load_images("cifar10", tmp_path)


def test_svhn_stores_the_digit_zero_as_ten(tmp_path):
    images = some_images(5)
    content = {"X": images.transpose(1, 2, 3, 0), "y": np.array([[10], [1], [2], [9], [10]], np.uint8)}
    savemat(tmp_path / "test_32x32.mat", content)
    read = load_images("svhn", tmp_path)
    np.testing.assert_array_equal(read.images, images)
    assert read.labels.tolist() == [0, 1, 2, 9, 0]


@pytest.mark.parametrize("content", [b"no mat file", None])
def test_a_wrong_mat_file_is_refused(tmp_path, content):
    if content is None:
        savemat(tmp_path / "test_32x32.mat", {"Z": np.zeros(3)})
    else:
        (tmp_path / "test_32x32.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"test_32x32.mat is not the SVHN file of cropped digits or is damaged"):
        load_images("svhn", tmp_path)


# --- image folders -----------------------------------------------------------------------------------------------


def write_class_folders(parent, names, images, below=""):
    for name, image in zip(names, images, strict=True):
        (parent / name / below).mkdir(parents=True)
        (parent / name / below / "one.png").write_bytes(png(image))


def test_a_folder_a_class_is_read_in_the_order_of_the_names(tmp_path):
    images = some_images(10)
    write_class_folders(tmp_path / "cifar10" / "test", list("jihgfedcba"), images)
    (tmp_path / "cifar10" / "test" / "a" / "notes.txt").write_text("not an image")
    read = load_images("cifar10", tmp_path)
    np.testing.assert_array_equal(read.images, images[::-1])
    assert read.class_names == tuple("abcdefghij")
    assert read.labels.tolist() == list(range(10))


def test_an_incomplete_copy_is_refused(tmp_path):
    write_class_folders(tmp_path / "train", ["cat", "dog"], some_images(2))
    with pytest.raises(ValueError, match=r"2 folders with images, but CIFAR-10 has 10 classes; is the copy complete"):
        load_images("cifar10", tmp_path, split="train")


def write_tiny_imagenet(root, images, wnids=True):
    (root / "val" / "images").mkdir(parents=True)
    lines = []
    for k, image in enumerate(images):
        (root / "val" / "images" / f"val_{k}.JPEG").write_bytes(png(image))
        lines.append(f"val_{k}.JPEG\t{WNIDS[199 - k]}\t0\t0\t63\t63\n")
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    if wnids:
        (root / "wnids.txt").write_text("\n".join(WNIDS[:200][::-1]))


@pytest.mark.parametrize("place", ["tiny-imagenet-200", "."])
def test_tiny_imagenet_validation_follows_its_annotations(tmp_path, place):
    images = some_images(6, 64)
    write_tiny_imagenet(tmp_path / place, images)
    read = load_images("tiny-imagenet", tmp_path, split="val")
    np.testing.assert_array_equal(read.images, images)
    assert read.labels.tolist() == [199, 198, 197, 196, 195, 194]
    assert read.class_names == tuple(WNIDS[:200])


def test_tiny_imagenet_training_folders_have_images_below(tmp_path):
    images = some_images(200, 8)
    write_class_folders(tmp_path / "tiny-imagenet-200" / "train", WNIDS[:200], images, "images")
    read = load_images("tiny-imagenet", tmp_path, split="train")
    np.testing.assert_array_equal(read.images, images)


def test_tiny_imagenet_is_resized_as_pillow_does(tmp_path):
    images = some_images(3, 64)
    write_tiny_imagenet(tmp_path, images)
    small = load_images("tiny-imagenet", tmp_path, size=32).images
    expected = [np.asarray(Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR)) for image in images]
    np.testing.assert_array_equal(small, expected)


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [("val_0.JPEG\tn99999999\n", "n99999999 is not among them"), ("val_0.JPEG\n", "a tab and a class on every line")],
)
def test_wrong_annotations_are_refused(tmp_path, annotations, problem):
    write_tiny_imagenet(tmp_path, some_images(1, 64))
    (tmp_path / "val" / "val_annotations.txt").write_text(annotations)
    with pytest.raises(ValueError, match=problem):
        load_images("tiny-imagenet", tmp_path)


def test_annotations_alone_must_name_all_classes(tmp_path):
    write_tiny_imagenet(tmp_path, some_images(2, 64), wnids=False)
    with pytest.raises(ValueError, match="give 2 classes; Tiny ImageNet has 200"):
        load_images("tiny-imagenet", tmp_path)


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory):
    """A thousand classes; the first photograph is wide, the others are square and of one colour."""
    root = tmp_path_factory.mktemp("imagenet")
    plain = np.full((1000, 16, 16, 3), np.arange(1000)[:, None, None, None] % 256, np.uint8)
    write_class_folders(root / "val", WNIDS, plain)
    wide = np.zeros((64, 128, 3), np.uint8)
    wide[:, 32:96] = 255
    (root / "val" / WNIDS[0] / "one.png").write_bytes(png(wide))
    return root


def test_photographs_are_cut_at_the_centre(imagenet):
    source = open_images("imagenet", imagenet, split="val", size=56)
    assert len(source) == 1000
    first = source.take([0])
    # The shorter side becomes 64 pixels, the picture 128 x 64, and the central 56 x 56 lie in the white half.
    assert first.images.shape == (1, 56, 56, 3)
    assert (first.images == 255).all()
    some = source.take([700, 3])
    assert some.labels.tolist() == [700, 3]
    assert some.images[:, 0, 0, 0].tolist() == [700 % 256, 3]


def test_photographs_of_different_shapes_need_a_size(imagenet):
    with pytest.raises(ValueError, match=r"2 different shapes, such as \[.*\]; pass size="):
        open_images("imagenet", imagenet).take([0, 1])


def test_imagenet_o_has_one_split_without_a_name(tmp_path):
    images = some_images(200, 16)
    write_class_folders(tmp_path / "imagenet-o", WNIDS[:200], images)
    read = load_images("imagenet-o", tmp_path)
    np.testing.assert_array_equal(read.images, images)
    with pytest.raises(ValueError, match="ImageNet-O has the splits test, got 'train'"):
        load_images("imagenet-o", tmp_path, split="train")


def test_a_broken_image_is_named(tmp_path):
    write_class_folders(tmp_path / "test", list("abcdefghij"), some_images(10))
    broken = tmp_path / "test" / "d" / "one.png"
    broken.write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"one.png cannot be decoded: cannot identify"):
        load_images("cifar10", tmp_path)


# --- Parquet -----------------------------------------------------------------------------------------------------


def write_parquet(path, images, labels, *, image="image", label="label", names=None, struct=True, group=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    encoded = [{"bytes": png(one), "path": None} if struct else png(one) for one in images]
    table = pa.table({image: encoded, label: pa.array(np.asarray(labels), pa.int64())})
    if names:
        info = {"info": {"features": {label: {"names": names, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(info)})
    pq.write_table(table, path, row_group_size=group)


@pytest.mark.parametrize(
    ("name", "place", "options"),
    [
        ("cifar10", "cifar10/plain_text/test-00000-of-00001.parquet", {"image": "img"}),
        ("cifar100", "cifar100/test-00000-of-00001.parquet", {"image": "img", "label": "fine_label"}),
        ("svhn", "svhn/cropped_digits/test-00000-of-00001.parquet", {}),
        ("tiny-imagenet", "data/valid-00000-of-00001-70d52db3c749a935.parquet", {}),
        ("imagenet", "imagenet/data/validation-00000-of-00001.parquet", {}),
        ("cifar10", "test.parquet", {"struct": False}),
    ],
)
def test_parquet_comes_back(tmp_path, name, place, options):
    images, labels = some_images(8), np.array([0, 1, 2, 3, 4, 5, 6, 7])
    write_parquet(tmp_path / place, images, labels, **options)
    read = load_images(name, tmp_path)
    np.testing.assert_array_equal(read.images, images)
    np.testing.assert_array_equal(read.labels, labels)
    assert len(read.class_names) == DATA_SETS[name].classes


def test_parquet_shards_are_one_set_and_its_parts_can_be_read(tmp_path):
    images, names = some_images(11), [f"class {k}" for k in range(10)]
    labels = np.arange(11) % 10
    for k, part in enumerate((slice(0, 4), slice(4, 11))):
        write_parquet(tmp_path / f"train-0000{k}-of-00002.parquet", images[part], labels[part], names=names, group=2)
    source = open_images("cifar10", tmp_path, split="train")
    assert isinstance(source, ImageSource)
    part = source.take([10, 3, 4, 3])
    np.testing.assert_array_equal(part.images, images[[10, 3, 4, 3]])
    np.testing.assert_array_equal(part.labels, labels[[10, 3, 4, 3]])
    np.testing.assert_array_equal(source.load().images, images)
    np.testing.assert_array_equal(source.take(np.arange(11) == 2).images, images[2:3])
    assert source.class_names[4] == "class 4"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"image": "picture"}, r"needs a column of \('image', 'img'\)"),
        ({"label": "class"}, r"and one of \('label', 'fine_label', 'labels'\); it has \['image', 'class'\]"),
        ({"names": ["a", "b"]}, "has 2 classes, but CIFAR-10 has 10"),
    ],
)
def test_other_parquet_files_are_refused(tmp_path, options, problem):
    write_parquet(tmp_path / "test-0.parquet", some_images(2), [0, 1], **options)
    with pytest.raises(ValueError, match=problem):
        load_images("cifar10", tmp_path)


def test_a_parquet_column_without_images_is_refused(tmp_path):
    table = pa.table({"image": ["a.png", "b.png"], "label": [0, 1]})
    pq.write_table(table, tmp_path / "test.parquet")
    with pytest.raises(ValueError, match=r"'image' of .* holds no encoded images but str"):
        load_images("cifar10", tmp_path)


# --- packed files ------------------------------------------------------------------------------------------------


def write_packed(path, images, labels, *, grid=(2, 3), names=None):
    rows, columns = grid
    count, height, width, _ = images.shape
    full = -(-count // (rows * columns)) * rows * columns
    padded = np.concatenate([images, np.zeros((full - count, height, width, 3), np.uint8)])
    mosaics = padded.reshape(-1, rows, columns, height, width, 3).swapaxes(2, 3)
    encoded = []
    for mosaic in mosaics.reshape(-1, rows * height, columns * width, 3):
        stored = io.BytesIO()
        Image.fromarray(mosaic).save(stored, "WEBP", lossless=True)
        encoded.append(stored.getvalue())
    np.savez(
        path,
        blob=np.frombuffer(b"".join(encoded), np.uint8),
        offsets=np.cumsum([0, *map(len, encoded)]),
        labels=np.asarray(labels, np.uint8),
        tile=[rows, columns, height, width, 3],
        **({"names": np.array(names)} if names else {}),
    )


def test_packed_shards_come_back_in_the_order_of_their_numbers(tmp_path):
    images, labels = some_images(88), np.arange(88) % 10
    for shard in range(11):
        part = slice(8 * shard, 8 * shard + 8)
        write_packed(tmp_path / f"cifar10_train.{shard}.npz", images[part], labels[part], names=list("abcdefghij"))
    read = load_images("cifar10", tmp_path, split="train")
    np.testing.assert_array_equal(read.images, images)
    np.testing.assert_array_equal(read.labels, labels)
    assert read.class_names == tuple("abcdefghij")


def test_the_larger_of_two_packed_sizes_is_taken(tmp_path):
    write_packed(tmp_path / "tinyimagenet_val32.npz", some_images(5, 32), range(5))
    write_packed(tmp_path / "tinyimagenet_val64.npz", some_images(7, 64), range(7))
    assert load_images("tiny-imagenet", tmp_path).images.shape == (7, 64, 64, 3)
    assert load_images("tiny-imagenet", tmp_path, size=32).images.shape == (7, 32, 32, 3)


def test_a_missing_shard_is_noticed(tmp_path):
    for shard in (0, 2):
        write_packed(tmp_path / f"cifar10_train.{shard}.npz", some_images(6), range(6))
    with pytest.raises(ValueError, match=r"cifar10_train.0.npz, cifar10_train.2.npz: a shard is missing"):
        load_images("cifar10", tmp_path, split="train")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tile": None}, "is not a packed image set: it has no tile"),
        ({"tile": [3, 3, 32, 32, 3]}, "which its tile numbers do not explain"),
        ({"labels": np.zeros(50, np.uint8)}, "has 50 labels for 6 tiles"),
    ],
)
def test_wrong_packed_files_are_refused(tmp_path, change, problem):
    path = tmp_path / "cifar10_test.npz"
    write_packed(path, some_images(6), range(6))
    with np.load(path) as file:
        content = {key: value for key, value in ({**file} | change).items() if value is not None}
    np.savez(path, **content)
    with pytest.raises(ValueError, match=problem):
        load_images("cifar10", tmp_path)


# --- missing sets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(DATA_SETS))
def test_a_missing_set_says_what_to_download_and_where_to_put_it(tmp_path, name):
    entry = DATA_SETS[name]
    with pytest.raises(FileNotFoundError) as caught:
        load_images(name, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"no test split of {entry.title} under {tmp_path}. Download ")
    assert entry.download in message
    assert f"a folder {entry.folders[0]} there" in message
    assert all(layout in message for layout in entry.layouts)
    assert ".parquet" in message
    assert "_test.npz" in message


def test_without_a_folder_the_message_asks_for_one():
    with pytest.raises(
        FileNotFoundError, match=r"SVHN is read from a folder, and none was given\. Download .*Cropped Digits"
    ):
        load_images("svhn")


def test_one_set_in_a_common_folder_is_not_taken_for_another(tmp_path):
    write_parquet(tmp_path / "cifar10" / "data" / "test-0.parquet", some_images(2), [0, 1])
    write_cifar10(tmp_path / "cifar-10-batches-py")
    for name in ("svhn", "cifar100", "tiny-imagenet", "imagenet", "imagenet-o"):
        with pytest.raises(FileNotFoundError):
            load_images(name, tmp_path)


def test_an_unknown_name_lists_the_names(tmp_path):
    with pytest.raises(ValueError, match="unknown data set 'mnist'; there are cifar10, cifar100, svhn"):
        load_images("mnist", tmp_path)


def test_an_unknown_split_or_size_is_refused(tmp_path):
    with pytest.raises(ValueError, match="CIFAR-10 has the splits train, test, got 'extra'"):
        load_images("cifar10", tmp_path, split="extra")
    with pytest.raises(ValueError, match="size is a number of pixels, got 0"):
        load_images("cifar10", tmp_path, size=0)


# --- corrupted sets ----------------------------------------------------------------------------------------------


def write_corrupted(folder, clean, names=("fog", "snow")):
    folder.mkdir(parents=True)
    for name in names:
        np.save(folder / f"{name}.npy", np.concatenate([corrupt(clean, name, s) for s in range(1, 6)]))
    np.save(folder / "labels.npy", np.tile(np.arange(len(clean), dtype=np.uint8) % 10, 5))


@pytest.mark.parametrize("place", ["CIFAR-10-C", "cifar10-c", "."])
def test_official_corrupted_files_are_mapped(tmp_path, place):
    clean = some_images(6)
    write_corrupted(tmp_path / "data" / place, clean)
    read = load_corrupted("cifar10-c", tmp_path / "data", "snow", 4)
    np.testing.assert_array_equal(read.images, corrupt(clean, "snow", 4))
    assert read.labels.tolist() == list(range(6))
    base = read.images
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_corrupted_images_prefer_the_official_ones_and_generate_the_rest(tmp_path):
    images, labels = write_cifar10(tmp_path / "cifar-10-batches-py")
    other = some_images(5, seed=9)
    write_corrupted(tmp_path / "CIFAR-10-C", other, ["fog"])
    official = corrupted_images("cifar10-c", tmp_path, "fog", 2)
    np.testing.assert_array_equal(official.images, corrupt(other, "fog", 2))
    generated = corrupted_images("cifar10-c", tmp_path, "frost", 2, seed=3)
    np.testing.assert_array_equal(generated.images, corrupt(images[25:], "frost", 2, seed=3))
    np.testing.assert_array_equal(generated.labels, labels[25:])
    again = corrupted_images("cifar10-c", None, "frost", 2, seed=3, clean=load_images("cifar10", tmp_path))
    np.testing.assert_array_equal(again.images, generated.images)
    for corruption, small in (("fog", official), ("frost", generated)):
        large = corrupted_images("cifar10-c", tmp_path, corruption, 2, seed=3, size=64)
        np.testing.assert_array_equal(large.images, small.resize(64).images)
        assert large.images.shape == (5, 64, 64, 3)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_small_sets_can_be_corrupted_too(corruption):
    digits = digits_images(size=8).take(np.arange(5))
    corrupted = corrupted_images("digits-c", None, corruption, 3, clean=digits)
    assert corrupted.name == "digits-c"
    assert corrupted.images.shape == (5, 8, 8, 3)


def test_missing_corrupted_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no CIFAR-100-C with fog.npy .*Zenodo.*or use corrupted_images"):
        load_corrupted("cifar100-c", tmp_path, "fog", 1)
    with pytest.raises(FileNotFoundError, match="no test split of CIFAR-100"):
        corrupted_images("cifar100-c", tmp_path, "fog", 1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("cifar10-c", "rain", 1), "unknown corruption 'rain'"),
        (("cifar10-c", "fog", 6), "severity is one of"),
        (("svhn-c", "fog", 1), "no official corrupted set 'svhn-c'; there are cifar10-c, cifar100-c"),
    ],
)
def test_wrong_questions_for_corrupted_sets_are_refused(tmp_path, arguments, problem):
    name, corruption, severity = arguments
    with pytest.raises(ValueError, match=problem):
        load_corrupted(name, tmp_path, corruption, severity)


def test_corrupted_files_of_the_wrong_length_are_refused(tmp_path):
    np.save(tmp_path / "fog.npy", some_images(7))
    np.save(tmp_path / "labels.npy", np.zeros(7, np.uint8))
    with pytest.raises(ValueError, match=r"five times the test images.*got 7 and \(7,\)"):
        load_corrupted("cifar10-c", tmp_path, "fog", 1)


def test_pickled_npy_files_are_refused(tmp_path):
    np.save(tmp_path / "fog.npy", np.array([object()] * 5), allow_pickle=True)
    np.save(tmp_path / "labels.npy", np.zeros(5, np.uint8))
    with pytest.raises(ValueError, match=r"Array can't be memory-mapped|allow_pickle"):
        load_corrupted("cifar10-c", tmp_path, "fog", 1)


# --- sets made here ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [8, 16])
@pytest.mark.parametrize(
    ("make", "name", "counts"),
    [
        (digits_images, "digits", (1297, 500)),
        (texture_images, "textures", (1000, 500)),
        (photo_images, "photos", (1000, 500)),
    ],
)
def test_small_sets_are_deterministic_and_have_two_splits(make, name, counts, size):
    train, test = make(split="train", size=size), make(split="test", size=size)
    assert (len(train), len(test)) == counts
    assert train.images.shape[1:] == (size, size, 3)
    assert set(np.unique(test.labels)) == set(range(len(test.class_names)))
    again = load_images(name, split="test", size=size)
    np.testing.assert_array_equal(again.images, test.images)
    assert not {one.tobytes() for one in train.images} & {one.tobytes() for one in test.images}
    assert (test.images[..., 0] != test.images[..., 2]).any()


def test_digits_can_be_learnt_and_the_others_are_really_different():
    from sklearn.linear_model import LogisticRegression

    def features(images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), -1) / 255.0

    train, test = digits_images(split="train"), digits_images()
    model = LogisticRegression(max_iter=300).fit(features(train.images), train.labels)
    assert model.score(features(test.images), test.labels) > 0.85
    others = np.concatenate([texture_images().images, photo_images().images])
    both = np.concatenate([features(test.images), features(others)])
    ours = np.repeat([1, 0], [len(test), len(others)])
    detector = LogisticRegression(max_iter=300).fit(both[::2], ours[::2])
    assert detector.score(both[1::2], ours[1::2]) > 0.85


@pytest.mark.parametrize("make", [digits_images, texture_images, photo_images])
def test_small_sets_refuse_what_they_do_not_have(make):
    with pytest.raises(ValueError, match="splits train and test, got 'val'"):
        make(split="val")
    with pytest.raises(ValueError, match="at least 8 pixels, got size=4"):
        make(size=4)


# --- ImageSet ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "labels", "problem"),
    [
        (np.zeros((2, 8, 8, 3)), np.zeros(2, np.int64), "uint8 of shape .* got float64"),
        (np.zeros((2, 3, 8, 8), np.uint8), np.zeros(2, np.int64), r"got uint8 of shape \(2, 3, 8, 8\)"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.zeros(3, np.int64), r"int64 of shape \(2,\), got int64 of shape \(3,\)"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.zeros(2, np.int32), r"got int32"),
        (np.zeros((2, 8, 8, 3), np.uint8), np.array([0, -1]), r"1 of 2 labels .* \[0, 2\); the first is -1 at index 1"),
    ],
)
def test_image_sets_check_what_they_hold(images, labels, problem):
    with pytest.raises(ValueError, match=problem):
        ImageSet("cats", images, labels, ("tabby", "tiger"))


def test_image_sets_can_be_cut():
    cats = ImageSet("cats", some_images(4), np.array([0, 1, 1, 0]), ("tabby", "tiger"))
    part = cats.take(cats.labels == 1)
    assert len(part) == 2
    np.testing.assert_array_equal(part.images, cats.images[1:3])


# --- tensors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DATA_SETS, "digits", "cifar10-c"])
def test_every_set_has_statistics(name):
    mean, deviation = normalization(name)
    assert len(mean) == len(deviation) == 3
    assert all(0 < value < 1 for value in (*mean, *deviation))


def test_statistics_of_an_unknown_set_are_refused():
    with pytest.raises(ValueError, match="unknown data set 'mnist'"):
        normalization("mnist")


def test_tensors_are_normalised_and_channels_last():
    images, (mean, deviation) = some_images(3, 8), normalization("cifar10")
    tensor = to_device_tensor(images, "cpu", statistics=(mean, deviation))
    expected = (images / 255 - mean) / deviation
    np.testing.assert_allclose(tensor.permute(0, 2, 3, 1).numpy(), expected, atol=1e-5)
    assert tensor.shape == (3, 3, 8, 8)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert tensor.dtype == torch.float32
    half = to_device_tensor(images, statistics=(mean, deviation), dtype=torch.bfloat16)
    assert half.dtype == torch.bfloat16


def test_tensors_can_be_resized_on_the_device():
    images = some_images(2, 16)
    statistics = normalization("cifar10")
    large = to_device_tensor(images, statistics=statistics, size=56)
    assert large.shape == (2, 3, 56, 56)
    assert large.is_contiguous(memory_format=torch.channels_last)
    flat = to_device_tensor(np.full((1, 16, 16, 3), 99, np.uint8), statistics=statistics, size=8)
    torch.testing.assert_close(flat, flat[:, :, :1, :1].expand_as(flat))


def test_read_only_arrays_and_slices_become_tensors_without_a_warning(tmp_path):
    np.save(tmp_path / "x.npy", some_images(6, 8))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")[1:5]
    tensor = device_bytes(mapped)
    np.testing.assert_array_equal(tensor.permute(0, 2, 3, 1).numpy(), mapped)
    statistics = normalization("digits")
    torch.testing.assert_close(
        normalised(tensor, statistics=statistics), to_device_tensor(mapped, statistics=statistics)
    )


def test_only_bytes_become_tensors():
    with pytest.raises(ValueError, match=r"uint8 of shape \(n, h, w, 3\), got float64"):
        to_device_tensor(np.zeros((1, 8, 8, 3)), statistics=normalization("digits"))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 1000), st.integers(5, 12), st.integers(5, 12), st.integers(0, 4), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=40)
def test_augmentation_is_a_random_crop_of_the_padded_image_or_of_its_mirror(seed, height, width, padding, flip):
    images = torch.rand(4, 3, height, width, generator=generator(seed))
    changed = augment(images, generator(seed), padding=padding, flip=flip)
    for image, got in zip(images, changed, strict=True):
        mirrored = [image, image.flip(-1)] if flip else [image]
        padded = [torch.nn.functional.pad(one[None], (padding,) * 4, mode="reflect")[0] for one in mirrored]
        crops = [
            one[:, top : top + height, left : left + width]
            for one in padded
            for top in range(2 * padding + 1)
            for left in range(2 * padding + 1)
        ]
        assert any(torch.equal(got, crop) for crop in crops)


def test_augmentation_reaches_every_shift_and_both_sides_equally():
    images = torch.arange(64.0).view(1, 1, 8, 8).expand(4000, 3, 8, 8)
    changed = augment(images, generator(), padding=2)
    middles = torch.stack([changed[:, 0, 4, 4], changed[:, 0, 4, 5]], dim=1)
    outcomes, counts = torch.unique(middles, dim=0, return_counts=True)
    assert len(outcomes) == 2 * 25
    assert counts.min() > 40
    assert ((middles[:, 1] > middles[:, 0]).float().mean() - 0.5).abs() < 0.03


def test_augmentation_depends_on_its_generator_alone():
    images = torch.rand(16, 3, 8, 8)
    first, again, other = (augment(images, generator(seed)) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    state = torch.get_rng_state()
    augment(images, generator())
    assert torch.equal(torch.get_rng_state(), state)


def test_augmentation_keeps_bytes_and_layout():
    images = device_bytes(some_images(3, 8))
    changed = augment(images, generator())
    assert changed.dtype == torch.uint8
    assert changed.is_contiguous(memory_format=torch.channels_last)


def test_too_much_padding_is_refused():
    with pytest.raises(ValueError, match="0 <= padding < 4, the smaller side; got 4"):
        augment(torch.zeros(1, 3, 4, 8), generator())


def test_loading_needs_no_torch_and_no_decoder_until_asked():
    code = (
        "import sys, credalens.paper.data; "
        "sys.exit(any(m in sys.modules for m in ('torch', 'pyarrow', 'PIL', 'scipy.io', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
