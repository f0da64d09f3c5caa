"""Charts of an evaluation: finding OOD inputs, all scores in order, right and wrong predictions, and the number of members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

from credalens.checks.options import count_text
from credalens.core.scores import SCORES
from credalens.evaluation.data_sets import score_name
from credalens.evaluation.evaluate import Evaluation
from credalens.evaluation.labelled import RejectionCurve, ReliabilityCurve
from credalens.evaluation.members_needed import MembersNeeded, Trend
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.recalibrated import RecalibrationEffect
from credalens.evaluation.results import METHODS, TOO_FEW, ByMeasure, ByMethod, Comparison
from credalens.evaluation.which_score import Recommendation
from credalens.evaluation.words import gain_text, percent, points
from credalens.report.charts import vega
from credalens.report.charts.vega import Chart, Row, Spec
from credalens.theme import STROKES, Theme

X_AXES: Spec = {
    "up to 20 %": {"type": "linear", "domain": [0, 0.2]},
    "all": {"type": "linear", "domain": [0, 1]},
    "logarithmic": {"type": "log", "domain": [0.001, 1]},
}
"""The axes of false alarms that the page offers, the first one first."""
FIRM = 5
"""With fewer inputs than this the accuracy of a bin says little: its dot is hollow and, as a rule, not joined to others."""


def named_charts(evaluation: Evaluation, /) -> Iterator[tuple[str, Chart]]:
    """Every chart that the evaluation has data for, with the name of its file."""
    if evaluation.ood:
        yield "ranking", ranking_chart(evaluation.recommended)
    if evaluation.calibration and evaluation.selective:
        yield "reliability", reliability_chart(evaluation.calibration, evaluation.recalibration)
        yield "rejection", rejection_chart(evaluation.selective)
    for one in evaluation.ood:
        yield from ((f"{chart.kind} {one.name}", chart) for chart in detection_charts(evaluation, one.name))
    if evaluation.members_needed:
        yield from ((f"members {chart.title}", chart) for chart in members_charts(evaluation.members_needed))


def detection_charts(evaluation: Evaluation, name: str, /) -> list[Chart]:
    """ROC, precision and recall, and histogram of an OOD data set."""
    return [make(evaluation, name) for make in (roc_chart, pr_chart, histogram_chart)]


def roc_chart(evaluation: Evaluation, name: str, /) -> Chart:
    """Share of OOD caught against share of ID flagged, up to a false-alarm rate that anyone would accept."""
    lines = evaluation.curves.detection[name]
    values = [row for score, line in lines.items() for row in vega.line_rows(score, *line.roc)]
    label = f"ROC curves for {name}. AUROC: {_areas(evaluation, name, 'auroc')}."
    rate, names = evaluation.settings.false_alarm_rate, vega.names_of(list(lines))
    return Chart("roc", "ROC", label, values, partial(draw_roc, names), {"rate": rate})


def draw_roc(names: dict[str, str], theme: Theme, /, look: Spec | None = None) -> Spec:
    """ROC curves: series -> name; by default a series is a score and has its stroke."""
    x = vega.percent_axis("x", "ID inputs flagged by mistake", **next(iter(X_AXES.values())))
    y = vega.percent_axis("y", "OOD inputs caught", domain=[0, 1])
    layers = [vega.curves(x, y, look or vega.strokes(list(names), theme))]
    params = [vega.HIDDEN]
    if look is None:
        diagonal = vega.guide(theme, *((k / 100, k / 100) for k in range(1, 101)))
        layers, params = [diagonal, vega.rule("rate", theme), *layers], [vega.HIDDEN, {"name": "rate", "value": None}]
    readout = {"kind": "line", "x": "%", "y": "%", "at": "false alarms", "names": names, "axes": X_AXES}
    return vega.frame(theme, layers, height=vega.SQUARE, readout=readout, params=params)


def _areas(evaluation: Evaluation, name: str, metric: str) -> str:
    qualities = {quality.name: quality.ood[name] for quality in evaluation.scores}
    drawn = evaluation.curves.detection[name]
    return "; ".join(f"{SCORES[score].label} {percent(getattr(qualities[score], metric))}" for score in drawn)


def pr_chart(evaluation: Evaluation, name: str, /) -> Chart:
    """Precision against recall, as steps whose area is the AUPRC."""
    lines = evaluation.curves.detection[name]
    values = [row for score, line in lines.items() for row in vega.line_rows(score, *line.pr)]
    share = next(one for one in evaluation.ood if one.name == name).epistemic.credal.prevalence
    label = f"Precision-recall curves for {name}. AUPRC: {_areas(evaluation, name, 'auprc')}."
    return Chart("pr", "Precision and recall", label, values, partial(_pr, list(lines)), {"chance": share})


def _pr(series: Sequence[str], theme: Theme) -> Spec:
    x = vega.percent_axis("x", "OOD inputs caught (recall)", domain=[0, 1])
    y = vega.percent_axis("y", "really OOD (precision)", domain=[0, 1])
    steps = vega.curves(x, y, vega.strokes(series, theme), interpolate="step-before")
    return vega.frame(
        theme,
        [vega.rule("chance", theme, "y", strokeDash=[2, 3]), steps],
        height=vega.SQUARE,
        readout={"kind": "step", "x": "%", "y": "%", "at": "recall", "names": vega.names_of(series)},
        params=[vega.HIDDEN, {"name": "chance", "value": None}],
    )


def histogram_chart(evaluation: Evaluation, name: str, /) -> Chart:
    """Share of ID and of OOD inputs in each bin of a score, which the page lets the reader choose."""
    id_name, histograms, alarm = evaluation.data.id.name, evaluation.curves.histograms, evaluation.alarm
    values = [
        row
        for score, histogram in histograms.items()
        for kind, of in (("id", id_name), ("ood", name))
        for row in vega.line_rows(kind, histogram.edges, [*histogram.share[of], 0.0], score=score)
    ]
    drawn = histograms[alarm.score]
    middle = "; ".join(
        f"{of}: half of the inputs lie below {_median(drawn.edges, drawn.share[of]):.2f}" for of in (id_name, name)
    )
    label = f"Histogram of {SCORES[alarm.score].label}. {middle}."
    params = {"score": alarm.score, "threshold": alarm.threshold.value}
    return Chart("histogram", "How far apart ID and OOD are", label, values, _histogram, params)


def _median(edges: Sequence[float], shares: Sequence[float]) -> float:
    above_half = (edge for edge, total in zip(edges[1:], accumulate(shares), strict=True) if total >= 0.5)
    return next(above_half, edges[-1])


def _histogram(theme: Theme) -> Spec:
    names, root = {"id": "in distribution", "ood": "OOD"}, {"type": "sqrt", "nice": False}
    place = {
        "x": {"field": "x", "type": "quantitative", "title": "score (root scale); upright: threshold", "scale": root},
        "y": vega.percent_axis("y", "share of inputs (root scale)", **root) | {"stack": None},
        "color": vega.by_series(names, [theme.muted, theme.hull], theme),
    }
    wanted, zoom = [{"filter": "datum.score == score"}], vega.ZOOM["select"] | {"encodings": ["x"]}
    area = {"type": "area", "interpolate": "step-after", "opacity": 0.25, "clip": True}
    edge = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.6, "clip": True}
    dashes = vega.by_series(names, [[1, 0], [5, 2]], theme)
    return vega.frame(
        theme,
        [
            {"params": [vega.ZOOM | {"select": zoom}], **vega.layer(area, wanted, **place)},
            vega.layer(edge, wanted, **place, strokeDash=dashes),
            vega.rule("threshold", theme),
        ],
        height=vega.SQUARE,
        readout={"kind": "bin", "x": "", "y": "%", "at": "score", "names": names},
        params=[{"name": name, "value": None} for name in ("score", "threshold")],
    )


def ranking_chart(recommended: Recommendation, /) -> Chart:
    """Mean AUROC of every score minus that of the default, with its interval."""
    default = SCORES[recommended.default].label
    values = [
        gain_row(SCORES[one.name].label, one.name, one.difference, f"mean AUROC {percent(one.auroc)}")
        for one in recommended.ranking
        if one.difference
    ]
    label = f"Mean AUROC of every score minus that of {default}."
    return gains_chart("ranking", f"All scores against {default}", label, values, "gain in mean AUROC, points")


def gain_row(label: str, series: str, gain: Comparison, text: str) -> Row:
    """A difference with its interval, if there are inputs enough for one, in percentage points, under a name."""
    low, high = (gain.difference, gain.difference) if gain.method == TOO_FEW else (gain.low, gain.high)
    return {
        "label": vega.row_name(label),
        "series": series,
        "x": 100 * gain.difference,
        "low": 100 * low,
        "high": 100 * high,
        "text": f"{label}: {points(gain.difference)} points ({gain_text(gain)}): {gain.verdict}; {text}",
        "sign": gain.verdict,
    }


def gains_chart(kind: str, title: str, label: str, values: list[Row], axis: str, /) -> Chart:
    """Rows of differences with intervals; triangles point to the side of zero that is certain."""
    names = [" ".join(row["label"].split()) for row in values]
    text = " ".join([label, "; ".join(row["text"] for row in values)])
    return Chart(kind, title, text, values, partial(_gains, axis), rows=names)


def _gains(title: str, theme: Theme) -> Spec:
    y = vega.name_axis("label", None)
    signs = {"domain": ["better", "worse", "undecided"], "range": ["triangle-up", "triangle-down", "square"]}
    color = vega.strokes(list(STROKES), theme)["color"] | {"legend": None}
    x = {"type": "quantitative", "title": title, "axis": {"tickCount": 5}}
    shape = {"field": "sign", "legend": None, "scale": signs}
    bar, mark = (
        {"type": "rule", "strokeWidth": 3, "opacity": 0.6},
        {"type": "point", "filled": True, "size": 90, "opacity": 1},
    )
    layers = [
        vega.rule("0", theme),
        vega.layer(bar, y=y, x={"field": "low", **x}, x2={"field": "high"}, color=color),
        vega.layer(mark, y=y, x={"field": "x", **x}, color=color, shape=shape),
    ]
    return vega.frame(theme, layers, readout={"kind": "items", "names": {}}, params=[vega.HIDDEN])


def reliability_chart(calibration: Calibration, effect: RecalibrationEffect | None = None, /) -> Chart:
    """Accuracy against confidence of both point predictions, and of the recalibrated one; on the diagonal they agree."""
    values = [row for method, point in calibration.items() for row in _bins(method, point.reliability)]
    values += _bins("recalibrated", effect.reliability) if effect else []
    ece = "; ".join(f"{vega.POINT_NAMES[method]} {percent(point.ece, 2)}" for method, point in calibration.items())
    ece += f"; recalibrated {percent(effect.ece.of(effect.through).a, 2)}" if effect else ""
    label = f"Reliability diagram. Expected calibration error: {ece}."
    series = reliability_series(effect)
    return Chart("reliability", "Reliability diagram", label, values, partial(_reliability, series))


def reliability_series(effect: RecalibrationEffect | None, /) -> tuple[str, ...]:
    """The series of the reliability diagram."""
    return (*METHODS, "recalibrated") if effect else METHODS


def _bins(method: str, curve: ReliabilityCurve) -> list[Row]:
    firm = curve.count >= FIRM
    joined = firm if firm.any() else curve.count > 0
    return [
        {
            "series": method,
            "x": float(curve.confidence[k]),
            "y": float(curve.accuracy[k]),
            "inputs": int(curve.count[k]),
            "firm": bool(firm[k]),
            "joined": bool(joined[k]),
            "text": f"{vega.POINT_NAMES[method]}: {count_text(int(curve.count[k]), 'input')}, confidence "
            f"{percent(curve.confidence[k])}, accuracy {percent(curve.accuracy[k])}",
        }
        for k in curve.count.nonzero()[0].tolist()
    ]


def _reliability(series: Sequence[str], theme: Theme) -> Spec:
    look = vega.strokes(series, theme)
    place = {
        "x": vega.percent_axis("x", "mean confidence", domain=[0, 1]),
        "y": vega.percent_axis("y", "accuracy", domain=[0, 1]),
    }
    line = vega.layer({"type": "line"}, [*vega.VISIBLE, {"filter": "datum.joined"}], **place, **look)
    dots = vega.layer(
        {"type": "point", "filled": True, "stroke": None},
        **place,
        color=look["color"],
        size={"field": "inputs", "type": "quantitative", "legend": None, "scale": {"range": [20, 260]}},
        fillOpacity={"condition": {"test": "datum.firm", "value": 1}, "value": 0},
    )
    layers = [vega.guide(theme, (0, 0), (1, 1)), {"params": [vega.ZOOM], **line}, dots]
    readout = {"kind": "items", "names": vega.names_of(series)}
    return vega.frame(theme, layers, height=vega.SQUARE, readout=readout, params=[vega.HIDDEN])


def rejection_chart(selective: ByMeasure[ByMethod[RejectionCurve]], /) -> Chart:
    """Accuracy on the inputs kept as more of the most uncertain are turned away."""
    drawn = {score_name(method, m): curve for m, by in selective.items() for method, curve in by.items()}
    lines = {name: (curve.rejected.tolist(), curve.accuracy.tolist()) for name, curve in drawn.items()}
    values = [row for name, line in lines.items() for row in vega.line_rows(name, *line)]
    names = vega.names_of(list(drawn))
    areas = "; ".join(f"{names[name]} {percent(curve.area, 2)}" for name, curve in drawn.items())
    label = f"Accuracy-rejection curves. Mean accuracy: {areas}."
    return Chart("rejection", "Accuracy on the rest", label, values, partial(_rejection, names))


def _rejection(names: Mapping[str, str], theme: Theme) -> Spec:
    x = vega.percent_axis("x", "turned away, most uncertain first", domain=[0, 0.5])
    layer = vega.curves(x, vega.percent_axis("y", "accuracy on the rest", zero=False), vega.strokes(list(names), theme))
    readout = {"kind": "line", "x": "%", "y": "%", "at": "turned away", "names": names}
    return vega.frame(theme, [layer], height=vega.SQUARE, readout=readout, params=[vega.HIDDEN])


def members_charts(needed: MembersNeeded, /) -> Iterator[Chart]:
    """AUROC of EU for each OOD data set, accuracy and ECE, each against the number of members."""
    if len(needed.sizes) > 2:
        for name, auroc in needed.epistemic_auroc().items():
            lines = {score_name(method, "epistemic"): trend for method, trend in auroc.items()}
            yield _members_chart(f"AUROC, {name}", needed.sizes[1:], lines)
    for title, by_method in (("Accuracy", needed.accuracy), ("ECE", needed.ece)):
        if by_method:
            yield _members_chart(f"{title} on ID data", needed.sizes, dict(by_method.items()))


def _members_chart(title: str, sizes: list[int], trends: Mapping[str, Trend]) -> Chart:
    """A metric against the number of members, with a band of one standard deviation over subsets."""
    values = [
        {"series": name, "x": size, "y": mean, "low": max(0.0, mean - std), "high": mean + std}
        for name, trend in trends.items()
        for size, mean, std in zip(sizes, trend.mean, trend.std, strict=True)
    ]
    names = vega.names_of(list(trends))
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
    mean, low = (vega.percent_axis(field, None, zero=False, padding=8) for field in ("y", "low"))
    look = vega.strokes(series, theme)
    band = vega.layer({"type": "area", "opacity": 0.16}, x=x, y=low, y2={"field": "high"}, color=look["color"])
    line = vega.layer({"type": "line", "point": {"size": 40}}, x=x, y=mean, **look)
    readout = {"kind": "line", "whole": True, "x": "", "y": "%", "at": "members", "names": vega.names_of(series)}
    return vega.frame(theme, [band, line], readout=readout, params=[vega.HIDDEN])
