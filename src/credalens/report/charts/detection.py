"""Charts about finding OOD inputs: ROC, precision and recall, histograms, and all scores in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from credalens.core.scores import SCORES
from credalens.evaluation.detection import DetectionLines, Line
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.results import TOO_FEW, Comparison
from credalens.evaluation.sentences import verdict
from credalens.evaluation.which_score import Recommendation
from credalens.evaluation.words import percent, points
from credalens.look import STROKES, Theme
from credalens.report.charts.chart import (
    HIDDEN,
    SQUARE,
    ZOOM,
    Chart,
    Row,
    Spec,
    by_series,
    frame,
    guide,
    name_axis,
    names_of,
    percent_axis,
    row_name,
    shown,
    strokes,
    upright,
)

X_AXES: Spec = {
    "up to 20 %": {"type": "linear", "domain": [0, 0.2]},
    "all": {"type": "linear", "domain": [0, 1]},
    "logarithmic": {"type": "log", "domain": [0.001, 1]},
}
"""The axes of false alarms that the page offers, the first one first."""


def roc_chart(evaluation: Evaluation, name: str, /) -> Chart:
    """Share of OOD caught against share of ID flagged, up to a false-alarm rate that anyone would accept."""
    lines = evaluation.curves.detection[name]
    values = [row for score, line in lines.items() for row in _rows(score, line.roc)]
    label = f"ROC curves for {name}. AUROC: {_areas(evaluation, name, 'auroc')}."
    rate = evaluation.settings.false_alarm_rate
    return Chart("roc", "ROC", label, values, partial(_roc, list(lines)), {"rate": rate})


def _roc(series: Sequence[str], theme: Theme) -> Spec:
    x = percent_axis("ID inputs flagged by mistake", **next(iter(X_AXES.values())))
    y = percent_axis("OOD inputs caught", domain=[0, 1])
    diagonal = guide(theme, *((k / 100, k / 100) for k in range(1, 101)))
    return frame(
        theme,
        [diagonal, upright("rate", theme), _curves(series, x, y, theme)],
        height=SQUARE,
        readout={"kind": "line", "x": "%", "y": "%", "at": "false alarms", "names": names_of(series), "axes": X_AXES},
        params=[HIDDEN, {"name": "rate", "value": None}],
    )


def _curves(series: Sequence[str], x: Spec, y: Spec, theme: Theme, **mark: Any) -> Spec:
    return {
        "params": [ZOOM],
        "transform": shown(),
        "mark": {"type": "line", "clip": True, "strokeWidth": 2, **mark},
        "encoding": {
            "x": {"field": "x", **x},
            "y": {"field": "y", **y},
            "order": {"field": "n"},
            **strokes(series, theme),
        },
    }


def _rows(series: str, line: Line) -> list[Row]:
    return [{"series": series, "x": x, "y": y} for x, y in zip(*line, strict=True)]


def _areas(evaluation: Evaluation, name: str, metric: str) -> str:
    qualities = {quality.name: quality.ood[name] for quality in evaluation.scores}
    drawn = evaluation.curves.detection[name]
    return "; ".join(f"{SCORES[score].label} {percent(getattr(qualities[score], metric))}" for score in drawn)


def pr_chart(evaluation: Evaluation, name: str, /) -> Chart:
    """Precision against recall, as steps whose area is the AUPRC."""
    lines = evaluation.curves.detection[name]
    values = [row for score, line in lines.items() for row in _rows(score, _rising(line))]
    share = next(one for one in evaluation.ood if one.name == name).epistemic.credal.prevalence
    label = f"Precision-recall curves for {name}. AUPRC: {_areas(evaluation, name, 'auprc')}."
    return Chart("pr", "Precision and recall", label, values, partial(_pr, list(lines)), {"chance": share})


def _rising(line: DetectionLines) -> Line:
    order = 1 if line.pr.x[0] <= line.pr.x[-1] else -1
    return Line(line.pr.x[::order], line.pr.y[::order])


def _pr(series: Sequence[str], theme: Theme) -> Spec:
    x, y = (
        percent_axis("OOD inputs caught (recall)", domain=[0, 1]),
        percent_axis("really OOD (precision)", domain=[0, 1]),
    )
    chance = upright("chance", theme) | {"encoding": {"y": {"field": "at", "type": "quantitative"}}}
    chance["mark"] = chance["mark"] | {"strokeDash": [2, 3]}
    return frame(
        theme,
        [chance, _curves(series, x, y, theme, interpolate="step-before")],
        height=SQUARE,
        readout={"kind": "step", "x": "%", "y": "%", "at": "recall", "names": names_of(series)},
        params=[HIDDEN, {"name": "chance", "value": None}],
    )


def histogram_chart(evaluation: Evaluation, name: str, /) -> Chart:
    """Share of ID and of OOD inputs in each bin of a score, which the page lets the reader choose."""
    id_name, histograms = evaluation.data.id.name, evaluation.curves.histograms
    values = [
        {"series": kind, "score": score, "x": edge, "y": share}
        for score, histogram in histograms.items()
        for kind, of in (("id", id_name), ("ood", name))
        for edge, share in zip(histogram.edges, [*histogram.share[of], 0.0], strict=True)
    ]
    alarm = evaluation.alarm
    middle = "; ".join(
        f"{of}: half of the inputs lie below {_median(histograms[alarm.score].edges, share):.2f}"
        for of, share in histograms[alarm.score].share.items()
        if of in (id_name, name)
    )
    label = f"Histogram of {SCORES[alarm.score].label}. {middle}."
    params = {"score": alarm.score, "threshold": alarm.threshold.value}
    return Chart("histogram", "How far apart ID and OOD are", label, values, _histogram, params)


ROOT: Spec = {"type": "sqrt", "nice": False}


def _histogram(theme: Theme) -> Spec:
    names = {"id": "in distribution", "ood": "OOD"}
    y = percent_axis("share of inputs (root scale)", **ROOT)
    place = {
        "x": {"field": "x", "type": "quantitative", "title": "score (root scale); upright: threshold", "scale": ROOT},
        "y": {"field": "y", **y, "stack": None},
        "color": by_series(names, [theme.muted, theme.hull], theme),
    }
    wanted = {"transform": [{"filter": "datum.score == score"}]}
    area: Spec = {
        "params": [ZOOM | {"select": ZOOM["select"] | {"encodings": ["x"]}}],
        "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.25, "clip": True},
        "encoding": place,
    }
    edge = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.6, "clip": True},
        "encoding": place | {"strokeDash": by_series(names, [[1, 0], [5, 2]], theme)},
    }
    readout = {"kind": "bin", "x": "", "y": "%", "at": "score", "names": names}
    params = [{"name": name, "value": None} for name in ("score", "threshold")]
    return frame(
        theme,
        [area | wanted, edge | wanted, upright("threshold", theme)],
        height=SQUARE,
        readout=readout,
        params=params,
    )


def _median(edges: Sequence[float], shares: Sequence[float]) -> float:
    total = 0.0
    for edge, share in zip(edges[1:], shares, strict=True):
        total += share
        if total >= 0.5:
            return edge
    return edges[-1]


def ranking_chart(recommended: Recommendation, /) -> Chart:
    """Mean AUROC of every score minus that of the default, with its interval."""
    default = SCORES[recommended.default].label
    values = [
        gain_row(SCORES[one.name].label, one.name, one.difference, f"mean AUROC {percent(one.auroc)}")
        for one in recommended.ranking
        if one.difference
    ]
    label = f"Mean AUROC of every score minus that of {default}. " + "; ".join(row["text"] for row in values)
    title = "gain in mean AUROC, points"
    return Chart(
        "ranking",
        f"All scores against {default}",
        label,
        values,
        partial(gains, title),
        rows=[SCORES[row["series"]].label for row in values],
    )


def gain_row(label: str, series: str, gain: Comparison, text: str) -> Row:
    """A difference with its interval, if there are inputs enough for one, in percentage points, under a name."""
    few, said = gain.method == TOO_FEW, verdict(gain)
    low, high = (gain.difference, gain.difference) if few else (gain.low, gain.high)
    span = TOO_FEW if few else f"{points(low)} to {points(high)}"
    return {
        "label": row_name(label),
        "series": series,
        "x": 100 * gain.difference,
        "low": 100 * low,
        "high": 100 * high,
        "text": f"{label}: {points(gain.difference)} points ({span}): {said}; {text}",
        "sign": said,
    }


def gains(title: str, theme: Theme) -> Spec:
    """Rows of differences with intervals; triangles point to the side of zero that is certain."""
    y = name_axis("label", None)
    names = list(STROKES)
    signs = {"domain": ["better", "worse", "undecided"], "range": ["triangle-up", "triangle-down", "square"]}
    color = strokes(names, theme)["color"] | {"legend": None}
    x = {"type": "quantitative", "title": title, "axis": {"tickCount": 5}}
    return frame(
        theme,
        [
            upright("0", theme),
            {
                "transform": shown(),
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.6},
                "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": color},
            },
            {
                "transform": shown(),
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": {"field": "x", **x},
                    "color": color,
                    "shape": {"field": "sign", "legend": None, "scale": signs},
                },
            },
        ],
        readout={"kind": "items", "names": {}},
        params=[HIDDEN],
    )
