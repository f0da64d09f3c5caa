"""Pictures of our own tables, drawn from their numbers when the pages are written.

Two kinds of charts: dots on rows, and lines over numbers of members that stand side by side however far apart they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, product
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from credalens.core.scores import SCORES
from credalens.evaluation.which_score import mean_ranks
from credalens.plots import new_figure, themed
from credalens.plots.axes import add_legend, dash, marker, name_axes, open_axes
from credalens_paper.experiments.cell_keys import display_name
from credalens_paper.experiments.own_entries import UNCERTAINTIES
from credalens_paper.measures.guarding import RATE
from credalens_paper.pages.claims import means_of, numbers_of
from credalens_paper.pages.comparisons import DATA, DISTANCES, catalogue, ranking
from credalens_paper.results.records import Result

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS: Final = (6.4, 0.36)  # inches of a panel of dots, and of each of its rows
LINES: Final = (4.6, 2.9)  # inches of a panel of lines
COLUMNS: Final = 2  # panels of lines beside each other
LEAST_ROWS: Final = 3  # as high as so many rows is a panel with fewer
APART: Final = 0.19
"""Between two series of a row, so that their dots do not hide each other; less where a row is full."""
FULL: Final = 0.7  # the part of a row's height that its series take at most
ROOM: Final = 4  # series that a row has room for; with more it is higher
AREA: Final = 32.0
"""Of a dot for one number, where all are different; equal numbers are one larger dot, and then all are smaller."""

Rows = dict[str, Mapping[str, list[float]]]
TEXTS: Final = "texts (CLINC150)"
TRAININGS: Final = {"cifar10": "own labels", "cifar10n": "worst human labels"}
NOISE_PANELS: Final = {
    "mean": ("Uncertainty of the clean test images", "Mean (bits)", UNCERTAINTIES),
    "AUROC": ("Detection of unknown inputs", "AUROC (%), mean of the OOD sets", ("TU", "EU", "GH")),
}
TURNED_AWAY: Final = "Share of the unknown inputs (%), mean of the OOD sets"
GUARD_PANELS: Final = {
    "false_alarms": ("False alarms", "Share of the test inputs (%); stroke: the promise"),
    "turned_away": ("Turned away", TURNED_AWAY),
    "halved_accepted": ("Error rate halved: accepted", "Share of the test inputs (%)"),
    "halved_turned_away": ("Error rate halved: turned away", TURNED_AWAY),
}
TRIMS: Final = {"trim5": 5, "trim10": 10, "trim20": 20}
"""Per cent of the members that are left out at each end."""
TRIM_LINES: Final = {
    "classical": "Averaged",
    "credal": "Credal, all members",
    **{name: f"Without {percent} % at each end" for name, percent in TRIMS.items()},
}


@dataclass(frozen=True)
class DotPanel:
    """One pair of axes.

    :ivar rows: the numbers of each series by the name of a row, the first row on top.
    :ivar strokes: a number across some rows: their mean, or what is promised.
    :ivar is_span: whether the dots of a row are two ends, on one line that joins them.
    :ivar is_whole: whether the numbers are whole ones.
    :ivar reach: what the axis shows at least.
    """

    title: str
    axis: str
    rows: Mapping[str, Mapping[str, Sequence[float]]]
    strokes: Mapping[str, float] = field(default_factory=dict)
    is_span: bool = False
    is_whole: bool = False
    reach: tuple[float, ...] = ()

    @property
    def series(self) -> list[str]:
        """The series that have numbers."""
        return list(dict.fromkeys(name for row in self.rows.values() for name, values in row.items() if values))

    @property
    def most_equal(self) -> int:
        """How many numbers of a series in a row are the same at most."""
        return max(max(Counter(values).values(), default=1) for row in self.rows.values() for values in row.values())


def draw_dots(panels: Sequence[DotPanel], /) -> Figure:
    """Panels below each other, with one legend of all their series."""
    series = list(dict.fromkeys(name for panel in panels for name in panel.series))
    higher = max(1.0, len(series) / ROOM)
    heights = [higher * max(LEAST_ROWS, len(panel.rows)) + 2 for panel in panels]
    figure = new_figure(size=(ROWS[0], ROWS[1] * (sum(heights) + 1)))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    entries: dict[str, Artist] = {}
    for panel, ax in zip(panels, axes, strict=True):
        entries |= _draw_rows(ax, panel, series)
    with themed() as look:
        add_legend(figure, entries, look, loc="outside lower center", ncols=2)
    return figure


def _draw_rows(axes: Axes, panel: DotPanel, series: Sequence[str]) -> dict[str, Artist]:
    """Draw a panel, each series as in the others, and return what the legend names."""
    entries: dict[str, Artist] = {}
    step = min(APART, FULL / max(1, len(series) - 1))
    with open_axes(axes, theme="light", size=ROWS) as (ax, look):
        for place, (title, row) in enumerate(panel.rows.items()):  # behind the dots
            if panel.is_span:
                ends = [value for values in row.values() for value in values]
                ax.plot([min(ends), max(ends)], [place, place], color=look.muted, linewidth=1.2, zorder=2)
            if title in panel.strokes:
                x = panel.strokes[title]
                ax.plot([x, x], [place - 0.42, place + 0.42], color=look.text, linewidth=2.0, zorder=2)
        for order, (name, color) in enumerate(zip(series, look.colors_of(series), strict=True)):
            if name in panel.series:
                apart = 0.0 if panel.is_span else step * (order - (len(series) - 1) / 2)
                counted = [
                    (place + apart, value, count)
                    for place, row in enumerate(panel.rows.values())
                    for value, count in Counter(row.get(name, ())).items()
                ]
                places, values, counts = np.array(counted).T
                areas = AREA * counts / panel.most_equal**0.5
                style: dict[str, Any] = {"color": color, "marker": marker(order), "linewidths": 0, "zorder": 3}
                entries[name] = ax.scatter(values, places, areas, **style)
        ax.set_yticks(range(len(panel.rows)), list(panel.rows))
        ax.set_ylim(len(panel.rows) - 0.4, -0.6)
        ax.update_datalim([(x, 0) for x in panel.reach])
        ax.locator_params(axis="x", integer=panel.is_whole)
        name_axes(ax, look, xlabel=panel.axis, title=panel.title)
    return entries


@dataclass(frozen=True)
class SizePanel:
    """One pair of axes: for each line the numbers of some sizes, and for each size how many runs they are means of."""

    title: str
    axis: str
    runs: Mapping[int, int]
    lines: Mapping[str, Mapping[int, float]]


def draw_sizes(panels: Sequence[SizePanel], /) -> Figure:
    """Two panels in a row, and one legend of all lines."""
    rows = -(-len(panels) // COLUMNS)
    figure = new_figure(size=(LINES[0] * COLUMNS, LINES[1] * rows + 0.6))
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    entries: dict[str, Artist] = {}
    for place, panel in enumerate(panels, start=1):
        entries |= _draw_lines(figure.add_subplot(rows, COLUMNS, place), panel, names)
    with themed() as look:
        add_legend(figure, entries, look, loc="outside lower center", ncols=3)
    return figure


def _draw_lines(axes: Axes, panel: SizePanel, names: Sequence[str]) -> dict[str, Artist]:
    entries: dict[str, Artist] = {}
    places = {size: place for place, size in enumerate(panel.runs)}
    with open_axes(axes, theme="light", size=LINES) as (ax, look):
        for order, (name, color) in enumerate(zip(names, look.colors_of(names), strict=True)):
            style: dict[str, Any] = {"color": color, "linestyle": dash(order), "marker": marker(order)}
            line = panel.lines.get(name, {})
            for _, sizes in groupby((size for size in panel.runs if size in line), panel.runs.get):
                joined = list(sizes)  # of equally many runs: means over other networks are not joined
                (entries[name],) = ax.plot([places[size] for size in joined], [line[size] for size in joined], **style)
        ax.set_xticks(list(places.values()), [f"{size}\nn = {runs}" for size, runs in panel.runs.items()])
        name_axes(ax, look, xlabel="Members or samples, and runs", ylabel=panel.axis, title=panel.title)
    return entries


def draw_pictures(results: Sequence[Result], /) -> dict[str, Figure]:
    """The pictures of the tables that are among the results, by their labels."""
    pictures = {result.label: PICTURES[result.label](results) for result in results if result.label in PICTURES}
    return {label: picture for label, picture in pictures.items() if picture is not None}


def draw_ranks(results: Sequence[Result], /) -> Figure | None:
    """A row for each score, the best mean rank on top; a dot for each pair of network and unknown inputs."""
    cells = catalogue(results)
    if (overall := ranking(cells)) is None:
        return None
    ranks = {
        pair: mean_ranks({name: np.array([auroc]) for name, auroc in cell.items()}) for pair, cell in cells.items()
    }
    groups = {**DISTANCES, TEXTS: DATA[TEXTS]}
    rows: Rows = {
        SCORES[score].label: {
            words.partition(" (")[0]: [of_pair[score] for pair, of_pair in ranks.items() if holds(pair)]
            for words, holds in groups.items()
        }
        for score in overall.ranks
    }
    means = {SCORES[score].label: rank for score, rank in overall.ranks.items()}
    title = f"Scores on {len(cells)} pairs of network and unknown inputs"
    return draw_dots([DotPanel(title, "Rank by AUROC, 1 is best; stroke: mean", rows, means, is_whole=True)])


def draw_noise(results: Sequence[Result], /) -> Figure | None:
    """A row for each uncertainty, from the training on CIFAR-10's labels to that on CIFAR-10N's."""
    panels = []
    for metric, (title, axis, measures) in NOISE_PANELS.items():
        rows: Rows = {}
        for measure, variant in product(measures, ("classical", "credal")):
            keys = {"variant": variant, "measure": measure, "metric": metric}
            ends = [means_of(results, "LabelNoise", "ood_set", id_set=data, **keys) for data in TRAININGS]
            if shared := [name for name in ends[0] if name in ends[1]]:
                means = ([fmean(end[name] for name in shared)] for end in ends)
                rows[f"{variant} {measure}"] = dict(zip(TRAININGS.values(), means, strict=True))
        panels += [DotPanel(title, axis, rows, is_span=True)] if rows else []
    return draw_dots(panels) if panels else None


def draw_guards(results: Sequence[Result], /) -> Figure | None:
    """What guards keep and turn away: a row for each kind of network, a dot for each score."""
    panels = []
    for metric, (title, axis) in GUARD_PANELS.items():
        values: dict[str, dict[str, list[float]]] = {}
        for number in numbers_of(results, "GuardPromises", metric=metric):
            if number.ours:
                network = f"{display_name(number.keys['backbone'])}, {display_name(number.keys['id_set'])}"
                score = SCORES[number.keys["measure"]].label
                values.setdefault(network, {}).setdefault(score, []).append(number.ours.mean)
        rows: Rows = {name: {score: [fmean(shares)] for score, shares in row.items()} for name, row in values.items()}
        promised = dict.fromkeys(rows, 100 * RATE) if metric == "false_alarms" else {}
        panels += [DotPanel(title, axis, rows, promised, reach=(0, 200 * RATE) if promised else (0,))] if rows else []
    return draw_dots(panels) if panels else None


def draw_trims(results: Sequence[Result], /, *, label: str) -> Figure | None:
    """Calibration and detection of every model with several sizes, a line for each trim that leaves somebody out."""
    kinds: dict[tuple[str, str, str], dict[int, int]] = {}
    for number in numbers_of(results, label):
        if number.ours:
            kind = (number.keys["id_set"], number.keys["backbone"], number.keys["method"])
            kinds.setdefault(kind, {})[number.keys["N"]] = number.ours.n
    panels = [
        panel
        for (data, backbone, method), runs in kinds.items()
        if len(runs) > 1
        for panel in _trim_panels(results, label, {"id_set": data, "backbone": backbone, "method": method}, runs)
        if panel.lines
    ]
    return draw_sizes(panels) if panels else None


def _trim_panels(
    results: Sequence[Result], label: str, kind: Mapping[str, str], runs: Mapping[int, int]
) -> Iterator[SizePanel]:
    """The numbers by size; those of the whole set where a trim leaves out nobody, none where it was not measured."""
    title = f"{display_name(kind['id_set'])}, {display_name(kind['backbone'])} {kind['method']}"
    axes = {"ECE on clean inputs": {"metric": "ECE"}, "AUROC by TU (%)": {"metric": "AUROC", "measure": "TU"}}
    for axis, keys in axes.items():
        lines: dict[str, dict[int, float]] = {}
        for variant, N in product(TRIM_LINES, runs):
            if any(_leaves_out(variant, size) for size in runs):
                shown = variant if _leaves_out(variant, N) else "credal"
                if by_set := means_of(results, label, "ood_set", **kind, **keys, N=N, variant=shown):
                    lines.setdefault(TRIM_LINES[variant], {})[N] = fmean(by_set.values())
        yield SizePanel(title, axis, runs, lines)


def _leaves_out(variant: str, N: int) -> bool:
    """Whether a variant is what it is called for so many members; a trim of fewer than one leaves out nobody."""
    return TRIMS.get(variant, 100) * N >= 100


PICTURES: Final[Mapping[str, Callable[[Sequence[Result]], Figure | None]]] = {
    "ScoreCatalogue": draw_ranks,
    "LabelNoise": draw_noise,
    "GuardPromises": draw_guards,
    "TrimmedIntervals": partial(draw_trims, label="TrimmedIntervals"),
    "TrimmedText": partial(draw_trims, label="TrimmedText"),
}
"""By the label of a table what draws it from all results; None where the numbers are not there."""
