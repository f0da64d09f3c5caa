"""The numbers the paper prints, cell by cell, and the labels of its tables and figures.

They live in `numbers.json`, transcribed once from the text. Names follow this package: `backbone` is a name
of `build_backbone`, `id_set` and `ood_set` are names of `load_images`. `id_set` is the set a model was
trained on; `ood_set` is the other set it was tested with (none: the test split of `id_set`). "Baseline" is
the variant "classical" and "Ours" is "credal"; EDD is neither. ACC, AUROC and AUPRC are in per cent, ECE is a
fraction. `J` follows the large-scale section: PIA with 20 classes for CIFAR100 and 50 for ImageNet. `std` is
absent where the paper prints none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

HIGHER: Final = frozenset({"ACC", "AUROC", "AUPRC"})
"""Metrics of which more is better; of the others less is."""
KEYS: Final = ("backbone", "method", "variant", "N", "J", "C", "measure", "id_set", "ood_set", "metric")


@dataclass(frozen=True, kw_only=True)
class PaperCell:
    """One printed number: where it stands, its mean, its standard deviation and whether it is set in bold."""

    table: str
    metric: str
    mean: float
    std: float | None = None
    backbone: str | None = None
    method: str | None = None
    variant: str | None = None
    N: int | None = None
    J: int | None = None
    C: int | None = None
    measure: str | None = None
    id_set: str | None = None
    ood_set: str | None = None
    bold: bool = False

    def keys(self) -> dict[str, str | int]:
        """The keys that tell this cell from the others of its table, those that apply to it."""
        present = {key: getattr(self, key) for key in KEYS}
        return {key: value for key, value in present.items() if value is not None}


def table_labels() -> tuple[str, ...]:
    """The labels of the 19 tables, in the order of the paper.

    >>> table_labels()[0], len(table_labels())
    ('OODMain', 19)
    """
    return tuple(_tables())


def figure_labels() -> tuple[str, ...]:
    """The labels of the 17 figures, in the order of the paper.

    >>> figure_labels()[-1], len(figure_labels())
    ('Concept comparisons', 17)
    """
    return tuple(figure["label"] for figure in _document()["figures"])


def describe(label: str, /) -> str:
    """What the table or figure of this label shows, in one line.

    >>> describe("Concept comparisons")
    'The two ways from members to a credal set on a simplex: probability intervals and convex hull.'
    """
    entries = {entry["label"]: entry["description"] for entry in _document()["tables"] + _document()["figures"]}
    if label not in entries:
        raise ValueError(f"no table or figure {label!r} in the paper; it has {', '.join(entries)}")
    return str(entries[label])


def runs(table: str, /) -> int | None:
    """The number of runs behind the means of a table, or None where the paper does not say.

    >>> runs("CPUcost")
    20
    """
    _check_table(table)
    return {entry["label"]: entry["runs"] for entry in _document()["tables"]}[table]


def paper_cells(table: str, /, **keys: str | int | None) -> tuple[PaperCell, ...]:
    """The cells of a table that have these keys, in the order of the paper; None asks for a key's absence.

    >>> [cell.mean for cell in paper_cells("AblationPIA", metric="time_ms")]
    [7.182, 11.346, 109.469]
    """
    _check_table(table)
    unknown = sorted(set(keys) - set(KEYS))
    if unknown:
        raise ValueError(f"unknown keys {unknown} for a table of the paper; the keys are {', '.join(KEYS)}")
    return tuple(cell for cell in _tables()[table] if all(getattr(cell, key) == value for key, value in keys.items()))


def paper_value(table: str, /, **keys: str | int | None) -> PaperCell:
    """The one cell of a table that has these keys; give as many as it takes to tell it from the others.

    >>> cell = paper_value("CPUcost", variant="credal", C=10)
    >>> cell.mean, cell.std
    (5.921, None)
    """
    found = paper_cells(table, **keys)
    if len(found) == 1:
        return found[0]
    if not found:
        raise ValueError(f"no cell of table {table!r} has {keys}; its keys are {_choices(_tables()[table])}")
    raise ValueError(f"{len(found)} cells of table {table!r} have {keys}; they differ in {_choices(found)}")


def _check_table(table: str) -> None:
    if table not in _tables():
        raise ValueError(f"no table {table!r} in the paper; it has {', '.join(_tables())}")


def _choices(cells: tuple[PaperCell, ...]) -> dict[str, list[Any]]:
    values = {key: list(dict.fromkeys(getattr(cell, key) for cell in cells)) for key in KEYS}
    return {key: choice for key, choice in values.items() if len(choice) > 1}


@cache
def _document() -> dict[str, Any]:
    text = files("credalens_paper.experiments").joinpath("numbers.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def _tables() -> dict[str, tuple[PaperCell, ...]]:
    return {
        entry["label"]: tuple(PaperCell(table=entry["label"], **r) for r in entry["records"])
        for entry in _document()["tables"]
    }
