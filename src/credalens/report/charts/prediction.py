"""Charts about right and wrong predictions: reliability, rejection, and the number of members."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from credalens.checks.options import count_text
from credalens.evaluation.data_sets import score_name
from credalens.evaluation.members_needed import Trend
from credalens.evaluation.metrics.calibration import FIRM, ReliabilityCurve, joined_bins
from credalens.evaluation.metrics.selective import RejectionCurve
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.results import ByMeasure, ByMethod
from credalens.evaluation.words import percent
from credalens.look import Theme
from credalens.report.charts.chart import (
    HIDDEN,
    SQUARE,
    ZOOM,
    Chart,
    Row,
    Spec,
    frame,
    guide,
    names_of,
    percent_axis,
    shown,
    strokes,
)

POINTS = ("intersection", "averaged")


def reliability_chart(calibration: Calibration, /) -> Chart:
    """Accuracy against confidence of both point predictions; on the diagonal they agree."""
    values = [row for name in POINTS for row in _bins(name, getattr(calibration, name).reliability)]
    ece = "; ".join(f"{name} {percent(getattr(calibration, name).ece, 2)}" for name in POINTS)
    label = f"Reliability diagram. Expected calibration error: {ece}."
    return Chart("reliability", "Reliability diagram", label, values, _reliability)


def _bins(name: str, curve: ReliabilityCurve) -> list[Row]:
    joined = joined_bins(curve.count)
    return [
        {
            "series": name,
            "x": float(curve.confidence[k]),
            "y": float(curve.accuracy[k]),
            "inputs": int(curve.count[k]),
            "firm": bool(curve.count[k] >= FIRM),
            "joined": bool(joined[k]),
            "text": f"{names_of([name])[name]}: {count_text(int(curve.count[k]), 'input')}, confidence "
            f"{percent(curve.confidence[k])}, accuracy {percent(curve.accuracy[k])}",
        }
        for k in curve.count.nonzero()[0].tolist()
    ]


def _reliability(theme: Theme) -> Spec:
    look = strokes(POINTS, theme)
    place = {
        "x": {"field": "x", **percent_axis("mean confidence", domain=[0, 1])},
        "y": {"field": "y", **percent_axis("accuracy", domain=[0, 1])},
    }
    dots = {
        **place,
        "color": look["color"],
        "size": {"field": "inputs", "type": "quantitative", "legend": None, "scale": {"range": [20, 260]}},
        "fillOpacity": {"condition": {"test": "datum.firm", "value": 1}, "value": 0},
    }
    line = {"transform": [*shown(), {"filter": "datum.joined"}], "mark": {"type": "line"}, "encoding": place | look}
    return frame(
        theme,
        [
            guide(theme, (0, 0), (1, 1)),
            {"params": [ZOOM], **line},
            {"transform": shown(), "mark": {"type": "point", "filled": True, "stroke": None}, "encoding": dots},
        ],
        height=SQUARE,
        readout={"kind": "items", "names": names_of(POINTS)},
        params=[HIDDEN],
    )


def rejection_chart(selective: ByMeasure[ByMethod[RejectionCurve]], /) -> Chart:
    """Accuracy on the inputs kept as more of the most uncertain are turned away."""
    curves = {score_name(method, m): curve for m, by in selective.items() for method, curve in by.items()}
    values = [
        {"series": name, "x": x, "y": y}
        for name, curve in curves.items()
        for x, y in zip(curve.rejected.tolist(), curve.accuracy.tolist(), strict=True)
    ]
    names = names_of(list(curves))
    areas = "; ".join(f"{names[name]} {percent(curve.area, 2)}" for name, curve in curves.items())
    label = f"Accuracy-rejection curves. Mean accuracy: {areas}."
    return Chart("rejection", "Accuracy on the rest", label, values, partial(_rejection, list(curves)))


def _rejection(series: Sequence[str], theme: Theme) -> Spec:
    place = {
        "x": {"field": "x", **percent_axis("turned away, most uncertain first", domain=[0, 0.5])},
        "y": {"field": "y", **percent_axis("accuracy on the rest", zero=False)},
    }
    line = {"params": [ZOOM], "transform": shown(), "mark": {"type": "line", "clip": True, "strokeWidth": 2}}
    return frame(
        theme,
        [line | {"encoding": place | strokes(series, theme)}],
        height=SQUARE,
        readout={"kind": "line", "x": "%", "y": "%", "at": "turned away", "names": names_of(series)},
        params=[HIDDEN],
    )


def members_chart(title: str, sizes: list[int], trends: dict[str, Trend], /) -> Chart:
    """A metric against the number of members, with a band of one standard deviation over subsets."""
    values = [
        {"series": name, "x": size, "y": mean, "low": max(0.0, mean - std), "high": mean + std}
        for name, trend in trends.items()
        for size, mean, std in zip(sizes, trend.mean, trend.std, strict=True)
    ]
    names = names_of(list(trends))
    ends = "; ".join(
        f"{names[name]} {percent(trend.mean[0])} with {sizes[0]} and {percent(trend.mean[-1])} with {sizes[-1]}"
        for name, trend in trends.items()
    )
    label = f"{title} against the number of members: {ends}."
    kind = f"members {'-'.join(trends)} {sizes[0]}"
    return Chart(kind, title, label, values, partial(_members, list(trends), sizes))


def _members(series: Sequence[str], sizes: list[int], theme: Theme) -> Spec:
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": "members used",
        "axis": {"values": sizes, "format": "d", "grid": False},
        "scale": {"type": "log" if sizes[-1] > 16 else "linear", "nice": False, "padding": 12, "zero": False},
    }
    y, look = percent_axis("", zero=False, padding=8) | {"title": None}, strokes(series, theme)
    line = {"x": x, "y": {"field": "y", **y}, **look}
    band = {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}, "color": look["color"]}
    return frame(
        theme,
        [
            {"transform": shown(), "mark": {"type": "area", "opacity": 0.16}, "encoding": band},
            {"transform": shown(), "mark": {"type": "line", "point": {"size": 40}}, "encoding": line},
        ],
        readout={"kind": "line", "whole": True, "x": "", "y": "%", "at": "members", "names": names_of(series)},
        params=[HIDDEN],
    )
