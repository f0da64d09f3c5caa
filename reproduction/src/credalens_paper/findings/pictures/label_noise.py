"""What wrong labels do to every uncertainty, and to the detection of unknown inputs by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
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
    rows: dict[str, Mapping[str, list[float]]] = {}
    for measure, variant in product(measures, ("classical", "credal")):
        keys = {"variant": variant, "measure": measure, "metric": metric}
        ends = [_by_set(results, id_set=data, **keys) for data in TRAININGS]
        shared = [name for name in ends[0] if name in ends[1]]
        if shared:
            means = ([fmean(end[name] for name in shared)] for end in ends)
            rows[f"{variant} {measure}"] = dict(zip(TRAININGS.values(), means, strict=True))
    return rows


def _by_set(results: Sequence[Result], **keys: str) -> dict[str | None, float]:
    """The numbers by the OOD set, None for the test set itself."""
    found = numbers_of(results, Kind("LabelNoise", keys))
    return {number.keys.get("ood_set"): number.ours.mean for number in found if number.ours}
