"""Depthwise convolution: every channel has its own filter."""

from __future__ import annotations

from torch import nn


class DepthwiseConv2d(nn.Conv2d):
    """One k x k filter a channel, without bias."""

    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__(in_channels, in_channels, kernel_size, stride, padding, groups=in_channels, bias=False)
