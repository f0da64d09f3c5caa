"""Figures in Markdown: the picture, and what it draws as a table."""

from __future__ import annotations

from collections.abc import Mapping

from credalens_paper.measures.estimates import Estimate
from credalens_paper.results.records import FigureResult, Panel
from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.values import DIGITS


def figure_parts(result: FigureResult, root: str, /) -> list[str]:
    """The link to the picture and the tables of its lines or quantiles, as far as there are any."""
    return [_picture(result, root), _lines(result), _quantiles(result), _estimates(result)]


def _picture(result: FigureResult, root: str) -> str:
    """The SVG where there is one, since it is sharp at any size."""
    names = sorted(result.files, key=lambda name: not name.endswith(".svg"))
    return f"![{result.label}]({root}{result.provenance.preset.name}/figures/{names[0]})" if names else ""


def _lines(result: FigureResult) -> str:
    """A row for each line, a column for each severity."""
    rows: list[list[str]] = []
    severities: list[str] = []
    for panel in result.panels:
        metric = panel.metric or ""
        for line in panel.series or ():
            severities = severities or [f"severity {x}" for x in line.x]
            means = [f"{mean:.{DIGITS.get(metric.split()[0], 3)}f}" for mean in line.mean]
            rows.append([panel.title, metric, line.name, *means, str(min(line.n))])
    return markdown_table(["Panel", "Metric", "Line", *severities, "n"], rows)


def _quantiles(result: FigureResult) -> str:
    """Densities, of the inputs of all n runs: a row for each set of a panel, for each J where there are several."""
    rows: list[list[str]] = []
    shares: list[str] = []
    for panel in result.panels:
        for kept, sets in _by_kept(panel).items():
            for name, values in sets.items():
                shares = list(values)
                where = f"{panel.title}, J = {kept}" if kept else panel.title
                rows.append([where, name, *(f"{value:.3f}" for value in values.values()), str(panel.n or NONE)])
    return markdown_table(["Panel", "Set", *(f"{float(share):.0%} below" for share in shares), "n"], rows)


def _estimates(result: FigureResult) -> str:
    """A row for each number, with its interval over inputs."""
    rows = [
        [panel.title, panel.metric or "", one.name, *_estimate_texts(panel, one), str(panel.n or NONE)]
        for panel in result.panels
        for one in panel.estimates or ()
    ]
    return markdown_table(["Panel", "Metric", "Of", "Mean", "95 % interval over inputs", "n"], rows)


def _estimate_texts(panel: Panel, one: Estimate) -> tuple[str, str]:
    digits = 3 if (panel.metric or "").startswith("Rank") else 2
    return f"{one.mean:.{digits}f}", f"{one.low:.{digits}f} to {one.high:.{digits}f}"


def _by_kept(panel: Panel) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """J -> set -> quantiles; panels without PIA have sets only."""
    if panel.quantiles is None:
        return {}
    nested = any(isinstance(value, Mapping) for sets in panel.quantiles.values() for value in sets.values())
    return panel.quantiles if nested else {"": panel.quantiles}
