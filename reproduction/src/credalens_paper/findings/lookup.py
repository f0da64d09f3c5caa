"""Looking up numbers of result files, and how one kind of number compares with another, here and in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.cell_keys import HIGHER
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.figures import POINTS, SCORES
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperNumber
from credalens_paper.measures.estimates import Estimate
from credalens_paper.results.records import FigureResult, Line, Panel, Result, Runs, TableResult
from credalens_paper.results.rendering.values import value_text

LINES: Final = tuple(tuple(name for name, _ in pair) for pair in (POINTS, SCORES))
"""The classical and the credal line of a figure against severity."""


@dataclass(frozen=True)
class Kind:
    """Numbers of a result by their keys: a value, several of them, or None where the key must be absent.

    Points of a figure's lines are numbers too, with the severity as a key.
    """

    label: str
    keys: Mapping[str, Any]

    def has(self, keys: Mapping[str, Any], /) -> bool:
        """Whether a number with these keys is of this kind."""
        pairs = ((keys.get(name), asked) for name, asked in self.keys.items())
        return all(value in asked if isinstance(asked, tuple) else value == asked for value, asked in pairs)


@dataclass(frozen=True)
class Number:
    """A number of a result: its keys, ours and the paper's."""

    keys: Mapping[str, Any]
    ours: Runs | None = None
    paper: PaperNumber | None = None

    def at(self, names: Sequence[str], /) -> tuple[Any, ...]:
        """The values of some keys."""
        return tuple(self.keys.get(name) for name in names)


@dataclass(frozen=True)
class Gap:
    """A number less the one it is compared with: the means of ours, those of the paper, and how many runs ours has."""

    metric: str
    ours: float | None
    paper: float | None
    n: int


def is_better(metric: str, difference: float, /) -> bool:
    """Whether a difference of this metric is on the better side.

    >>> is_better("AUROC", 0.5), is_better("ECE", 0.5)
    (True, False)
    """
    return difference > 0 if metric in HIGHER else difference < 0


def numbers_of(results: Sequence[Result], kind: Kind, /) -> list[Number]:
    """The numbers of a kind, measured or not, in their order; the paper's alone where there is no result."""
    labelled = [result for result in results if result.label == kind.label]
    numbers = [number for result in labelled for number in _numbers(result)] if labelled else _printed(kind.label)
    return [number for number in numbers if kind.has(number.keys)]


def _numbers(result: Result) -> Iterator[Number]:
    if isinstance(result, TableResult):
        yield from (Number(cell.keys.as_dict(), cell.ours, cell.paper) for cell in result.cells)
    for panel, *lines in compared_lines(result):
        keys = panel.keys.as_dict() if panel.keys else {}
        for variant, line in zip(("classical", "credal"), lines, strict=True):
            for severity, mean, n in zip(line.x, line.mean, line.n, strict=True):
                yield Number({**keys, "variant": variant, "severity": severity}, Runs(mean, None, n))


def compared_lines(result: Result, /) -> Iterator[tuple[Panel, Line, Line]]:
    """Every panel of a figure that has a classical and a credal line, with both."""
    for panel in result.panels if isinstance(result, FigureResult) else ():
        lines = {line.name: line for line in panel.series or ()}
        for classical, credal in LINES:
            if {classical, credal} <= lines.keys():
                yield panel, lines[classical], lines[credal]


def _printed(label: str) -> list[Number]:
    """The paper's numbers; it prints none of its figures."""
    cells = PAPER_TABLES[label].cells if label in PAPER_TABLES else {}
    return [Number(key.as_dict(), paper=number) for key, number in cells.items()]


def gaps(results: Sequence[Result], first: Kind, second: Kind, /, *, on: Sequence[str]) -> list[Gap]:
    """Every number of the first kind less the one of the second kind that has the same values of the keys `on`."""
    partners = {number.at(on): number for number in numbers_of(results, second)}
    return [
        _gap(number, partners[number.at(on)])
        for number in numbers_of(results, first)
        if number.at(on) in partners
    ]  # fmt: skip


def _gap(number: Number, partner: Number) -> Gap:
    ours = round(number.ours.mean - partner.ours.mean, 9) if number.ours and partner.ours else None
    paper = round(number.paper.mean - partner.paper.mean, 6) if number.paper and partner.paper else None
    return Gap(number.keys["metric"], ours, paper, min(one.ours.n if one.ours else 0 for one in (number, partner)))


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
    return f"{display_name(keys.get('backbone'))} {keys.get('method')}{size}"


def place_name(keys: Mapping[str, Any], /) -> str:
    """The set a number is about: an OOD set, a corrupted one, or the clean test set."""
    return display_name(keys["ood_set"]) if keys.get("ood_set") else "clean"


def estimates_of(results: Sequence[Result], label: str, /) -> dict[str, list[dict[str, Estimate]]]:
    """Panel title -> for each of its metrics the estimates by their names."""
    panels = [
        panel
        for result in results
        if isinstance(result, FigureResult) and result.label == label
        for panel in result.panels
        if panel.estimates
    ]
    titles: dict[str, list[dict[str, Estimate]]] = {}
    for panel in panels:
        titles.setdefault(panel.title, []).append({one.name: one for one in panel.estimates or ()})
    return titles
