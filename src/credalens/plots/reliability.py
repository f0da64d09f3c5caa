"""The reliability diagram: is a prediction made with confidence 0.8 right in 8 cases of 10?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.evaluation.metrics.calibration import joined_bins
from credalens.plots.arguments import as_numbers, as_shares
from credalens.plots.axes import add_legend, draw_diagonal, dress, frame_unit_square, name_axes, open_axes
from credalens.plots.style import Theme, dash, marker

COUNTS = "counts"
LINE = "reliability"
FEW = "few"


class _Bins(NamedTuple):
    """The bins of a reliability diagram; confidence and accuracy of the filled ones only."""

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    share: NDArray[np.float64]
    edges: NDArray[np.float64]
    firm: NDArray[np.bool_]
    """Which of the filled ones hold enough inputs for their accuracy to say something."""

    @property
    def ece(self) -> float:
        share = self.share[self.share > 0]
        return float((share * np.abs(self.accuracy - self.confidence)).sum())


def plot_reliability(
    confidence: Any,
    accuracy: Any,
    count: Any,
    /,
    *,
    edges: Any = None,
    name: str = "Prediction",
    order: int = 0,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    r"""Accuracy against mean confidence in each bin, and above it the share of inputs in the bin.

    The legend gives the expected calibration error of the drawn bins (paper, Eq. ECE),

    .. math:: \mathrm{ECE} = \sum_g \frac{|B_g|}{n} |\mathrm{acc}(B_g) - \mathrm{conf}(B_g)|

    `edges` are those of equal-width bins unless given. Confidence and accuracy of bins without inputs are not
    read; bins of fewer than five inputs are hollow and not joined. Call it again with the same `ax` and the next
    `order` to lay a second prediction over the first.

    >>> ax = plot_reliability([0.3, 0.9], [0.4, 0.7], [20, 80], name="Averaged")
    >>> ax = plot_reliability([0.3, 0.9], [0.4, 0.8], [30, 70], name="Intersection", order=1, ax=ax)
    """
    bins = _read_bins(confidence, accuracy, count, edges)
    with open_axes(ax, theme=theme, size=(4.0, 4.5)) as (ax, look):
        margin = _counts_margin(ax, look)
        name_axes(margin, look, ylabel="Share", title=title)
        _draw_shares(margin, look, order, bins)
        _draw_line(ax, look, order, bins, f"{name}, ECE {bins.ece:.3f}")
        name_axes(ax, look, xlabel="Mean confidence", ylabel="Accuracy")
        entries = [(str(line.get_label()), line) for line in ax.lines if line.get_gid() == LINE]
        add_legend(ax, entries, look, loc="best")
    return ax


def _read_bins(confidence: Any, accuracy: Any, count: Any, edges: Any) -> _Bins:
    counts = as_numbers(count, "count")
    if counts.min() < 0 or counts.sum() == 0:
        raise ValueError(f"count must be at least 0 and not all 0, got {counts.tolist()}.")
    filled = counts > 0
    means, hits = _filled(confidence, filled, "confidence"), _filled(accuracy, filled, "accuracy")
    borders = np.linspace(0, 1, len(counts) + 1) if edges is None else as_numbers(edges, "edges")
    _check_edges(borders, means, filled)
    return _Bins(means, hits, counts / counts.sum(), borders, joined_bins(counts)[filled])


def _filled(values: Any, filled: NDArray[np.bool_], what: str) -> NDArray[np.float64]:
    array, _ = to_numpy(values)
    if array.shape != filled.shape:
        raise ValueError(f"{what} must have one entry for each of the {len(filled)} bins, got shape {array.shape}.")
    return as_shares(array[filled], f"{what} of the bins with inputs")


def _check_edges(edges: NDArray[np.float64], confidence: NDArray[np.float64], filled: NDArray[np.bool_]) -> None:
    if len(edges) != len(filled) + 1 or (np.diff(edges) <= 0).any():
        raise ValueError(f"edges must be {len(filled) + 1} increasing numbers for {len(filled)} bins, got {edges}.")
    low, high = edges[:-1][filled], edges[1:][filled]
    outside = np.flatnonzero((confidence < low - 1e-6) | (confidence > high + 1e-6))
    if len(outside):
        first = outside[0]
        raise ValueError(
            f"confidence {confidence[first]:.6g} lies outside its bin, {low[first]:.6g} to {high[first]:.6g}. "
            "Give every bin, the empty ones too, or pass edges."
        )


def _counts_margin(ax: Axes, look: Theme) -> Axes:
    """The strip above the diagram; on Axes that hold a diagram already, the one that is there."""
    for child in ax.child_axes:
        if isinstance(child, Axes) and child.get_label() == COUNTS:
            return child
    draw_diagonal(ax, look)
    frame_unit_square(ax)
    margin = ax.inset_axes((0, 1.06, 1, 0.16), label=COUNTS)
    dress(margin, look)
    margin.set(xlim=ax.get_xlim(), xticks=ax.get_xticks())
    margin.tick_params(labelbottom=False)
    return margin


def _draw_line(ax: Axes, look: Theme, order: int, bins: _Bins, label: str) -> None:
    color, few = look.color(order), ~bins.firm
    ax.plot(
        bins.confidence[bins.firm],
        bins.accuracy[bins.firm],
        color=color,
        linestyle=dash(order),
        marker=marker(order),
        label=label,
        gid=LINE,
        zorder=3,
    )
    if few.any():
        (dots,) = ax.plot(bins.confidence[few], bins.accuracy[few], marker(order), color=color, gid=FEW, zorder=3)
        dots.set_markerfacecolor(look.background)


def _draw_shares(margin: Axes, look: Theme, order: int, bins: _Bins) -> None:
    color = look.color(order)
    margin.stairs(bins.share, bins.edges, fill=True, color=to_rgba(color, 0.2), zorder=2)
    margin.stairs(bins.share, bins.edges, color=color, linestyle=dash(order), linewidth=1.1, zorder=3)
    margin.set_ylim(bottom=0)
