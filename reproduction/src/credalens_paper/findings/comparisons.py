"""Credal against classical in every cell that was measured: how often it wins, and every comparison that it loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isclose
from statistics import fmean
from typing import Final

from credalens_paper.experiments.cell_keys import DIGITS, CellKey, better_side
from credalens_paper.experiments.display_names import display_name
from credalens_paper.experiments.tables import C10, TABLES
from credalens_paper.findings.lookup import model_name, place_name
from credalens_paper.results.records import Difference, PaperDifference, Result, TableResult, declared_label
from credalens_paper.results.rendering.markdown import NONE, joined, markdown_table
from credalens_paper.results.rendering.values import difference_text, paper_difference_text

REPEATED: Final = 1e-3
"""Relative difference below which two tables give the same comparison; predictions stored as float16 change it by 1e-5."""
SPOILT: Final = {label for label, table in TABLES.items() if table.regime}


@dataclass(frozen=True)
class Comparison:
    """Credal less classical, under the keys of what was measured."""

    label: str
    keys: CellKey
    ours: Difference
    paper: PaperDifference | None

    @property
    def place(self) -> str:
        """Unknown inputs, corrupted ones, or the clean test set."""
        return "unknown" if is_unknown(self.keys.ood_set) else "corrupted" if self.keys.ood_set else "clean"

    @property
    def is_spoilt(self) -> bool:
        """Whether a member of each prediction was made overconfident."""
        return declared_label(self.label) in SPOILT


def is_unknown(ood_set: str | None, /) -> bool:
    """Whether a set holds inputs of none of the classes; a corrupted test set does not."""
    return bool(ood_set) and not str(ood_set).endswith("-c")


def comparisons(results: Sequence[Result], /) -> list[Comparison]:
    """Measured comparisons of models, those that two tables share only once."""
    return list(_comparisons(results))


def cells(results: Sequence[Result], /) -> list[Comparison]:
    """One comparison for each cell: a model with one number of members on one set, by one measure and metric.

    Where several tables measured networks of the same kind it is the mean over all their runs. Sets that PIA has reduced
    are left out, since exact measures need no reduction, and so are predictions that were made worse on purpose.
    """
    return by_cell(entry for entry in comparisons(results) if entry.keys.J is None and not entry.is_spoilt)


def by_cell(entries: Iterable[Comparison], /) -> list[Comparison]:
    """The comparisons under the same keys as one, their mean over all runs."""
    groups: dict[CellKey, list[Comparison]] = {}
    for entry in entries:
        groups.setdefault(entry.keys, []).append(entry)
    return [replace(group[0], ours=_mean([entry.ours for entry in group], keys)) for keys, group in groups.items()]


def _mean(groups: Sequence[Difference], keys: CellKey) -> Difference:
    if len(groups) == 1:
        return groups[0]
    runs = [group.n for group in groups]
    mean, wins = round(fmean([group.mean for group in groups], runs), DIGITS), sum(group.wins for group in groups)
    return Difference(mean, None, sum(runs), wins, better_side(keys.metric, mean))


def _comparisons(results: Sequence[Result]) -> Iterator[Comparison]:
    seen: dict[CellKey, list[Difference]] = {}
    for result in results:
        if not isinstance(result, TableResult):
            continue
        for comparison in compared_in(result):
            others = seen.setdefault(comparison.keys, [])
            if not repeats(comparison.ours, others):
                others.append(comparison.ours)
                yield comparison


def compared_in(result: TableResult, /) -> Iterator[Comparison]:
    """Measured comparisons of one table, of models that are given their images as in training."""
    measured = {cell.keys: CellKey(**{**cell.keys.as_dict(), **cell.substitutes}) for cell in result.cells}
    for entry in result.improvements:
        keys = measured[entry.keys]
        if entry.ours and keys.id_set and keys.preparation is None:
            yield Comparison(result.label, keys, entry.ours, entry.paper)


def repeats(ours: Difference, others: Iterable[Difference], /) -> bool:
    """Whether one of the others is the same difference over as many runs."""
    return any(ours.n == other.n and isclose(ours.mean, other.mean, rel_tol=REPEATED) for other in others)


def tally_table(compared: Sequence[Comparison], /) -> str:
    """Wins and losses by measure, metric and set."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    for entry in compared:
        keys = entry.keys
        where = "OOD sets" if is_unknown(keys.ood_set) else place_name(keys.as_dict())
        counts.setdefault((keys.measure or "prediction", display_name(keys.metric), where), Counter())[
            entry.ours.better
        ] += 1
    rows = [
        [*kind, *(str(sides[side]) for side in ("credal", "classical", "equal"))]
        for kind, sides in sorted(counts.items())
    ]
    better = Counter(entry.ours.better for entry in compared)
    cells = f"Of {len(compared)} comparisons credal wins {better['credal']} and loses {better['classical']}."
    return joined(markdown_table(["Measured by", "Metric", "Set", "Won", "Lost", "Equal"], rows), cells)


def losses_table(compared: Sequence[Comparison], /) -> str:
    """Every comparison that credal loses."""
    rows = [
        [
            f"`{entry.label}`",
            _trained_model(entry.keys),
            place_name(entry.keys.as_dict()),
            entry.keys.measure or NONE,
            display_name(entry.keys.metric),
            difference_text(entry.ours, entry.keys.metric),
            paper_difference_text(entry.paper, entry.keys.metric),
        ]
        for entry in compared
        if entry.ours.better == "classical"
    ]
    return markdown_table(["Table", "Model", "Set", "By", "Metric", "Difference", "Paper"], rows) or "None."


def _trained_model(keys: CellKey) -> str:
    """The model, with the classes that PIA keeps of it, and its training set where that is not CIFAR-10."""
    name = model_name(keys.as_dict()) + ("" if keys.J is None else f", J = {keys.J}")
    return name if keys.id_set == C10 else f"{name}, on {display_name(keys.id_set)}"
