"""VGG16 and ResNet-18 for 32-pixel images, and a network for features of texts."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

HIDDEN: Final = 128
_VGG16: Final = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
_RESNET18: Final = ((64, 1), (128, 2), (256, 2), (512, 2))


def vgg16(classes: int, /, *, width: float = 1.0) -> nn.Sequential:
    """VGG16: 13 convolutions with batch normalisation, five poolings, one linear layer.

    Smaller images work too: a map of one pixel is pooled to itself.
    """
    layers: list[nn.Module] = []
    channels = 3
    for stage in _VGG16:
        for count in stage:
            out = scaled(count, width)
            layers += [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
            channels = out
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return _initialised(nn.Sequential(*layers, *_head(channels, classes)))


def resnet18(classes: int, /, *, width: float = 1.0) -> nn.Sequential:
    """ResNet-18: a 3 x 3 stem without pooling, four stages of two blocks, one linear layer."""
    channels = scaled(64, width)
    stem = [nn.Conv2d(3, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
    blocks: list[nn.Module] = []
    for count, stride in _RESNET18:
        out = scaled(count, width)
        blocks += [BasicBlock(channels, out, stride), BasicBlock(out, out, 1)]
        channels = out
    return _initialised(nn.Sequential(*stem, *blocks, *_head(channels, classes)))


def mlp(classes: int, features: int, width: float, /) -> nn.Sequential:
    """One hidden layer."""
    hidden = scaled(HIDDEN, width)
    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """The rectified sum of both ways."""
        return torch.relu(self.body(x) + self.shortcut(x))


def _head(channels: int, classes: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def _initialised(network: nn.Sequential) -> nn.Sequential:
    """Filters drawn as He et al. (2015) do, which deep stacks without shortcuts need for an even start."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


def scaled(count: int, width: float, /) -> int:
    """So many channels, times the width; at least one."""
    return max(1, round(count * width))
