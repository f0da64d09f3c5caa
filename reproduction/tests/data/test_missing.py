"""What is not there: the message says what to download and where to put it, and nothing is taken for another set."""

from __future__ import annotations

import subprocess
import sys

import pytest

from credalens_paper.data import DATA_SETS, load_images, normalization
from reproduction.tests.data.image_files import some_images, write_cifar10, write_parquet

IMAGE_SETS = [name for name, data_set in DATA_SETS.items() if not data_set.texts]


@pytest.mark.parametrize("name", [name for name in IMAGE_SETS if DATA_SETS[name].relabels is None])
def test_a_missing_set_says_what_to_download_and_where_to_put_it(tmp_path, name):
    data_set = DATA_SETS[name]
    with pytest.raises(FileNotFoundError) as caught:
        load_images(name, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"no test split of {data_set.title} under {tmp_path}. Download ")
    assert data_set.download in message
    assert f"a folder {data_set.folders[0]} there" in message
    assert ("_batch" in message) == (name == "cifar10")
    assert "test/<class>/*.png" in message
    assert ".parquet" in message
    assert "_test.npz" in message


def test_without_a_folder_the_message_asks_for_one():
    with pytest.raises(FileNotFoundError, match=r"SVHN .*Download .*Cropped Digits"):
        load_images("svhn")


def test_one_set_in_a_common_folder_is_not_taken_for_another(tmp_path):
    write_parquet(tmp_path / "cifar10" / "data" / "test-0.parquet", some_images(2), [0, 1])
    write_cifar10(tmp_path / "cifar-10-batches-py")
    for name in ("svhn", "cifar100", "tiny-imagenet", "imagenet", "imagenet-o"):
        with pytest.raises(FileNotFoundError):
            load_images(name, tmp_path)


@pytest.mark.parametrize("name", [*IMAGE_SETS, "digits", "cifar10-c"])
def test_every_set_has_statistics(name):
    mean, deviation = normalization(name)
    assert len(mean) == len(deviation) == 3
    assert all(0 < value < 1 for value in (*mean, *deviation))


def test_statistics_of_an_unknown_set_are_refused():
    with pytest.raises(ValueError, match="unknown data set 'mnist'"):
        normalization("mnist")


def test_an_unknown_name_lists_the_names(tmp_path):
    with pytest.raises(ValueError, match=r"'mnist'; there are cifar10, cifar100, "):
        load_images("mnist", tmp_path)


def test_an_unknown_split_or_size_is_refused(tmp_path):
    with pytest.raises(ValueError, match="CIFAR-10 has the splits train, test, got 'extra'"):
        load_images("cifar10", tmp_path, split="extra")
    with pytest.raises(ValueError, match="size is a number of pixels, got 0"):
        load_images("cifar10", tmp_path, size=0)


def test_loading_needs_no_torch_and_no_decoder_until_asked():
    code = (
        "import sys, credalens_paper.data; "
        "sys.exit(any(m in sys.modules for m in ('torch', 'pyarrow', 'PIL', 'scipy.io', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
