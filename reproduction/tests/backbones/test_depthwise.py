"""Depthwise convolution without cuDNN against torch's own, and in the place of transformers'."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from credalens_paper.backbones import build_backbone
from credalens_paper.backbones.lite import DepthwiseConv2d, use_own_depthwise, without_cudnn

CASES = [(3, 1, 1), (5, 1, 2), (3, 2, 0), (5, 2, 2)]


def drawn(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(2, 6, 9, 9, dtype=torch.float64, generator=generator).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(6, 1, size, size, dtype=torch.float64, generator=generator)
    return x.requires_grad_(), weight.requires_grad_()


@pytest.mark.parametrize(("size", "stride", "padding"), CASES)
def test_values_and_gradients_are_those_of_a_grouped_convolution(size, stride, padding):
    x, weight = drawn(size)
    ours = without_cudnn(x, weight, stride, padding)
    torchs = functional.conv2d(x, weight, stride=stride, padding=padding, groups=6)
    torch.testing.assert_close(ours, torchs)
    slope = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    for mine, theirs in zip(*(torch.autograd.grad(y, (x, weight), slope) for y in (ours, torchs)), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(("size", "stride", "padding"), CASES)
def test_torch_finds_the_operator_sound(size, stride, padding):
    torch.library.opcheck(without_cudnn, (*drawn(size), stride, padding))


def test_efficientnet_has_it_everywhere():
    network = build_backbone("efficientnet_b2", classes=3, width=0.1, image_size=16, seed=0)
    grouped = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d) and m.groups > 1]
    assert len(grouped) == 23
    assert all(isinstance(module, DepthwiseConv2d) for module in grouped)


def test_efficientnet_averages_over_the_image_and_not_over_a_larger_window():
    network = build_backbone("efficientnet_b2", classes=3, width=0.1, image_size=16, seed=0).network.efficientnet
    assert not any(isinstance(module, torch.nn.AvgPool2d) for module in network.modules())
    x = torch.randn(2, 5, 3, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(network.pooler(x)[..., 0, 0], x.mean((2, 3)))


def test_the_weights_stay_when_it_takes_a_place():
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.depthwise_conv = torch.nn.Conv2d(4, 4, 5, padding="same", groups=4, bias=False)

    block, x = Block(), torch.randn(1, 4, 7, 7, generator=torch.Generator().manual_seed(3))
    before = block.depthwise_conv(x)
    use_own_depthwise(block)
    torch.testing.assert_close(block.depthwise_conv(x), before)
