"""What holds for texts: which score, which point prediction, and what a guard catches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from credalens_paper.experiments.tables import BOTH
from credalens_paper.findings.lookup import Kind, estimates_of, numbers_of
from credalens_paper.measures.estimates import Estimate
from credalens_paper.results.records import Result
from credalens_paper.results.rendering.markdown import itemised, joined, markdown_table
from credalens_paper.results.rendering.values import value_text

Panel = dict[str, Estimate]
LABEL: Final = "TextScores"
PAIRS: Final = {"TU": "credal total less entropy of the mean", "EU": "credal epistemic less mutual information"}
NOTE: Final = (
    "CLINC150, five members or samples. AUROC against requests outside all intents, in per cent, by the best and the worst\n"
    "score; by TU and EU credal less averaged, with the 95 % interval over requests; for the point prediction averaged /\n"
    "credal. All scores: [`TextScores`](../results/figures/TextScores.md), [`TextIntents`](../results/tables/TextIntents.md)."
)


def text_sentence(results: Sequence[Result], /) -> str:
    """Which score finds requests outside all intents best, credal against averaging, and the point prediction."""
    parts = [_method_words(method, *panels) for method, panels in _methods(results).items()]
    if not parts:
        return ""
    worse = [_averaging_wins(results, method) for method in _methods(results)]
    total, epistemic = (_behind(results, name) for name in ("credal total", "credal epistemic"))
    return itemised(
        f"Texts (CLINC150, 150 intents, requests outside all of them), five members: by AUROC credal total is {total} below "
        f"the best score of a method, credal epistemic {epistemic}. The averaged probability has the lower ECE and NLL with "
        f"{sum(worse)} of {len(worse)} methods. AUROC by method, and what a guard with 5 % false alarms catches:",
        parts,
    )


def _behind(results: Sequence[Result], name: str) -> str:
    """By how much a score is below the best one, over the methods."""
    scores = [panels[0] for panels in _methods(results).values()]
    gaps = [max(one.mean for one in panel.values()) - panel[name].mean for panel in scores]
    return " to ".join(dict.fromkeys(f"{gap:.2f}" for gap in (min(gaps), max(gaps))))


def _method_words(method: str, scores: Panel, gains: Panel, guard: Panel) -> str:
    best, total = max(scores.values(), key=lambda one: one.mean), scores["credal total"]
    beside = "" if best is total else f", credal total {total.mean:.2f}"
    differences = ", ".join(f"{kind} {_gain(gains[name])}" for kind, name in PAIRS.items())
    caught = ", ".join(
        f"{guard[f'caught, {name}'].mean:.0f} % by {name}" for name in ("credal total", "credal epistemic")
    )
    return (
        f"{method}: best by {best.name} ({best.mean:.2f}){beside}; credal less averaged {differences}; caught {caught}"
    )


def _averaging_wins(results: Sequence[Result], method: str) -> bool:
    pairs = [_values(results, method, metric) for metric in ("ECE", "NLL")]
    return all(len(values) == 2 and values["classical"] < values["credal"] for values in pairs)


def text_table(results: Sequence[Result], /) -> str:
    """A row for each method."""
    rows = []
    for method, (scores, gains, _) in _methods(results).items():
        ranked = sorted(scores.values(), key=lambda one: -one.mean)
        ends = [f"{one.name} {one.mean:.2f}" for one in (ranked[0], ranked[-1])]
        points = [_points(results, method, metric) for metric in ("ACC", "ECE", "NLL")]
        rows.append([method, *ends, *(_gain(gains[name]) for name in PAIRS.values()), *points])
    table = markdown_table(["Method", "Best", "Worst", "TU", "EU", "Accuracy", "ECE", "NLL"], rows)
    return joined(table, NOTE) if table else ""


def _methods(results: Sequence[Result]) -> dict[str, list[Panel]]:
    """Method -> its AUROCs, differences and guards, each by the name of its numbers."""
    return {title.split()[-1]: panels for title, panels in estimates_of(results, LABEL).items()}


def _gain(one: Estimate) -> str:
    return f"{one.mean:+.2f} ({one.low:+.2f} to {one.high:+.2f})"


def _points(results: Sequence[Result], method: str, metric: str) -> str:
    values = _values(results, method, metric)
    return " / ".join(value_text(values[variant], metric) for variant in BOTH if variant in values)


def _values(results: Sequence[Result], method: str, metric: str) -> dict[str, float]:
    """The point predictions' metric, averaged and credal."""
    kind = Kind("TextIntents", {"method": method, "metric": metric, "ood_set": None})
    return {number.keys["variant"]: number.ours.mean for number in numbers_of(results, kind) if number.ours}
