"""The numbers the paper prints, cell by cell, and the labels of its tables and figures.

They live in `numbers.json`, transcribed once from the text. Names follow this package: `backbone` is a name
of `build_backbone`, `id_set` and `ood_set` are names of `load_images`. ACC, AUROC and AUPRC are in per cent, ECE is a
fraction. `J` follows the large-scale section: PIA with 20 classes for CIFAR100 and 50 for ImageNet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.json_records import from_json


@dataclass(frozen=True)
class PaperNumber:
    """A printed number: its mean and its standard deviation, None where none is printed."""

    mean: float
    std: float | None = None


@dataclass(frozen=True)
class PaperTable:
    """A table: what it shows, the number of runs behind its means (None where the paper does not say), and its cells."""

    description: str
    runs: int | None
    cells: Mapping[CellKey, PaperNumber]


def _table(entry: dict[str, Any]) -> PaperTable:
    cells = {from_json(CellKey, record): from_json(PaperNumber, record) for record in entry["records"]}
    return PaperTable(entry["description"], entry["runs"], cells)


_DOCUMENT: Final = json.loads(files(__package__).joinpath("numbers.json").read_text(encoding="utf-8"))
PAPER_TABLES: Final[Mapping[str, PaperTable]] = {entry["label"]: _table(entry) for entry in _DOCUMENT["tables"]}
"""The 19 tables by their labels, in the order of the paper."""
PAPER_FIGURES: Final[Mapping[str, str]] = {entry["label"]: entry["description"] for entry in _DOCUMENT["figures"]}
"""What the 17 figures show, by their labels, in the order of the paper."""
