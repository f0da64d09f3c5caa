"""What guards keep of their promise for every kind of network, and what they turn away."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Final

from credalens.core.scores import SCORES
from credalens_paper.experiments.display_names import display_name
from credalens_paper.findings.lookup import Kind, numbers_of
from credalens_paper.measures.guarding import RATE
from credalens_paper.results.dots import DotPanel, draw_dots
from credalens_paper.results.records import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS: Final = {
    "false_alarms": ("False alarms", "Share of the test inputs (%); stroke: the promise"),
    "turned_away": ("Turned away", "Share of the unknown inputs (%), mean of the OOD sets"),
    "halved_accepted": ("Error rate halved: accepted", "Share of the test inputs (%)"),
    "halved_turned_away": (
        "Error rate halved: turned away",
        "Share of the unknown inputs (%), mean of the OOD sets",
    ),
}
Rows = dict[str, dict[str, list[float]]]


def draw_guards(results: Sequence[Result], /) -> Figure | None:
    """A row for each kind of network, a dot for each score."""
    panels = []
    for metric, (title, axis) in PANELS.items():
        rows = _rows(results, metric)
        promised = dict.fromkeys(rows, 100 * RATE) if metric == "false_alarms" else {}
        panels += [DotPanel(title, axis, rows, promised, reach=(0, 200 * RATE) if promised else (0,))] if rows else []
    return draw_dots(panels) if panels else None


def _rows(results: Sequence[Result], metric: str) -> Rows:
    found: Rows = {}
    for number in numbers_of(results, Kind("GuardPromises", {"metric": metric})):
        if number.ours:
            keys = number.keys
            row = found.setdefault(f"{display_name(keys['backbone'])}, {display_name(keys['id_set'])}", {})
            row.setdefault(SCORES[keys["measure"]].label, []).append(number.ours.mean)
    return {name: {score: [fmean(values)] for score, values in row.items()} for name, row in found.items()}
