"""Packed image sets: tiles of lossless mosaics in numbered shards, none of which may be missing."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from credalens_paper.data import load_images
from reproduction.tests.data.image_files import some_images


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
    with pytest.raises(ValueError, match="a shard is missing"):
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
