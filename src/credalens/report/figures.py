"""Every chart of an evaluation as PNG and SVG, drawn by the figure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credalens.evaluation.detection import Detection
from credalens.evaluation.detection_curves import LinesByScore
from credalens.evaluation.members_needed import MembersNeeded
from credalens.evaluation.metrics.calibration import ReliabilityCurve
from credalens.evaluation.metrics.selective import RejectionCurve
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.results import DETECTORS, ByMethod
from credalens.evaluation.words.names import METHOD_NAMES, line_name
from credalens.evaluation.words.numbers import unit
from credalens.plots import (
    plot_accuracy_rejection,
    plot_member_bars,
    plot_members_needed,
    plot_pr,
    plot_reliability,
    plot_roc,
    plot_simplex,
    plot_uncertainty_histograms,
    save_figure,
)
from credalens.plots.style import LIGHT

Draw = Callable[[], Axes]
FORMATS = ("png", "svg")
BY_METHOD: Final = replace(LIGHT, palette=2 * (LIGHT.credal, LIGHT.averaged))
"""Credal and averaging take turns and keep the colours they have on the page; dashes tell EU from TU."""


def save_figures(
    evaluation: Evaluation, folder: Path, /, *, report: Callable[[int, int], None] = lambda done, of: None
) -> None:
    """Write all figures into a new folder; ``report`` is called with how many are done and how many there are."""
    folder.mkdir()
    used: set[str] = set()
    figures = list(_figures(evaluation))
    for done, (name, draw) in enumerate(figures, start=1):
        stem, ax = _stem(name, used), draw()
        for form in FORMATS:
            save_figure(cast(Figure, ax.figure), folder / f"{stem}.{form}")
        report(done, len(figures))


def _stem(name: str, used: set[str]) -> str:
    """A name that every file system takes and no other figure has."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "figure"
    stem = next(text for n in range(len(used) + 1) if (text := plain if n == 0 else f"{plain}-{n + 1}") not in used)
    used.add(stem)
    return stem


def _figures(evaluation: Evaluation) -> Iterator[tuple[str, Draw]]:
    """Names, and what draws the figure when it is its turn."""
    for detection in evaluation.ood:
        yield from _detection(detection, evaluation.curves.detection[detection.name])
    if evaluation.ood:
        yield from _histograms(evaluation)
    if evaluation.calibration:
        yield "reliability", partial(_reliability, evaluation.calibration)
    if evaluation.selective:
        for measure, curves in evaluation.selective.items():
            yield f"rejection {measure}", partial(_rejection, curves, measure)
    if evaluation.members_needed and evaluation.ood:
        yield "members", partial(_members, evaluation.members_needed)
    yield from _samples(evaluation)


def _detection(detection: Detection, curves: LinesByScore) -> Iterator[tuple[str, Draw]]:
    lines = {line_name(method, m): part for m, parts in curves.items() for method, part in parts.items()}
    look: dict[str, Any] = {"theme": BY_METHOD, "title": detection.name}
    yield f"roc {detection.name}", partial(plot_roc, {name: line.roc for name, line in lines.items()}, **look)
    share = detection.epistemic.credal.prevalence
    pr = {name: line.pr for name, line in lines.items()}
    yield f"pr {detection.name}", partial(plot_pr, pr, prevalence=share, **look)


def _histograms(evaluation: Evaluation) -> Iterator[tuple[str, Draw]]:
    base, id_name = unit(evaluation.settings.base), evaluation.data.id.name
    for measure in DETECTORS:
        for method, method_name in METHOD_NAMES.items():
            scores = {name: all_scores.of(method).of(measure) for name, all_scores in evaluation.uncertainty.items()}
            draw = partial(
                plot_uncertainty_histograms,
                scores.pop(id_name),
                scores,
                measure=f"{measure.capitalize()} uncertainty ({base})",
                id_name=id_name,
                title=method_name.capitalize(),
            )
            yield f"histogram {measure} {method_name}", draw


def _rejection(curves: ByMethod[RejectionCurve], measure: str) -> Axes:
    lines = {METHOD_NAMES[method]: (curve.rejected, curve.accuracy) for method, curve in curves.items()}
    return plot_accuracy_rejection(lines, theme=BY_METHOD, title=f"By {measure} uncertainty")


def _reliability(calibration: Calibration) -> Axes:
    ax = None
    for order, name in enumerate(("intersection", "averaged")):
        curve: ReliabilityCurve = getattr(calibration, name).reliability
        ax = plot_reliability(
            curve.confidence,
            curve.accuracy,
            curve.count,
            edges=curve.edges,
            name=name.capitalize(),
            order=order,
            theme=BY_METHOD,
            ax=ax,
        )
    return cast(Axes, ax)


def _members(needed: MembersNeeded) -> Axes:
    series = {name: (trends.credal.mean, trends.credal.std) for name, trends in needed.epistemic_auroc().items()}
    title = "How many members do I need?"
    return plot_members_needed(needed.sizes[1:], series, ylabel="AUROC of credal EU", title=title)


def _samples(evaluation: Evaluation) -> Iterator[tuple[str, Draw]]:
    """The first input of each group; bars only where no classes had to be added up."""
    names = evaluation.data.class_names
    seen: set[str] = set()
    for sample in evaluation.samples:
        if seen >= set(sample.groups):
            continue
        seen |= set(sample.groups)
        title = f"{sample.set}, row {sample.row}"
        if not sample.others:
            bars = partial(plot_member_bars, _exact(sample.members), class_names=names, true_class=sample.label)
            yield f"bars {title}", partial(bars, title=title)
        if sample.simplex:
            labels = ["others" if k is None else names[k] for k in sample.simplex.classes]
            yield f"simplex {title}", partial(plot_simplex, _exact(sample.simplex.members), labels=labels, title=title)


def _exact(members: list[list[float]]) -> list[list[float]]:
    """Rounded probabilities, divided by their sum."""
    return [[value / sum(row) for value in row] for row in members]
