"""Figures in Markdown: the picture, and what it draws as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.values import DIGITS

__all__ = ["figure_parts"]

Result = Mapping[str, Any]


def figure_parts(result: Result, /) -> list[str]:
    """The link to the picture and the tables of its lines or quantiles, as far as there are any."""
    return [_picture(result), _series(result), _quantiles(result)]


def _picture(result: Result) -> str:
    """Drawn with lines where there is such a file, since it is sharp at any size."""
    names = sorted(result["files"], key=lambda name: not name.endswith(".svg"))
    folder = f"{result['provenance']['preset']['name']}/figures"
    return f"![{result['label']}]({folder}/{names[0]})" if names else ""


def _series(result: Result) -> str:
    """Lines as a table: a row for each line, a column for each severity."""
    drawn = [panel for panel in result["panels"] if "series" in panel]
    rows = []
    for panel in drawn:
        digits = DIGITS.get(panel["metric"].split()[0], 3)
        for line in panel["series"]:
            means = [f"{mean:.{digits}f}" for mean in line["mean"]]
            rows.append([panel["title"], panel["metric"], line["name"], *means, str(min(line["n"]))])
    if not rows:
        return ""
    severities = [f"severity {x}" for x in drawn[0]["series"][0]["x"]]
    return markdown_table(["Panel", "Metric", "Line", *severities, "n"], rows)


def _quantiles(result: Result) -> str:
    """Densities, of the inputs of all n runs, as a table: a row for each set of a panel, for each J where there are several."""
    rows: list[list[str]] = []
    shares: list[str] = []
    for panel in result["panels"]:
        for kept, sets in _by_kept(panel.get("quantiles", {})).items():
            for name, values in sets.items():
                shares = list(values)
                where = f"{panel['title']}, J = {kept}" if kept else panel["title"]
                rows.append([where, name, *(f"{value:.3f}" for value in values.values()), str(panel.get("n", NONE))])
    head = ["Panel", "Set", *(f"{float(share):.0%} below" for share in shares), "n"]
    return markdown_table(head, rows) if rows else ""


def _by_kept(found: Mapping[str, Any]) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """J -> set -> quantiles; panels without PIA have sets only."""
    nested = any(isinstance(value, Mapping) for sets in found.values() for value in sets.values())
    return found if nested else {"": found} if found else {}
