"""The charts of the report as SVG, each from a part of an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from credalens.evaluation.detection import Detection
from credalens.evaluation.detection_curves import Histogram, Line, LinesByScore
from credalens.evaluation.members_needed import Trend
from credalens.evaluation.metrics.calibration import FIRM, ReliabilityCurve, joined_bins
from credalens.evaluation.metrics.selective import RejectionCurve
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.results import DETECTORS, METHODS, TOO_FEW, ByMethod, Comparison
from credalens.evaluation.words.names import METHOD_NAMES, SHORT, line_name
from credalens.evaluation.words.numbers import percent, points, unit
from credalens.evaluation.words.verdicts import verdict
from credalens.report.elements import tag
from credalens.report.svg import WIDTH, Axis, Plot, clipped, nice_ticks

PERCENT: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
ROOT_TICKS: Final = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
SHAPES: Final = {"better": "M0,-5 L5,4 L-5,4 Z", "worse": "M0,5 L5,-4 L-5,-4 Z", "undecided": "M-4,-4 H4 V4 H-4 Z"}
ROW, GAIN_LEFT = 22, 112
SERIES: Final = [(method, measure) for measure in DETECTORS for method in METHODS]


def _unit_plot(x: str, y: str) -> Plot:
    return Plot(Axis(0, 1, x, percent=True, ticks=PERCENT), Axis(0, 1, y, percent=True, ticks=PERCENT), height=268)


def roc_chart(curves: LinesByScore, detection: Detection, /) -> str:
    """Share of OOD caught against share of ID flagged, EU and TU of both methods."""
    plot = _unit_plot("ID inputs flagged by mistake", "OOD inputs caught")
    plot.guide((0, 0), (1, 1))
    for method, measure in reversed(SERIES):
        line = curves.of(measure).of(method).roc
        plot.line(line.x, line.y, f"{method} {measure}", line_name(method, measure))
    return plot.svg(f"ROC curves for {detection.name}. {_areas(detection, 'auroc')}")


def pr_chart(curves: LinesByScore, detection: Detection, /) -> str:
    """Precision against recall, as steps whose area is the AUPRC."""
    plot = _unit_plot("OOD inputs caught (recall)", "really OOD (precision)")
    share = detection.epistemic.credal.prevalence
    plot.guide((0, share), (1, share))
    for method, measure in reversed(SERIES):
        line = _steps(curves.of(measure).of(method).pr)
        plot.line(line.x, line.y, f"{method} {measure}", line_name(method, measure))
    return plot.svg(f"Precision-recall curves for {detection.name}. {_areas(detection, 'auprc')}")


def _areas(detection: Detection, metric: str) -> str:
    values = [
        f"{line_name(method, measure)} {percent(getattr(metrics, metric))}"
        for measure, detector in detection.detectors()
        for method, metrics in detector.items()
    ]
    return f"{metric.upper()}: {'; '.join(values)}."


def _steps(line: Line) -> Line:
    """Each precision holds from its own recall down to the next lower one."""
    xs, ys = line.x[:1], line.y[:1]
    for left, right, height in zip(line.x, line.x[1:], line.y[1:], strict=False):
        xs += [left, right]
        ys += [height, height]
    return Line(xs, ys)


def histogram_chart(histogram: Histogram, names: tuple[str, str], measure: str, base: float, /) -> str:
    """Share of ID and of OOD inputs in each bin of an uncertainty."""
    edges, shares = histogram.edges, histogram.share
    top = max(max(shares[name]) for name in names)
    ticks = [share for share in ROOT_TICKS if share <= top * 1.05]
    y = Axis(0, top * 1.05, "share of inputs (root scale)", percent=True, ticks=ticks, root=True)
    plot = Plot(Axis(edges[0], edges[-1], f"{measure} uncertainty ({unit(base)})"), y)
    for style, name in reversed(list(zip(("id", "ood"), names, strict=True))):
        xs = [edge for edge in edges for _ in range(2)][1:-1]
        ys = [share for share in shares[name] for _ in range(2)]
        plot.area(xs, ys, style)
        plot.line(xs, ys, style, name)
    middle = {name: _median(edges, shares[name]) for name in names}
    text = "; ".join(f"{name}: half of the inputs lie below {value:.2f}" for name, value in middle.items())
    return plot.svg(f"Histogram of {measure} uncertainty. {text}.")


def _median(edges: Sequence[float], shares: Sequence[float]) -> float:
    total = 0.0
    for edge, share in zip(edges[1:], shares, strict=True):
        total += share
        if total >= 0.5:
            return edge
    return edges[-1]


def reliability_chart(calibration: Calibration, /) -> str:
    """Accuracy against confidence of both point predictions; on the diagonal they agree."""
    plot = _unit_plot("mean confidence", "accuracy")
    plot.guide((0, 0), (1, 1))
    both = {"averaged": (calibration.averaged, "classical"), "intersection": (calibration.intersection, "credal")}
    for name, (point, style) in both.items():
        curve = point.reliability
        joined = joined_bins(curve.count)
        plot.line(curve.confidence[joined].tolist(), curve.accuracy[joined].tolist(), style, name)
        for place in curve.count.nonzero()[0].tolist():
            plot.add(_bin(plot, curve, place, name, style))
    ece = "; ".join(f"{name} {percent(both[name][0].ece, 2)}" for name in ("intersection", "averaged"))
    return plot.svg(f"Reliability diagram. Expected calibration error: {ece}.")


def _bin(plot: Plot, curve: ReliabilityCurve, place: int, name: str, style: str) -> str:
    """A dot whose area grows with the inputs in the bin, hollow where they are too few to mean much."""
    x, y, count = float(curve.confidence[place]), float(curve.accuracy[place]), int(curve.count[place])
    cx, cy = plot.at(x, y)
    title = tag("title", f"{name}: {count} inputs, confidence {percent(x)}, accuracy {percent(y)}")
    shape = f"dot {style}" if count >= FIRM else f"dot few {style}"
    return tag("circle", title, cx=cx, cy=cy, r=2 + 5 * (count / int(curve.count.sum())) ** 0.5, class_=shape)


def rejection_chart(curves: ByMethod[RejectionCurve], measure: str, /) -> str:
    """Accuracy on the inputs kept as more of the most uncertain are turned away."""
    lowest = min(float(curve.accuracy.min()) for _, curve in curves.items())
    low = max(0.0, 1 - 1.2 * max(1 - lowest, 0.005))
    plot = Plot(
        Axis(0, 1, f"turned away, highest {SHORT[measure]} first", percent=True, ticks=PERCENT),
        Axis(low, 1, "accuracy on the rest", percent=True),
    )
    for method, curve in reversed(curves.items()):
        plot.line(curve.rejected.tolist(), curve.accuracy.tolist(), method, METHOD_NAMES[method])
    areas = "; ".join(f"{METHOD_NAMES[method]} {percent(curve.area, 2)}" for method, curve in curves.items())
    return plot.svg(f"Accuracy-rejection curve for {measure} uncertainty. Mean accuracy: {areas}.")


def members_chart(sizes: list[int], trends: ByMethod[Trend], name: str, /) -> str:
    """A metric against the number of members, with a band of one standard deviation over subsets."""
    bands = [(m - s, m + s) for _, trend in trends.items() for m, s in zip(trend.mean, trend.std, strict=True)]
    lowest, highest = min(low for low, _ in bands), max(high for _, high in bands)
    margin = max(0.05 * (highest - lowest), 0.002)
    y = Axis(max(0.0, lowest - margin), min(highest + margin, max(1.0, highest)), name, percent=True)
    pad = 0.04 * (sizes[-1] - sizes[0])
    plot = Plot(Axis(sizes[0] - pad, sizes[-1] + pad, "members used", ticks=sizes), y)
    for method, trend in trends.items():
        _draw_trend(plot, sizes, trend, method)
    ends = "; ".join(
        f"{METHOD_NAMES[method]} {percent(trend.mean[0])} with {sizes[0]} and {percent(trend.mean[-1])} with {sizes[-1]}"
        for method, trend in trends.items()
    )
    return plot.svg(f"{name} against the number of members: {ends}.")


def _draw_trend(plot: Plot, sizes: list[int], trend: Trend, method: str) -> None:
    above = [min(m + s, plot.y.high) for m, s in zip(trend.mean, trend.std, strict=True)]
    below = [max(m - s, plot.y.low) for m, s in zip(trend.mean, trend.std, strict=True)]
    band = plot.path([*sizes, *sizes[::-1]], [*above, *below[::-1]])
    plot.add(tag("polygon", points=band, class_=f"area {method}"))
    plot.line(sizes, trend.mean, method, METHOD_NAMES[method])
    for size, mean in zip(sizes, trend.mean, strict=True):
        cx, cy = plot.at(size, mean)
        plot.add(tag("circle", cx=cx, cy=cy, r=3, class_=f"dot {method}"))


def gain_chart(ood: Sequence[Detection], /) -> str:
    """AUROC of credal minus averaging with its interval, one row for each data set and uncertainty."""
    gains = [(one.name, measure, detector.difference.auroc) for one in ood for measure, detector in one.detectors()]
    reach = 1.1 * max(_extent(gain) for *_, gain in gains) or 0.01
    bottom = 8 + ROW * len(gains)
    parts = []
    for value in nice_ticks(-reach, reach, 4):
        x, sign = _gain_x(value, reach), f"{100 * value:+g}".replace("-", "\u2212") if value else "0"
        parts.append(tag("line", x1=x, x2=x, y1=4, y2=bottom, class_="grid" if value else "guide"))
        parts.append(tag("text", sign, x=x, y=bottom + 13, class_="tick", text_anchor="middle"))
    parts += [_gain_row(8 + ROW * place, *gain, reach) for place, gain in enumerate(gains)]
    middle = (GAIN_LEFT + WIDTH) / 2
    name = "gain in AUROC, percentage points"
    parts.append(tag("text", name, x=middle, y=bottom + 30, class_="axis", text_anchor="middle"))
    label = "; ".join(f"{name}, {SHORT[measure]}: {points(gain.difference)}" for name, measure, gain in gains)
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {bottom + 36}", role="img", aria_label=label)


def _extent(gain: Comparison) -> float:
    """How far from zero a row has something to show; an interval of everything possible is drawn as far as the others go."""
    return abs(gain.difference) if gain.method == TOO_FEW else max(abs(gain.low), abs(gain.high))


def _gain_x(value: float, reach: float) -> float:
    return GAIN_LEFT + (max(-1.0, min(1.0, value / reach)) + 1) / 2 * (WIDTH - 8 - GAIN_LEFT)


def _gain_row(top: int, name: str, measure: str, gain: Comparison, reach: float) -> str:
    said, y = verdict(gain), top + ROW / 2
    low, middle, high = (_gain_x(value, reach) for value in (gain.low, gain.difference, gain.high))
    span = TOO_FEW if gain.method == TOO_FEW else f"{points(gain.low)} to {points(gain.high)}"
    text = f"{points(gain.difference)} points ({span}): {said}"
    return tag(
        "g",
        tag("title", escape(f"{name}, {SHORT[measure]}: {text}"))
        + tag("text", escape(f"{clipped(name, 14)}, {SHORT[measure]}"), x=2, y=y + 4, class_="name")
        + tag("line", x1=low, x2=high, y1=y, y2=y, class_="bar")
        + tag("path", d=SHAPES[said], transform=f"translate({middle:.1f} {y:g})", class_="shape"),
        class_=f"gain {said}",
    )
