"""Figures for papers, by matplotlib; the charts of a report are in ``credalens.report``.

Each function takes arrays, draws on the Axes it is given or on new ones, and returns them. Needs no window and no pyplot,
and leaves matplotlib's settings as they were.
"""

from __future__ import annotations

from credalens.checks.options import needing
from credalens.theme import Theme

with needing("matplotlib", part="credalens.plots", extra="report"):
    from credalens.plots.axes import new_figure, render_figure, save_figure, themed
    from credalens.plots.one_input import merge_to_three, plot_member_bars, plot_simplex, plot_simplex_panel
    from credalens.plots.series import plot_against_severity, plot_pia, plot_uncertainty_histograms

__all__ = [
    "Theme", "merge_to_three", "new_figure", "plot_against_severity", "plot_member_bars", "plot_pia", "plot_simplex",
    "plot_simplex_panel", "plot_uncertainty_histograms", "render_figure", "save_figure", "themed",
]  # fmt: skip
