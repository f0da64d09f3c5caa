"""EfficientNet-Lite0: TensorFlow's padding against plain sums, and weights under the names of the package."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from credalens_paper.backbones import LITE, build_backbone, find_pretrained, open_pretrained
from credalens_paper.backbones.lite import DepthwiseConv2d, HalvingPad, package_name

NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def lite(**options):
    return build_backbone(LITE, **{"classes": 5, "width": 0.1, "image_size": 16, "seed": 0} | options)


def in_package(network):
    """The weights of a network as the package names them."""
    return {package_name(name): weight for name, weight in network.state_dict().items()}


@pytest.fixture
def folder(tmp_path):
    network = lite()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(), module.running_var.uniform_(0.5, 2)
    torch.save(in_package(network), tmp_path / "weights.pth")
    return tmp_path


def same_sums(image, kernel):
    """TensorFlow's definition: output i is the filter at 2 i less the zeros before, ceil(n / 2) outputs in all."""
    size, k = len(image), len(kernel)
    outputs = -(-size // 2)
    before = max(2 * (outputs - 1) + k - size, 0) // 2
    sums = np.zeros((outputs, outputs))
    for i, j, a, b in np.ndindex(outputs, outputs, k, k):
        row, column = 2 * i + a - before, 2 * j + b - before
        if 0 <= row < size and 0 <= column < size:
            sums[i, j] += kernel[a, b] * image[row, column]
    return sums


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8])
def test_halving_pads_as_tensorflow_does(size, k):
    torch.manual_seed(size)
    conv = DepthwiseConv2d(2, k, stride=2).double()
    image = torch.randn(1, 2, size, size, dtype=torch.float64)
    found = conv(HalvingPad(k)(image))[0].detach().numpy()
    expected = [same_sums(image[0, c].numpy(), conv.weight[c, 0].detach().numpy()) for c in (0, 1)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_images_are_halved_five_times_and_padded_explicitly_where_they_are():
    network = lite(classes=2)
    assert network[:-3](torch.zeros(2, 3, 224, 224)).shape[2:] == (7, 7)
    filters = [module for module in network.modules() if isinstance(module, DepthwiseConv2d)]
    assert len(filters) == 16
    for conv in filters:
        expected = 0 if conv.stride[0] == 2 else conv.kernel_size[0] // 2
        assert conv.padding == (expected, expected)


def test_every_weight_has_its_name_in_the_package():
    names = {"_conv_stem.weight", "_conv_head.weight", "_fc.weight", "_fc.bias"}
    names |= {f"{norm}.{kind}" for norm in ("_bn0", "_bn1") for kind in NORM}
    for place in range(16):
        parts = ("depthwise", "project") if place == 0 else ("expand", "depthwise", "project")
        names |= {f"_blocks.{place}._{part}_conv.weight" for part in parts}
        norms = ("_bn1", "_bn2") if place == 0 else ("_bn0", "_bn1", "_bn2")
        names |= {f"_blocks.{place}.{norm}.{kind}" for norm in norms for kind in NORM}
    assert set(in_package(lite())) == names
    assert len(names) == len(lite().state_dict()) == 296


def test_weights_of_the_package_come_back(folder):
    stored = torch.load(folder / "weights.pth", weights_only=True)
    loaded = lite(pretrained=folder, seed=1)
    assert loaded.training
    assert all(torch.equal(weight, stored[name]) for name, weight in in_package(loaded).items())


def test_members_share_the_body_and_differ_in_the_head(folder):
    first, second = (lite(pretrained=folder, classes=3, seed=seed).state_dict() for seed in (1, 2))
    different = {name for name, weight in first.items() if not torch.equal(weight, second[name])}
    assert different == {"classifier.weight", "classifier.bias"}


def test_weights_of_another_width_or_with_one_missing_are_refused(folder):
    with pytest.raises(ValueError, match=r"efficientnet_lite0: _conv_stem.weight .*\(3, 3"):
        lite(pretrained=folder, width=0.2)
    stored = torch.load(folder / "weights.pth", weights_only=True)
    del stored["_blocks.3._bn1.bias"]
    torch.save(stored, folder / "weights.pth")
    with pytest.raises(ValueError, match=r"weights.pth .*efficientnet_lite0: .*_blocks.3._bn1.bias"):
        lite(pretrained=folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a file of weights"),
        (b"weights", "not a file of weights"),
        ([1], "holds a list"),
        (abs, "not a file"),
    ],
)
def test_other_files_are_refused_and_nothing_in_them_runs(tmp_path, content, message):
    path = tmp_path / "some.pth"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    with pytest.raises(ValueError, match=message):
        lite(pretrained=tmp_path)


@pytest.mark.parametrize("count", [0, 2])
def test_a_folder_holds_one_file_of_weights(tmp_path, count):
    for place in range(count):
        (tmp_path / f"{place}.pth").touch()
    with pytest.raises(FileNotFoundError, match=rf"{count} .pth files in {tmp_path}; .* folder with one"):
        lite(pretrained=tmp_path)


def test_weights_are_told_apart_by_their_bytes_and_not_by_their_place(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    for folder, content in zip(folders, (b"one", b"one", b"two"), strict=True):
        folder.mkdir()
        (folder / f"{folder.name}.pth").write_bytes(content)
    assert {find_pretrained(folder) for folder in folders} == {LITE}
    here, copy, other = (open_pretrained(folder, LITE) for folder in folders)
    assert here.digest == copy.digest != other.digest
    assert str(tmp_path) not in here.digest
