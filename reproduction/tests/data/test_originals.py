"""The original archives: CIFAR batches as Python 2 wrote them, and SVHN's files; wrong content is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.io import savemat

from credalens_paper.data import load_images
from reproduction.tests.data.image_files import pickled2, rows_of, some_images, write_cifar10

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
    with pytest.raises(ValueError, match=r"test_32x32.mat is not the SVHN file"):
        load_images("svhn", tmp_path)
