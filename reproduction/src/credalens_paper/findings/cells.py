"""Looking up cells of result files, and how one kind of cell compares with another, in our numbers and the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.figures import POINTS, SCORES
from credalens_paper.experiments.numbers import HIGHER, paper_cells, table_labels
from credalens_paper.results.rendering.names import shown
from credalens_paper.results.rendering.values import value_text

__all__ = ["Gap", "Kind", "compared_lines", "find_cells", "gaps", "model_name", "place_name", "spread_text"]

Result = Mapping[str, Any]
Cell = Mapping[str, Any]
LINES: Final = tuple(tuple(name for name, _ in pair) for pair in (POINTS, SCORES))
"""The classical and the credal line of a figure against severity."""


@dataclass(frozen=True)
class Kind:
    """Cells of a table by their keys: a value, several of them, or None where the key must be absent.

    Points of a figure's lines are cells too, with the severity as a key.
    """

    label: str
    keys: Mapping[str, Any]


@dataclass(frozen=True)
class Gap:
    """A cell less the one it is compared with: the means of ours, those of the paper, and how many runs ours has."""

    metric: str
    ours: float | None
    paper: float | None
    n: int

    def better(self, difference: float, /) -> bool:
        """Whether a difference of this metric is on the better side."""
        return difference > 0 if self.metric in HIGHER else difference < 0


def find_cells(results: Sequence[Result], kind: Kind, /) -> list[Cell]:
    """The cells of a kind, measured or not, in the order of the table; the paper's alone where there is no result."""
    results = [result for result in results if result["label"] == kind.label]
    found = [cell for result in results for cell in _cells(result)] if results else _printed(kind.label)
    return [cell for cell in found if all(_has(cell["keys"], key, value) for key, value in kind.keys.items())]


def _cells(result: Result) -> Iterator[Cell]:
    yield from result.get("cells", ())
    for panel, *lines in compared_lines(result):
        for variant, line in zip(("classical", "credal"), lines, strict=True):
            for severity, mean, n in zip(line["x"], line["mean"], line["n"], strict=True):
                keys = {**panel.get("keys", {}), "variant": variant, "severity": severity}
                yield {"keys": keys, "mean": mean, "n": n, "paper": None}


def compared_lines(result: Result, /) -> Iterator[tuple[Result, Result, Result]]:
    """Every panel of a figure that has a classical and a credal line, with both."""
    for panel in result.get("panels", ()):
        lines = {line["name"]: line for line in panel.get("series", ())}
        for classical, credal in LINES:
            if {classical, credal} <= lines.keys():
                yield panel, lines[classical], lines[credal]


def _printed(label: str) -> list[Cell]:
    """The paper's numbers; it prints none of its figures."""
    if label not in table_labels():
        return []
    return [{"keys": cell.keys(), "paper": {"mean": cell.mean, "std": cell.std}} for cell in paper_cells(label)]


def _has(keys: Mapping[str, Any], key: str, wanted: Any) -> bool:
    return keys.get(key) in wanted if isinstance(wanted, tuple) else keys.get(key) == wanted


def gaps(results: Sequence[Result], first: Kind, second: Kind, /, *, on: Sequence[str]) -> list[Gap]:
    """Every cell of the first kind less the one of the second kind that has the same values of the keys `on`."""
    others = {_values(cell, on): cell for cell in find_cells(results, second)}
    pairs = [(cell, others[_values(cell, on)]) for cell in find_cells(results, first) if _values(cell, on) in others]
    return [_gap(cell, other) for cell, other in pairs]


def _values(cell: Cell, on: Sequence[str]) -> tuple[Any, ...]:
    return tuple(cell["keys"].get(key) for key in on)


def _gap(cell: Cell, other: Cell) -> Gap:
    measured, printed = "mean" in cell and "mean" in other, cell["paper"] and other["paper"]
    return Gap(
        cell["keys"]["metric"],
        round(cell["mean"] - other["mean"], 9) if measured else None,
        round(cell["paper"]["mean"] - other["paper"]["mean"], 6) if printed else None,
        min(cell.get("n", 0), other.get("n", 0)),
    )


def spread_text(values: Sequence[float], metric: str, /) -> str:
    """The least and the greatest of some differences.

    >>> spread_text([0.5, 1.25], "AUROC"), spread_text([-0.02], "ECE")
    ('+0.50 to +1.25', '-0.020')
    """
    texts = [value_text(value, metric, sign="+") for value in (min(values), max(values))]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def model_name(keys: Mapping[str, Any], /) -> str:
    """Backbone, method and size.

    >>> model_name({"backbone": "vgg16", "method": "DE", "N": 5}), model_name({"backbone": "vgg16", "method": "EDD"})
    ('VGG16 DE, N = 5', 'VGG16 EDD')
    """
    size = f", N = {keys['N']}" if keys.get("N") else ""
    return f"{shown(keys.get('backbone'))} {keys.get('method')}{size}"


def place_name(keys: Mapping[str, Any], /) -> str:
    """The set a number is about: an OOD set, a corrupted one, or the clean test set."""
    return shown(keys["ood_set"]) if keys.get("ood_set") else "clean"
