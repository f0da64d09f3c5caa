"""Sets that need no download: digits, textures and photographs, made here; and what every image set checks."""

from __future__ import annotations

import numpy as np
import pytest

from credalens_paper.data import ImageSet, digits_images, load_images, photo_images, texture_images
from reproduction.tests.data.image_files import some_images


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
    with pytest.raises(ValueError, match="at least 8 pixels or features, got size=4"):
        make(size=4)


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
