"""Image folders: a folder for each class, Tiny ImageNet's annotations, photographs cut to one size."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from credalens_paper.data import load_images, open_images
from reproduction.tests.data.image_files import png, some_images

WNIDS = [f"n{k:08d}" for k in range(1000)]


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
    with pytest.raises(ValueError, match=r"2 folders .*CIFAR-10 has 10 classes; is the copy complete"):
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
