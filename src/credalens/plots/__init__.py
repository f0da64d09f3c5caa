"""Every figure in one place. Each function takes arrays, draws on the Axes it is given or on new ones, and returns them.

Needs no window and no pyplot, and leaves matplotlib's settings as they were.
"""

from __future__ import annotations

from credalens.checks.packages import needing

with needing("matplotlib", part="credalens.plots", extra="report"):
    from credalens.plots.axes import new_figure
    from credalens.plots.curves import plot_accuracy_rejection, plot_pr, plot_roc
    from credalens.plots.distributions import plot_pia, plot_uncertainty_histograms
    from credalens.plots.member_bars import plot_member_bars
    from credalens.plots.reliability import plot_reliability
    from credalens.plots.saving import render_figure, save_figure
    from credalens.plots.simplex.panels import merge_to_three, plot_simplex, plot_simplex_panel
    from credalens.plots.style import Theme, themed
    from credalens.plots.trends import plot_against_severity, plot_members_needed

__all__ = [
    "Theme",
    "merge_to_three",
    "new_figure",
    "plot_accuracy_rejection",
    "plot_against_severity",
    "plot_member_bars",
    "plot_members_needed",
    "plot_pia",
    "plot_pr",
    "plot_reliability",
    "plot_roc",
    "plot_simplex",
    "plot_simplex_panel",
    "plot_uncertainty_histograms",
    "render_figure",
    "save_figure",
    "themed",
]
