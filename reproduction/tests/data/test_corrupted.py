"""Corrupted sets: the official files, and what is said where they are missing."""

from __future__ import annotations

import numpy as np
import pytest

from credalens_paper.corruptions import CORRUPTIONS, corrupt
from credalens_paper.data import digits_images, load_corrupted
from reproduction.tests.data.image_files import some_images


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


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_the_small_sets_can_be_corrupted_too(corruption):
    digits = digits_images(size=8).take(np.arange(5))
    assert corrupt(digits.images, corruption, 3).shape == (5, 8, 8, 3)


def test_missing_corrupted_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"fog.npy .*Zenodo.*corruptions\.corrupt"):
        load_corrupted("cifar100-c", tmp_path, "fog", 1)


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
