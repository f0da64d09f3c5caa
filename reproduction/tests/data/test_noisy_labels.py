"""Other people's labels for the same training images."""

from __future__ import annotations

import numpy as np
import pytest

from credalens_paper.data import load_images
from reproduction.tests.data.image_files import write_cifar10


def noisy_folder(tmp_path, **arrays):
    images, _ = write_cifar10(tmp_path / "cifar-10-batches-py")
    np.savez(tmp_path / "cifar10n_labels.npz", **arrays)
    return images


def test_the_training_split_has_the_worst_labels_and_the_test_split_its_own(tmp_path):
    worse = (np.arange(25) * 3 % 10).astype(np.uint8)
    images = noisy_folder(tmp_path, worse_label=worse, aggre_label=np.zeros(25, np.uint8))
    train, test = (load_images("cifar10n", tmp_path, split=split) for split in ("train", "test"))
    np.testing.assert_array_equal(train.images, images[:25])
    np.testing.assert_array_equal(train.labels, worse)
    np.testing.assert_array_equal(test.labels, load_images("cifar10", tmp_path, split="test").labels)
    assert (train.name, test.name) == ("cifar10n", "cifar10n")


def test_missing_and_wrong_label_files_are_named(tmp_path):
    noisy_folder(tmp_path, aggre_label=np.zeros(25, np.uint8))
    with pytest.raises(ValueError, match="no array 'worse_label', but aggre_label"):
        load_images("cifar10n", tmp_path, split="train")
    np.savez(tmp_path / "cifar10n_labels.npz", worse_label=np.zeros(7, np.uint8))
    with pytest.raises(ValueError, match="labels of shape \\(7,\\) for 25 images of cifar10"):
        load_images("cifar10n", tmp_path, split="train")
    (tmp_path / "cifar10n_labels.npz").unlink()
    with pytest.raises(FileNotFoundError, match="CIFAR-10_human"):
        load_images("cifar10n", tmp_path, split="train")
