"""Which mistake would explain the paper's accuracy on corrupted images, and which would not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from credalens_paper.experiments.beyond import MISTAKES
from credalens_paper.experiments.display_names import display_name
from credalens_paper.findings.lookup import Kind, Number, numbers_of, spread_text
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import joined, markdown_table
from credalens_paper.results.rendering.values import value_text

NEAR: Final = {"ACC": 5.0, "ECE": 0.05}
"""How far a number may be from the paper's to count as reproduced."""
NOTE: Final = (
    "The same networks on the same corrupted images (every fifth of each set), averaged / intersection probability, when the\n"
    "images are given to them as in training and by mistakes (`CorruptedMistakes`):"
)
Gaps = Mapping[str, list[float]]


def _measured(results: Sequence[Result]) -> dict[str, list[Number]]:
    """Preparation -> its accuracies and ECEs on corrupted images, where the paper has them too."""
    kind = Kind(MISTAKES, {"metric": tuple(NEAR), "ood_set": "cifar10-c"})
    by_preparation: dict[str, list[Number]] = {}
    for number in numbers_of(results, kind):
        if number.ours and number.paper:
            by_preparation.setdefault(number.keys["preparation"], []).append(number)
    return by_preparation


def _gaps(numbers: Sequence[Number]) -> Gaps:
    """By metric, ours less the paper's."""
    gaps: dict[str, list[float]] = {metric: [] for metric in NEAR}
    for number in numbers:
        if number.ours and number.paper:
            gaps[number.keys["metric"]].append(number.ours.mean - number.paper.mean)
    return gaps


def _farthest(gaps: Gaps, metric: str) -> float:
    return max(map(abs, gaps[metric]))


def mistakes_sentence(results: Sequence[Result], /) -> str:
    """Which ways to give the images reproduce the paper's numbers, which come nearest, and which are far off."""
    gaps = {display_name(name): _gaps(numbers) for name, numbers in _measured(results).items()}
    if not gaps or not all(all(by_metric.values()) for by_metric in gaps.values()):
        return ""
    within = {metric: {name for name in gaps if _farthest(gaps[name], metric) <= NEAR[metric]} for metric in NEAR}
    nearest = min(gaps, key=lambda name: max(_farthest(gaps[name], metric) / NEAR[metric] for metric in NEAR))
    accurate, calibrated = within["ACC"], within["ECE"]
    both, accuracy = _listed(gaps, accurate & calibrated), _listed(gaps, accurate - calibrated)
    ece, neither = _listed(gaps, calibrated - accurate), _listed(gaps, set(gaps) - accurate - calibrated)
    return (
        "What would explain the paper's accuracy on corrupted images? Within "
        f"{NEAR['ACC']:g} points of its accuracies and {NEAR['ECE']} of its ECEs: {both}. Of its accuracies alone: "
        f"{accuracy}. Of its ECEs alone: {ece}. Farther from both: {neither}. Nearest by both is {nearest}, accuracy off by "
        f"{spread_text(gaps[nearest]['ACC'], 'ACC')}, ECE by {spread_text(gaps[nearest]['ECE'], 'ECE')}."
    )


def _listed(names: Mapping[str, Gaps], chosen: set[str]) -> str:
    return "; ".join(name for name in names if name in chosen) or "none"


def mistakes_table(results: Sequence[Result], /) -> str:
    """Accuracy and ECE by the way the images are given, the paper's below them."""
    measured = _measured(results)
    if not measured:
        return ""
    columns = {number.at(("backbone", "metric")): None for numbers in measured.values() for number in numbers}
    rows = [[display_name(name), *_values(numbers, columns)] for name, numbers in measured.items()]
    printed = ["the paper", *_values(next(iter(measured.values())), columns, paper=True)]
    head = [f"{display_name(backbone)} {metric}" for backbone, metric in columns]
    return joined(NOTE, markdown_table([display_name("preparation"), *head], [*rows, printed]))


def _values(numbers: Sequence[Number], columns: Mapping[tuple[str, ...], None], *, paper: bool = False) -> list[str]:
    """Both variants of a column in one cell."""
    texts: dict[tuple[str, ...], list[str]] = {column: [] for column in columns}
    for number in numbers:
        value = number.paper if paper else number.ours
        if value:
            texts[number.at(("backbone", "metric"))].append(value_text(value.mean, number.keys["metric"]))
    return [" / ".join(texts[column]) for column in columns]
