"""The charts of the report as SVG, each from a part of the result."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from credalens.evaluation.words.verdicts import percent, points, unit, verdict
from credalens.report.svg import WIDTH, Axis, Plot, clipped, nice_ticks, tag
from credalens.report.tables import METHODS, SHORT

__all__ = [
    "gain_chart",
    "histogram_chart",
    "members_chart",
    "pr_chart",
    "rejection_chart",
    "reliability_chart",
    "roc_chart",
]

PERCENT: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
ROOT_TICKS: Final = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
DETECTORS: Final = ("epistemic", "total")
SHAPES: Final = {"better": "M0,-5 L5,4 L-5,4 Z", "worse": "M0,5 L5,-4 L-5,-4 Z", "undecided": "M-4,-4 H4 V4 H-4 Z"}
ROW, GAIN_LEFT = 22, 112
SERIES: Final = [(measure, kind) for measure in DETECTORS for kind in METHODS]
FIRM = 5
"""With fewer inputs than this the accuracy of a bin says little."""


def _named(measure: str, kind: str) -> str:
    return f"{SHORT[measure]}, {METHODS[kind]}"


def _unit_plot(x: str, y: str) -> Plot:
    return Plot(Axis(0, 1, x, percent=True, ticks=PERCENT), Axis(0, 1, y, percent=True, ticks=PERCENT), height=268)


def roc_chart(curves: dict[str, Any], found: dict[str, Any], /) -> str:
    """Share of OOD caught against share of ID flagged, EU and TU of both methods."""
    plot = _unit_plot("ID inputs flagged by mistake", "OOD inputs caught")
    plot.guide((0, 0), (1, 1))
    for measure, kind in reversed(SERIES):
        xs, ys = curves[measure][kind]["roc"]
        plot.line(xs, ys, f"{kind} {measure}", _named(measure, kind))
    return plot.svg(f"ROC curves for {found['name']}. {_areas(found, 'auroc', 'AUROC')}")


def pr_chart(curves: dict[str, Any], found: dict[str, Any], /) -> str:
    """Precision against recall, as steps whose area is the AUPRC."""
    plot = _unit_plot("OOD inputs caught (recall)", "really OOD (precision)")
    share = found["rows"] / (found["rows"] + found["epistemic"]["credal"]["n_id"])
    plot.guide((0, share), (1, share))
    for measure, kind in reversed(SERIES):
        xs, ys = _steps(*curves[measure][kind]["pr"])
        plot.line(xs, ys, f"{kind} {measure}", _named(measure, kind))
    return plot.svg(f"Precision-recall curves for {found['name']}. {_areas(found, 'auprc', 'AUPRC')}")


def _areas(found: dict[str, Any], metric: str, name: str) -> str:
    values = (f"{_named(measure, kind)} {percent(found[measure][kind][metric])}" for measure, kind in SERIES)
    return f"{name}: {'; '.join(values)}."


def _steps(recall: Sequence[float], precision: Sequence[float]) -> tuple[list[float], list[float]]:
    """Each precision holds from its own recall down to the next lower one."""
    xs, ys = [recall[0]], [precision[0]]
    for place in range(1, len(recall)):
        xs += [recall[place - 1], recall[place]]
        ys += [precision[place]] * 2
    return xs, ys


def histogram_chart(histogram: dict[str, Any], names: tuple[str, str], measure: str, base: float, /) -> str:
    """Share of ID and of OOD inputs in each bin of an uncertainty."""
    edges, shares = histogram["edges"], histogram["share"]
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


def reliability_chart(calibration: dict[str, Any], /) -> str:
    """Accuracy against confidence of both point predictions; on the diagonal they agree."""
    plot = _unit_plot("mean confidence", "accuracy")
    plot.guide((0, 0), (1, 1))
    for name, style in (("averaged", "classical"), ("intersection", "credal")):
        curve = calibration[name]["reliability"]
        bins = [
            (x, y, count)
            for x, y, count in zip(curve["confidence"], curve["accuracy"], curve["count"], strict=True)
            if count
        ]
        firm = [(x, y) for x, y, count in bins if count >= FIRM] or [(x, y) for x, y, _ in bins]
        plot.line([x for x, _ in firm], [y for _, y in firm], style, name)
        for x, y, count in bins:
            plot.add(_bin(plot, x, y, count, sum(curve["count"]), name, style))
    ece = "; ".join(f"{name} {percent(calibration[name]['ece'], 2)}" for name in ("intersection", "averaged"))
    return plot.svg(f"Reliability diagram. Expected calibration error: {ece}.")


def _bin(plot: Plot, x: float, y: float, count: int, total: int, name: str, style: str) -> str:
    """A dot whose area grows with the inputs in the bin, hollow where they are too few to mean much."""
    cx, cy = plot.at(x, y)
    title = tag("title", f"{name}: {count} inputs, confidence {percent(x)}, accuracy {percent(y)}")
    kind = f"dot {style}" if count >= FIRM else f"dot few {style}"
    return tag("circle", title, cx=cx, cy=cy, r=2 + 5 * (count / total) ** 0.5, class_=kind)


def rejection_chart(part: dict[str, Any], measure: str, /) -> str:
    """Accuracy on the inputs kept as more of the most uncertain are turned away."""
    lowest = min(min(curve["accuracy"]) for curve in part.values())
    low = max(0.0, 1 - 1.2 * max(1 - lowest, 0.005))
    plot = Plot(
        Axis(0, 1, f"turned away, highest {SHORT[measure]} first", percent=True, ticks=PERCENT),
        Axis(low, 1, "accuracy on the rest", percent=True),
    )
    for kind in reversed(METHODS):
        curve = part[kind]
        plot.line(curve["rejected"], curve["accuracy"], kind, METHODS[kind])
    areas = "; ".join(f"{METHODS[kind]} {percent(part[kind]['area'], 2)}" for kind in METHODS)
    return plot.svg(f"Accuracy-rejection curve for {measure} uncertainty. Mean accuracy: {areas}.")


def members_chart(sizes: list[int], series: dict[str, dict[str, list[float]]], name: str, /) -> str:
    """A metric against the number of members, with a band of one standard deviation over subsets."""
    lows = [m - s for one in series.values() for m, s in zip(one["mean"], one["std"], strict=True)]
    highs = [m + s for one in series.values() for m, s in zip(one["mean"], one["std"], strict=True)]
    margin = max(0.05 * (max(highs) - min(lows)), 0.002)
    y = Axis(max(0.0, min(lows) - margin), min(max(highs) + margin, max(1.0, max(highs))), name, percent=True)
    pad = 0.04 * (sizes[-1] - sizes[0])
    plot = Plot(Axis(sizes[0] - pad, sizes[-1] + pad, "members used", ticks=sizes), y)
    for kind, one in series.items():
        above = [min(m + s, y.high) for m, s in zip(one["mean"], one["std"], strict=True)]
        below = [max(m - s, y.low) for m, s in zip(one["mean"], one["std"], strict=True)]
        plot.add(
            tag("polygon", points=plot.path([*sizes, *sizes[::-1]], [*above, *below[::-1]]), class_=f"area {kind}")
        )
        plot.line(sizes, one["mean"], kind, METHODS[kind])
        for size, mean in zip(sizes, one["mean"], strict=True):
            cx, cy = plot.at(size, mean)
            plot.add(tag("circle", cx=cx, cy=cy, r=3, class_=f"dot {kind}"))
    ends = "; ".join(
        f"{METHODS[kind]} {percent(one['mean'][0])} with {sizes[0]} and {percent(one['mean'][-1])} with {sizes[-1]}"
        for kind, one in series.items()
    )
    return plot.svg(f"{name} against the number of members: {ends}.")


def gain_chart(ood: list[dict[str, Any]], /) -> str:
    """AUROC of credal minus averaging with its interval, one row for each data set and uncertainty."""
    gains = [(found["name"], measure, found[measure]["difference"]["auroc"]) for found in ood for measure in DETECTORS]
    reach = 1.1 * max(max(abs(gain["low"]), abs(gain["high"])) for *_, gain in gains) or 0.01
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
    label = "; ".join(f"{name}, {SHORT[measure]}: {points(gain['difference'])}" for name, measure, gain in gains)
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {bottom + 36}", role="img", aria_label=label)


def _gain_x(value: float, reach: float) -> float:
    return GAIN_LEFT + (value / reach + 1) / 2 * (WIDTH - 8 - GAIN_LEFT)


def _gain_row(top: int, name: str, measure: str, gain: dict[str, Any], reach: float) -> str:
    found, y = verdict(gain), top + ROW / 2
    low, middle, high = (_gain_x(gain[key], reach) for key in ("low", "difference", "high"))
    text = f"{points(gain['difference'])} points ({points(gain['low'])} to {points(gain['high'])}): {found}"
    return tag(
        "g",
        tag("title", escape(f"{name}, {SHORT[measure]}: {text}"))
        + tag("text", escape(f"{clipped(name, 14)}, {SHORT[measure]}"), x=2, y=y + 4, class_="name")
        + tag("line", x1=low, x2=high, y1=y, y2=y, class_="bar")
        + tag("path", d=SHAPES[found], transform=f"translate({middle:.1f} {y:g})", class_="shape"),
        class_=f"gain {found}",
    )
