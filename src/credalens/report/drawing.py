"""Charts as SVG and PNG, and the script that brings them to life in a page: all from vl-convert, without a network."""

from __future__ import annotations

from functools import cache
from typing import Any

from credalens.checks.packages import needing
from credalens.look import LIGHT, PAGE, Theme
from credalens.report.charts.chart import Chart

with needing("vl_convert", part="the report", extra="report"):
    import vl_convert

PIXELS = 2.0
"""Of a PNG, for each unit of its chart."""


def to_svg(chart: Chart, theme: Theme = LIGHT, /) -> str:
    """A chart as SVG, with words for those who cannot see it."""
    svg: str = vl_convert.vegalite_to_svg(_titled(chart, theme))
    return svg


def to_png(chart: Chart, theme: Theme = LIGHT, /) -> bytes:
    """A chart as PNG."""
    png: bytes = vl_convert.vegalite_to_png(_titled(chart, theme), scale=PIXELS)
    return png


def _titled(chart: Chart, theme: Theme) -> dict[str, Any]:
    """With its title, unless the page writes it above."""
    spec = chart.spec(theme)
    title = {"text": chart.title, "color": theme.text, "anchor": "start", "fontSize": 13}
    return spec if theme is PAGE else {**spec, "title": title, "padding": 8}


@cache
def interactive_script() -> str:
    """The script that draws specifications in the browser, as one function that sets ``vegaEmbed``.

    What it is made of has authors, who are named in ``assets/NOTICE.txt``.
    """
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"(()=>{{{bundle}}})();".replace("</script", "<\\/script").replace("<!--", "<\\!--")
