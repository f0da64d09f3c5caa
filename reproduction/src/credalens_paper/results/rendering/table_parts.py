"""Tables in Markdown: our numbers beside the paper's, wins and losses alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.display_names import display_name
from credalens_paper.results.records import Cell, Improvement, SolverComparison, TableResult
from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.values import difference_text, number_text, paper_difference_text

PREDICTED: Final = ("ACC", "ECE", "NLL")
NOT_MEASURED: Final = "not measured"
Entry = TypeVar("Entry", Cell, Improvement)


def table_parts(result: TableResult, /) -> list[str]:
    """Comparisons, other numbers, and the paper's solver, each where there are any."""
    return [_compared(result), _alone(result), _solvers(result.solvers)]


def _compared(result: TableResult) -> str:
    """Classical beside credal, ours and the paper's, with sign and size of the improvement in both; what was measured first."""
    cells = {cell.keys: cell for cell in result.cells}
    improvements = [entry for entry in result.improvements if entry.ours or entry.paper]
    names = _row_names(result, improvements)
    ordered = sorted(_ordered(improvements, result.layout), key=lambda entry: entry.ours is None)
    rows = [_compared_row(entry, cells, names) for entry in ordered]
    head = ["Classical", "Credal", "Difference", "Paper: classical", "Paper: credal", "Paper: difference"]
    return _table([*map(display_name, names), *head], rows)


def _compared_row(entry: Improvement, cells: Mapping[CellKey, Cell], names: Sequence[str]) -> list[str]:
    metric, credal, classical = entry.keys.metric, cells[entry.keys], cells[entry.keys.baseline]
    return [
        *(_row_value(entry.keys, name) for name in names),
        number_text(classical.ours, metric),
        number_text(credal.ours, metric),
        difference_text(entry.ours, metric) if entry.ours else NOT_MEASURED,
        number_text(classical.paper, metric),
        number_text(credal.paper, metric),
        paper_difference_text(entry.paper, metric),
    ]


def _alone(result: TableResult) -> str:
    """Cells that are compared with nothing but the paper's: distilled networks, costs, other measures."""
    compared = {key for entry in result.improvements for key in (entry.keys, entry.keys.baseline)}
    cells = [cell for cell in result.cells if cell.keys not in compared and (cell.ours or cell.paper)]
    names = _row_names(result, cells)
    rows = [
        [
            *(_row_value(cell.keys, name) for name in names),
            number_text(cell.ours, cell.keys.metric) if cell.ours else NOT_MEASURED,
            str(cell.ours.n) if cell.ours else NONE,
            number_text(cell.paper, cell.keys.metric),
        ]
        for cell in _ordered(cells, result.layout)
    ]
    return _table([*map(display_name, names), "Ours", "n", "Paper"], rows)


def _solvers(comparisons: Sequence[SolverComparison]) -> str:
    """The exact measures and the paper's local solver on the same inputs."""
    rows = [
        [
            ", ".join(display_name(value) for value in entry.keys.values()),
            str(entry.errors.samples),
            f"{entry.effect.exact_eu_auroc:.2f}",
            f"{entry.effect.slsqp_eu_auroc:.2f}",
            f"{100 * entry.errors.wrong[0]:.1f} %",
            f"{entry.errors.largest_error:.3f}",
            f"{entry.errors.ms_per_input:.2f}",
        ]
        for entry in comparisons
        if entry.errors and entry.effect
    ]
    head = ["SLSQP on a subsample", "Inputs", "AUROC by EU, exact", "by SLSQP", "Wrong by > 0.001 bit", "Worst (bit)"]
    return markdown_table([*head, "ms"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without the columns in which nothing stands."""
    shown = [place for place in range(len(head)) if any(row[place] != NONE for row in rows)]
    return markdown_table([head[place] for place in shown], [[row[place] for place in shown] for row in rows])


def _row_names(result: TableResult, entries: Sequence[Cell | Improvement]) -> list[str]:
    """The keys that tell the rows apart, in the order of the table's layout; the metric always.

    The measure too where the result has several, even if these rows have one: another table shows the others.
    """
    varying = [name for name in result.layout if len({entry.keys.get(name) for entry in entries}) > 1]
    measures = {cell.keys.measure for cell in result.cells}
    shown = {*varying, "metric", *(["measure"] if len(measures) > 1 else [])}
    return [name for name in dict.fromkeys((*result.layout, "metric")) if name in shown]


def _row_value(keys: CellKey, name: str) -> str:
    value = keys.get(name)
    if value is None and name == "ood_set" and keys.metric in PREDICTED:
        return "clean"
    return NONE if value is None else display_name(value)


def _ordered(entries: Sequence[Entry], layout: Sequence[str]) -> list[Entry]:
    """By the keys of the layout, the values of each in the order in which they first appear."""
    ranks: dict[str, dict[Any, int]] = {name: {} for name in layout}
    for entry in entries:
        for name in layout:
            ranks[name].setdefault(entry.keys.get(name), len(ranks[name]))
    return sorted(entries, key=lambda entry: [ranks[name][entry.keys.get(name)] for name in layout])
