"""Curves with one line for each method: ROC, precision-recall and accuracy-rejection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import NDArray

from credalens.plots.arguments import as_mapping, as_pair, as_shares
from credalens.plots.axes import add_legend, draw_diagonal, frame_unit_square, name_axes, open_axes
from credalens.plots.style import Theme, dash

SQUARE = (4.0, 3.8)


def plot_roc(
    curves: Mapping[str, Any],
    /,
    *,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """ROC curves, name -> (false positive rate, true positive rate), with the diagonal of pure chance.

    >>> ax = plot_roc({"EU, credal": ([0, 0.1, 1], [0, 0.8, 1])})
    """
    points = _points(curves, ("false positive rate", "true positive rate"))
    with open_axes(ax, theme=theme, size=SQUARE) as (ax, look):
        draw_diagonal(ax, look)
        entries = {name: _line(ax, look, order, *xy) for order, (name, xy) in enumerate(points.items())}
        frame_unit_square(ax)
        ax.set_aspect("equal")
        name_axes(ax, look, xlabel="False positive rate", ylabel="True positive rate", title=title)
        add_legend(ax, entries, look, loc="lower right")
    return ax


def plot_pr(
    curves: Mapping[str, Any],
    /,
    *,
    prevalence: float | None = None,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """Precision-recall curves, name -> (recall, precision); `prevalence` draws the precision of pure chance.

    The lines are steps, the area under which is the average precision.

    >>> ax = plot_pr({"EU, credal": ([1, 0.5, 0], [0.5, 0.8, 1])}, prevalence=0.5)
    """
    points = _points(curves, ("recall", "precision"))
    if prevalence is not None and not 0 <= prevalence <= 1:
        raise ValueError(f"prevalence must be the share of positives, from 0 to 1, got {prevalence}.")
    with open_axes(ax, theme=theme, size=SQUARE) as (ax, look):
        if prevalence is not None:
            ax.axhline(prevalence, color=look.muted, linewidth=0.9, linestyle=dash(2), zorder=1)
        entries = {
            name: _line(ax, look, order, *xy, drawstyle=_step_style(xy[0]))
            for order, (name, xy) in enumerate(points.items())
        }
        frame_unit_square(ax)
        ax.set_aspect("equal")
        name_axes(ax, look, xlabel="Recall", ylabel="Precision", title=title)
        add_legend(ax, entries, look, loc="lower left")
    return ax


def plot_accuracy_rejection(
    curves: Mapping[str, Any],
    /,
    *,
    title: str | None = None,
    theme: str | Theme = "light",
    ax: Axes | None = None,
) -> Axes:
    """Accuracy on the inputs kept, name -> (rejected share, accuracy), as the most uncertain are turned away.

    >>> ax = plot_accuracy_rejection({"TU": ([0, 0.2, 0.4], [0.9, 0.95, 0.99])})
    """
    points = _points(curves, ("rejected share", "accuracy"))
    with open_axes(ax, theme=theme, size=(4.8, 3.6)) as (ax, look):
        entries = {name: _line(ax, look, order, *xy) for order, (name, xy) in enumerate(points.items())}
        ax.set_xlim(0, 1)
        name_axes(ax, look, xlabel="Rejected share", ylabel="Accuracy on the rest", title=title)
        add_legend(ax, entries, look, loc="lower right")
    return ax


def _points(curves: Any, parts: tuple[str, str]) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Check the curves: values from 0 to 1, and x that runs one way."""
    named = as_mapping(curves, "curves", f"({parts[0]}, {parts[1]})")
    return {name: _curve(pair, f"curve {name!r}", parts) for name, pair in named.items()}


def _curve(pair: Any, what: str, parts: tuple[str, str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    xy = as_pair(pair, what, parts, read=as_shares)
    steps = np.diff(xy[0])
    if (steps > 0).any() and (steps < 0).any():
        raise ValueError(f"{what}: {parts[0]} must not go back and forth. Sort the points along the curve.")
    return xy


def _line(ax: Axes, look: Theme, order: int, x: Any, y: Any, **options: Any) -> Artist:
    (line,) = ax.plot(x, y, color=look.color(order), linestyle=dash(order), zorder=3, **options)
    return line


def _step_style(recall: NDArray[np.float64]) -> str:
    """Each precision holds from its own recall down to the next lower one, whichever end comes first."""
    return "steps-post" if recall[0] > recall[-1] else "steps-pre"
