"""What wrong labels do to every uncertainty, and to the detection of unknown inputs by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Final

from credalens_paper.experiments.beyond import UNCERTAINTIES
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.results.dots import DotPanel, draw_dots
from credalens_paper.results.records import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAININGS: Final = {"cifar10": "own labels", "cifar10n": "worst human labels"}
PANELS: Final = {
    "mean": ("Uncertainty of the clean test images", "Mean (bits)", UNCERTAINTIES),
    "AUROC": ("Detection of unknown inputs", "AUROC (%), mean of the OOD sets", ("TU", "EU", "GH")),
}


def draw_noise(results: Sequence[Result], /) -> Figure | None:
    """A row for each uncertainty, from the training on CIFAR-10's labels to that on CIFAR-10N's."""
    panels = [
        DotPanel(title, axis, rows, is_span=True)
        for metric, (title, axis, measures) in PANELS.items()
        if (rows := _rows(results, metric, measures))
    ]
    return draw_dots(panels) if panels else None


def _rows(results: Sequence[Result], metric: str, measures: Sequence[str]) -> dict[str, Mapping[str, list[float]]]:
    rows = {
        f"{variant} {measure}": {
            words: _mean(results, id_set=data, variant=variant, measure=measure, metric=metric)
            for data, words in TRAININGS.items()
        }
        for measure in measures
        for variant in ("classical", "credal")
    }
    return {name: series for name, series in rows.items() if all(series.values())}


def _mean(results: Sequence[Result], **keys: str) -> list[float]:
    """The mean over the OOD sets, where there are several; empty where nothing was measured."""
    found = [number.ours.mean for number in numbers_of(results, Kind("LabelNoise", keys)) if number.ours]
    return [fmean(found)] if found else []
