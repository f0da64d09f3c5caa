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

from credalens.evaluation.evaluate import Evaluation
from credalens.evaluation.scores import KINDS
from credalens.evaluation.words.verdicts import unit
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
from credalens.report.tables import METHODS, SHORT

__all__ = ["save_figures"]

Draw = Callable[[], Axes]
FORMATS = ("png", "svg")
MEASURES = ("epistemic", "total")
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
    result = evaluation.result
    if result["ood"]:
        yield from _detection(result)
        yield from _histograms(evaluation)
    if result["calibration"] is not None:
        yield "reliability", partial(_reliability, result["calibration"])
        for measure, part in result["selective"].items():
            named = {METHODS[kind]: (part[kind]["rejected"], part[kind]["accuracy"]) for kind in KINDS}
            yield f"rejection {measure}", partial(_rejection, named, measure)
    if result["members_needed"] is not None and result["ood"]:
        yield "members", partial(_members, result["members_needed"])
    yield from _samples(result)


def _detection(result: dict[str, Any]) -> Iterator[tuple[str, Draw]]:
    known = result["data"]["id"]["rows"]
    for found in result["ood"]:
        name, curves = found["name"], result["curves"]["detection"][found["name"]]
        roc, pr = (
            {f"{SHORT[m]}, {METHODS[k]}": tuple(curves[m][k][form]) for m in MEASURES for k in KINDS}
            for form in ("roc", "pr")
        )
        yield f"roc {name}", partial(plot_roc, roc, theme=BY_METHOD, title=name)
        share = found["rows"] / (found["rows"] + known)
        yield f"pr {name}", partial(plot_pr, pr, prevalence=share, theme=BY_METHOD, title=name)


def _histograms(evaluation: Evaluation) -> Iterator[tuple[str, Draw]]:
    base = unit(evaluation.result["settings"]["base"])
    for measure in MEASURES:
        for kind in KINDS:
            draw = partial(
                plot_uncertainty_histograms,
                evaluation.known.scores[kind][measure],
                {other.name: other.scores[kind][measure] for other in evaluation.others},
                measure=f"{measure.capitalize()} uncertainty ({base})",
                id_name=evaluation.known.name,
                title=METHODS[kind].capitalize(),
            )
            yield f"histogram {measure} {METHODS[kind]}", draw


def _rejection(named: dict[str, Any], measure: str) -> Axes:
    return plot_accuracy_rejection(named, theme=BY_METHOD, title=f"By {measure} uncertainty")


def _reliability(calibration: dict[str, Any]) -> Axes:
    ax = None
    for order, name in enumerate(("intersection", "averaged")):
        curve = calibration[name]["reliability"]
        confidence, accuracy = ([value or 0.0 for value in curve[key]] for key in ("confidence", "accuracy"))
        ax = plot_reliability(
            confidence,
            accuracy,
            curve["count"],
            edges=curve["edges"],
            name=name.capitalize(),
            order=order,
            theme=BY_METHOD,
            ax=ax,
        )
    return cast(Axes, ax)


def _members(found: dict[str, Any]) -> Axes:
    """From two members on: one alone has no epistemic uncertainty."""
    curves = found["auroc"]["epistemic"]["credal"]
    series = {name: (curve["mean"][1:], curve["std"][1:]) for name, curve in curves.items()}
    title = "How many members do I need?"
    return plot_members_needed(found["sizes"][1:], series, ylabel="AUROC of credal EU", title=title)


def _samples(result: dict[str, Any]) -> Iterator[tuple[str, Draw]]:
    """The first input of each group; bars only where no classes had to be added up."""
    names = result["data"]["class_names"]
    seen: set[str] = set()
    for sample in result["samples"]:
        if seen >= set(sample["groups"]):
            continue
        seen |= set(sample["groups"])
        title = f"{sample['set']}, row {sample['row']}"
        if not sample["others"]:
            members, truth = _exact(sample["members"]), sample["label"]
            yield f"bars {title}", partial(plot_member_bars, members, class_names=names, true_class=truth, title=title)
        if sample["simplex"]:
            labels = ["others" if k is None else names[k] for k in sample["simplex"]["classes"]]
            members = _exact(sample["simplex"]["members"])
            yield f"simplex {title}", partial(plot_simplex, members, labels=labels, title=title)


def _exact(members: list[list[float]]) -> list[list[float]]:
    """Rounded probabilities, divided by their sum."""
    return [[value / sum(row) for value in row] for row in members]
