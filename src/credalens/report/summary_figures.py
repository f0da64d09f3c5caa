"""Every chart of an evaluation as PNG and SVG, drawn by the figure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credalens.report.figures import (
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
from credalens.report.summary import Evaluation
from credalens.report.summary_scores import KINDS
from credalens.report.tables import METHODS, SHORT
from credalens.report.words import unit

__all__ = ["save_figures"]

FORMATS = ("png", "svg")
MEASURES = ("epistemic", "total")


def save_figures(evaluation: Evaluation, folder: Path, /) -> None:
    """Write all figures into a new folder."""
    folder.mkdir()
    used: set[str] = set()
    for name, ax in _figures(evaluation):
        stem = _stem(name, used)
        for form in FORMATS:
            save_figure(cast(Figure, ax.figure), folder / f"{stem}.{form}")


def _stem(name: str, used: set[str]) -> str:
    """A name that every file system takes and no other figure has."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "figure"
    stem = next(text for n in range(len(used) + 1) if (text := plain if n == 0 else f"{plain}-{n + 1}") not in used)
    used.add(stem)
    return stem


def _figures(evaluation: Evaluation) -> Iterator[tuple[str, Axes]]:
    result = evaluation.result
    for name, curves in result["curves"]["detection"].items():
        lines = [(measure, kind) for measure in MEASURES for kind in KINDS]
        for form, draw in (("roc", plot_roc), ("pr", plot_pr)):
            named = {f"{SHORT[m]}, {METHODS[k]}": tuple(curves[m][k][form]) for m, k in lines}
            yield f"{form} {name}", draw(named, title=name)
    yield from _histograms(evaluation)
    if result["calibration"] is not None:
        yield "reliability", _reliability(result["calibration"])
        for measure, part in result["selective"].items():
            named = {METHODS[kind]: (part[kind]["rejected"], part[kind]["accuracy"]) for kind in KINDS}
            yield f"rejection {measure}", plot_accuracy_rejection(named, title=f"By {measure} uncertainty")
    if result["members_needed"] is not None:
        yield "members", _members(result["members_needed"])
    yield from _samples(result)


def _histograms(evaluation: Evaluation) -> Iterator[tuple[str, Axes]]:
    name, base = unit(evaluation.result["settings"]["base"]), evaluation.known.name
    for measure in MEASURES:
        for kind in KINDS:
            yield (
                f"histogram {measure} {METHODS[kind]}",
                plot_uncertainty_histograms(
                    evaluation.known.scores[kind][measure],
                    {other.name: other.scores[kind][measure] for other in evaluation.others},
                    measure=f"{measure.capitalize()} uncertainty ({name})",
                    id_name=base,
                    title=METHODS[kind].capitalize(),
                ),
            )


def _reliability(calibration: dict[str, Any]) -> Axes:
    ax = None
    for order, name in enumerate(("averaged", "intersection")):
        curve = calibration[name]["reliability"]
        confidence, accuracy = ([value or 0.0 for value in curve[key]] for key in ("confidence", "accuracy"))
        ax = plot_reliability(
            confidence, accuracy, curve["count"], edges=curve["edges"], name=name.capitalize(), order=order, ax=ax
        )
    return cast(Axes, ax)


def _members(found: dict[str, Any]) -> Axes:
    series = {name: (curve["mean"], curve["std"]) for name, curve in found["auroc"]["epistemic"]["credal"].items()}
    return plot_members_needed(found["sizes"], series, ylabel="AUROC of credal EU", title="How many members do I need?")


def _samples(result: dict[str, Any]) -> Iterator[tuple[str, Axes]]:
    """The first input of each group; bars only where no classes had to be added up."""
    names = result["data"]["class_names"]
    seen: set[str] = set()
    for sample in result["samples"]:
        if seen >= set(sample["groups"]):
            continue
        seen |= set(sample["groups"])
        title = f"{sample['set']}, row {sample['row']}"
        if not sample["others"]:
            yield (
                f"bars {title}",
                plot_member_bars(_exact(sample["members"]), class_names=names, true_class=sample["label"], title=title),
            )
        if sample["simplex"]:
            labels = ["others" if k is None else names[k] for k in sample["simplex"]["classes"]]
            yield f"simplex {title}", plot_simplex(_exact(sample["simplex"]["members"]), labels=labels, title=title)


def _exact(members: list[list[float]]) -> list[list[float]]:
    """Rounded probabilities, divided by their sum."""
    return [[value / sum(row) for value in row] for row in members]
