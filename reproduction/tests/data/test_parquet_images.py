"""Images in Parquet: columns by their usual names, shards that are one set, files of another kind refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credalens_paper.data import DATA_SETS, ImageSource, load_images, open_images
from reproduction.tests.data.image_files import some_images, write_parquet


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
