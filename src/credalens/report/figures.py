"""Every figure in one place. Each function takes arrays, draws on the Axes it is given or on new ones, and returns them.

Needs no window and no pyplot, and leaves matplotlib's settings as they were.
"""

from __future__ import annotations

from credalens.report.curves import plot_accuracy_rejection, plot_pr, plot_roc
from credalens.report.curves_reliability import plot_reliability
from credalens.report.curves_trends import plot_against_severity, plot_members_needed
from credalens.report.distributions import plot_pia, plot_uncertainty_histograms
from credalens.report.distributions_members import plot_member_bars
from credalens.report.saving import render_figure, save_figure
from credalens.report.simplex import merge_to_three, plot_simplex, plot_simplex_panel
from credalens.report.style import Theme, themed
from credalens.report.style_axes import new_figure

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
