"""Numbers of result files by their keys, and in how many of them one of two ways is better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.cell_keys import display_name, is_better
from credalens_paper.experiments.paper_entries import POINTS, SCORES
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperNumber
from credalens_paper.pages.markdown import value_text
from credalens_paper.results.records import FigureResult, Line, Panel, Result, Runs, TableResult

Keys = Mapping[str, Any]
LINES: Final = tuple(tuple(name for name, _ in pair) for pair in (POINTS, SCORES))
"""The classical and the credal line of a figure against severity."""
CLEAR: Final = 0.8
"""The share of the cells that one way must win to be called the better one."""


@dataclass(frozen=True)
class Number:
    """A number of a result: its keys, ours and the paper's."""

    keys: Keys
    ours: Runs | None = None
    paper: PaperNumber | None = None


def numbers_of(results: Sequence[Result], label: str, /, **keys: Any) -> list[Number]:
    """The numbers of a label with these keys, measured or not, in their order; the paper's alone where there is no result.

    A key is a value, a tuple of several, or None where it must be absent. Points of a figure's lines are numbers too, with
    the severity as a key.
    """
    labelled = [result for result in results if result.label == label]
    if labelled:
        numbers = [number for result in labelled for number in _numbers(result)]
    else:
        printed = PAPER_TABLES[label].cells if label in PAPER_TABLES else {}
        numbers = [Number(key.as_dict(), paper=number) for key, number in printed.items()]

    def fits(number: Number) -> bool:
        pairs = ((number.keys.get(name), asked) for name, asked in keys.items())
        return all(value in asked if isinstance(asked, tuple) else value == asked for value, asked in pairs)

    return [number for number in numbers if fits(number)]


def _numbers(result: Result) -> Iterator[Number]:
    if isinstance(result, TableResult):
        yield from (Number(cell.keys.as_dict(), cell.ours, cell.paper) for cell in result.cells)
    for panel, *lines in compared_lines(result):
        keys = panel.keys.as_dict() if panel.keys else {}
        for variant, line in zip(("classical", "credal"), lines, strict=True):
            for severity, mean, n in zip(line.x, line.mean, line.n, strict=True):
                yield Number({**keys, "variant": variant, "severity": severity}, Runs(mean, None, n))


def means_of(results: Sequence[Result], label: str, by: str, /, **keys: Any) -> dict[Any, float]:
    """The measured means of the numbers with these keys, by the value of another key."""
    return {number.keys.get(by): number.ours.mean for number in numbers_of(results, label, **keys) if number.ours}


def compared_lines(result: Result, /) -> Iterator[tuple[Panel, Line, Line]]:
    """Every panel of a figure that has a classical and a credal line, with both."""
    for panel in result.panels if isinstance(result, FigureResult) else ():
        lines = {line.name: line for line in panel.series or ()}
        for classical, credal in LINES:
            if {classical, credal} <= lines.keys():
                yield panel, lines[classical], lines[credal]


@dataclass(frozen=True)
class Gap:
    """A number less the one it is compared with: the means of ours, those of the paper, and how many runs ours has."""

    metric: str
    ours: float | None
    paper: float | None
    n: int


def gaps(first: Iterable[Number], second: Iterable[Number], /, *, on: Sequence[str]) -> list[Gap]:
    """Every one of the first numbers less the one of the second that has the same values of the keys `on`."""

    def at(number: Number) -> tuple[Any, ...]:
        return tuple(number.keys.get(name) for name in on)

    partners = {at(number): number for number in second}
    found = []
    for number in first:
        if (partner := partners.get(at(number))) is not None:
            ours = round(number.ours.mean - partner.ours.mean, 9) if number.ours and partner.ours else None
            paper = round(number.paper.mean - partner.paper.mean, 6) if number.paper and partner.paper else None
            n = min(one.ours.n if one.ours else 0 for one in (number, partner))
            found.append(Gap(number.keys["metric"], ours, paper, n))
    return found


@dataclass(frozen=True)
class Tally:
    """Differences of a metric, the first way less the second, a cell each.

    >>> tally = Tally("AUROC", (1.0, 2.0, -0.5, 0.25, 0.5))
    >>> tally.text, tally.pick("credal", "averaged", "either")
    ('4 of 5 cells, -0.50 to +2.00', 'credal')
    """

    metric: str
    differences: tuple[float, ...]

    def pick(self, first: str, second: str, neither: str, /) -> str:
        """The way that is better in most cells (`CLEAR`), or neither."""
        won, lost = (sum(is_better(self.metric, sign * one) for one in self.differences) for sign in (1, -1))
        enough = max(CLEAR * len(self.differences), 1)
        return first if won >= enough else second if lost >= enough else neither

    @property
    def share(self) -> str:
        """The cells that the first way wins."""
        return f"{sum(is_better(self.metric, one) for one in self.differences)} of {len(self.differences)} cells"

    @property
    def spread(self) -> str:
        """The least and the greatest difference, once where they read the same."""
        texts = [value_text(value, self.metric, sign="+") for value in (min(self.differences), max(self.differences))]
        return " to ".join(dict.fromkeys(texts))

    @property
    def text(self) -> str:
        """The cells that the first way wins, and the differences."""
        return f"{self.share}, {self.spread}"


def ends(values: Sequence[float], form: str, /) -> str:
    """The least and the greatest of some values, once where they read the same."""
    return " to ".join(dict.fromkeys(f"{value:{form}}" for value in (min(values), max(values))))


def model_name(keys: Keys, /) -> str:
    """Backbone, method and size.

    >>> model_name({"backbone": "vgg16", "method": "DE", "N": 5}), model_name({"backbone": "vgg16", "method": "EDD"})
    ('VGG16 DE, N = 5', 'VGG16 EDD')
    """
    size = f", N = {keys['N']}" if keys.get("N") else ""
    return f"{display_name(keys.get('backbone'))} {keys.get('method')}{size}"
