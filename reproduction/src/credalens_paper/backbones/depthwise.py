"""Depthwise convolution: every channel has its own filter.

Trained on CUDA it is computed by torch's own kernels instead of cuDNN's, which for images with the channels last and the
same digits every time take many times as long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class DepthwiseConv2d(nn.Conv2d):
    """One k x k filter a channel, without bias."""

    def __init__(self, in_channels: int, kernel_size: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__(in_channels, in_channels, kernel_size, stride, padding, groups=in_channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The filtered images (n, channels, h, w)."""
        if not (x.is_cuda and self.training):
            return super().forward(x)
        filtered: Tensor = without_cudnn(x, self.weight.to(x.dtype), self.stride[0], int(self.padding[0]))
        return filtered


def use_own_depthwise(network: nn.Module, /) -> None:
    """Put this convolution in the place of those that transformers' EfficientNet has, with their weights."""
    for block in network.modules():
        old = getattr(block, "depthwise_conv", None)
        if isinstance(old, nn.Conv2d):
            (size, _), (stride, _) = old.kernel_size, old.stride
            block.depthwise_conv = DepthwiseConv2d(
                old.in_channels, size, stride, size // 2 if old.padding == "same" else 0
            )
            block.depthwise_conv.weight = old.weight


@torch.library.custom_op("credalens_paper::depthwise", mutates_args=())
def without_cudnn(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """The convolution of images (n, c, h, w) with filters (c, 1, k, k); torch.compile takes it as it is."""
    with torch.backends.cudnn.flags(enabled=False):
        filtered = functional.conv2d(
            x.contiguous(), _channels_first(weight), stride=stride, padding=padding, groups=len(weight)
        )
    return filtered.contiguous()


@torch.library.custom_op("credalens_paper::depthwise_backward", mutates_args=())
def _gradients(slope: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int) -> tuple[Tensor, Tensor]:
    with torch.backends.cudnn.flags(enabled=False):
        of_x, of_weight, _ = torch.ops.aten.convolution_backward(
            slope.contiguous(), x.contiguous(), _channels_first(weight), None,
            [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], len(weight), [True, True, False],
        )  # fmt: skip
    return of_x.contiguous(), of_weight.contiguous()


def _channels_first(weight: Tensor) -> Tensor:
    """Filters of one channel are in both orders at once, and torch would take them for channels last."""
    return weight.clone(memory_format=torch.contiguous_format)


@without_cudnn.register_fake
def _shape(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    height, width = ((side + 2 * padding - weight.shape[-1]) // stride + 1 for side in x.shape[-2:])
    return x.new_empty((*x.shape[:2], height, width))


@_gradients.register_fake
def _shapes(slope: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), weight.new_empty(weight.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.options = inputs[2:]


def _backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, None, None]:
    return (*_gradients(slope, *ctx.saved_tensors, *ctx.options), None, None)


without_cudnn.register_autograd(_backward, setup_context=_keep)
