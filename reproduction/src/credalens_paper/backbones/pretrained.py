"""Which folders of weights a backbone can start from; checked without loading them, and without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

FAMILIES: Final = {"resnet50": "ResNet", "efficientnet_b2": "EfficientNet", "vit_base": "ViT"}
"""The networks that transformers has, with the word that its class names begin with."""
LARGE: Final = tuple(FAMILIES)
FILES: Final = ("config.json", "model.safetensors")


def check_pretrained(folder: str | Path, backbone: str, /) -> dict[str, Any]:
    """The configuration of a folder that holds weights of the backbone's family; the weights are not read.

    >>> check_pretrained("weights", "vgg16")
    Traceback (most recent call last):
    ValueError: vgg16 is trained from scratch; pretrained weights are for resnet50, efficientnet_b2, vit_base
    """
    if backbone not in FAMILIES:
        raise ValueError(f"{backbone} is trained from scratch; pretrained weights are for {', '.join(LARGE)}")
    for file in FILES:
        if not Path(folder, file).is_file():
            raise FileNotFoundError(
                f"no {file} in {folder}; pretrained weights are a folder with {' and '.join(FILES)}, as "
                "save_pretrained of transformers writes it"
            )
    stored, family = _read(Path(folder, "config.json")), FAMILIES[backbone]
    if stored.get("model_type") != family.lower():
        raise ValueError(f"{folder} holds a {stored.get('model_type')!r} network; {backbone} is a {family}")
    return stored


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # of the encoding too
        stored = None
    if not isinstance(stored, dict):
        raise ValueError(f"{path} is not a JSON object; save the network again with save_pretrained of transformers")
    return stored
