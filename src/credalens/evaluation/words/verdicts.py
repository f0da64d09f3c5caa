"""The result in words: a win is said as a win, a loss as a loss, and an undecided case as undecided."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from credalens.evaluation.words.remarks import about, remarks

__all__ = ["joined", "number", "percent", "points", "summary", "unit", "verdict"]

MINUS, SPACE = "\u2212", "\u00a0"  # the space keeps a number and its unit on one line
CLOSE_ENOUGH = 0.005


def percent(value: float | None, digits: int = 1, /) -> str:
    """A fraction as a percentage; a dash where there is none.

    >>> percent(0.9387).split(), percent(None)
    (['93.9', '%'], '–')
    """
    return "–" if value is None else f"{100 * value:.{digits}f}{SPACE}%".replace("-", MINUS)


def points(value: float, /) -> str:
    """A difference of two fractions, with its sign, in percentage points.

    >>> points(-0.0105)
    '−1.05'
    """
    return f"{100 * value:+.2f}".replace("-", MINUS)


def number(value: float | None, digits: int = 3, /) -> str:
    """A plain number with a typographic minus; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def unit(base: float, /) -> str:
    """What uncertainty is measured in."""
    return {2.0: "bits", math.e: "nats"}.get(base, f"units of log {base:g}")


def verdict(comparison: dict[str, Any], /, *, lower_is_better: bool = False) -> str:
    """ "better", "worse" or "undecided", by whether the interval of the difference lies on one side of zero."""
    low, high = comparison["low"], comparison["high"]
    if low <= 0 <= high:
        return "undecided"
    return "better" if (low > 0) != lower_is_better else "worse"


def joined(texts: Iterable[str], /) -> str:
    """An enumeration.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *rest, last = texts
    return f"{', '.join(rest)} and {last}" if rest else last


def summary(result: dict[str, Any], /) -> dict[str, Any]:
    """The sentences that open the report."""
    return {
        "headline": _headline(result["ood"]) if result["ood"] else None,
        "plainly": _plainly(result["ood"]) if result["ood"] else None,
        "detection": [_detection(found, result["data"]) for found in result["ood"]],
        "remarks": remarks(result),
        "prediction": None if result["calibration"] is None else _prediction(result),
        "threshold": _threshold(result),
        "members": _members(result["members_needed"]) if result["members_needed"] and result["ood"] else None,
    }


def _headline(ood: list[dict[str, Any]]) -> str:
    mean = sum(found["epistemic"]["credal"]["auroc"] for found in ood) / len(ood)
    verdicts = {found["name"]: verdict(found["epistemic"]["difference"]["auroc"]) for found in ood}
    sides = [
        f"{text} on {joined(names)}"
        for key, text in (("better", "better"), ("worse", "worse"), ("undecided", "not clearly different"))
        if (names := [name for name, found in verdicts.items() if found == key])
    ]
    over = f" (mean of {len(ood)} data sets)" if len(ood) > 1 else ""
    return (
        f"Epistemic uncertainty from credal sets finds out-of-distribution (OOD) inputs at AUROC {percent(mean)}{over}. "
        f"Against averaging it is {joined(sides)}."
    )


def _plainly(ood: list[dict[str, Any]]) -> str:
    mean = sum(found["epistemic"]["credal"]["auroc"] for found in ood) / len(ood)
    return (
        "In other words: draw one OOD and one ordinary input at random, and the OOD one has the higher uncertainty in "
        f"{100 * mean:.0f} of 100 cases; 50 would be guessing."
    )


def _detection(found: dict[str, Any], data: dict[str, Any]) -> dict[str, str]:
    epistemic, total = found["epistemic"], found["total"]
    interval = epistemic["credal"]["auroc_interval"]
    return {
        "name": found["name"],
        "verdict": verdict(epistemic["difference"]["auroc"]),
        "auroc": percent(epistemic["credal"]["auroc"]),
        "interval": f"AUROC of epistemic uncertainty, {_level(interval)} interval {_range(interval)}.",
        "epistemic": f"{_against(epistemic['difference']['auroc'])}.",
        "total": f"Total uncertainty: {percent(total['credal']['auroc'])}, {_against(total['difference']['auroc'])}.",
        "remark": about(found, data),
    }


def _against(comparison: dict[str, Any]) -> str:
    """The difference to averaging with its interval."""
    size = f"{100 * abs(comparison['difference']):.2f} points"
    span = f"({points(comparison['low'])} to {points(comparison['high'])})"
    if comparison["low"] == comparison["high"] == 0:
        return "the same as averaging"
    found = verdict(comparison)
    if found == "undecided":
        return f"no clear difference from averaging {span}"
    return f"{size} {found} than averaging {span}"


def _level(interval: dict[str, Any]) -> str:
    return f"{100 * interval['level']:g}{SPACE}%"


def _range(interval: dict[str, Any]) -> str:
    return f"{100 * interval['low']:.1f} to {100 * interval['high']:.1f}"


def _prediction(result: dict[str, Any]) -> str:
    ours, theirs = result["calibration"]["intersection"], result["calibration"]["averaged"]
    ahead = {"accuracy": ours["accuracy"] - theirs["accuracy"]}
    ahead |= {name.upper(): theirs[name] - ours[name] for name in ("ece", "nll")}
    return (
        f"On {result['data']['id']['name']} data the intersection probability names the right class for "
        f"{percent(ours['accuracy'])} of the inputs, averaging for {percent(theirs['accuracy'])}; the calibration error "
        f"(ECE) is {percent(ours['ece'], 2)} against {percent(theirs['ece'], 2)}, the NLL {number(ours['nll'])} against "
        f"{number(theirs['nll'])}. {_who_is_ahead(ahead)}"
    )


def _who_is_ahead(gains: dict[str, float]) -> str:
    sides = {
        "credal prediction is ahead in": [name for name, gain in gains.items() if gain > 0],
        "averaging is ahead in": [name for name, gain in gains.items() if gain < 0],
        "they are equal in": [name for name, gain in gains.items() if gain == 0],
    }
    text = "; ".join(f"{side} {joined(names)}" for side, names in sides.items() if names)
    return text[0].upper() + text[1:] + "."


def _threshold(result: dict[str, Any]) -> str:
    settings = result["settings"]
    row = next(
        row
        for row in result["thresholds"]
        if (row["kind"], row["measure"], row["false_alarm_rate"])
        == ("credal", "epistemic", settings["false_alarm_rate"])
    )
    caught = [f"{percent(share, 0)} of {name}" for name, share in row["caught"].items()]
    rate = f"{100 * row['false_alarm_rate']:g}{SPACE}%"
    return (
        f"To raise the alarm for at most {rate} of in-distribution inputs, flag an epistemic uncertainty above "
        f"{number(row['value'])} {unit(settings['base'])}{f': that catches {joined(caught)}' if caught else ''}."
    )


def _members(found: dict[str, Any]) -> str:
    sizes, curve = found["sizes"], _mean_curve(found)
    far = [place for place, value in enumerate(curve) if abs(value - curve[-1]) > CLOSE_ENOUGH]
    enough, gain = sizes[max(far, default=-1) + 1], curve[-1] - curve[-2]
    last = f"From {sizes[-2]} to {sizes[-1]} members the mean AUROC of epistemic uncertainty changes by {points(gain)} points."
    if enough == sizes[-1]:
        return f"{last} {'More members may well help.' if gain > 0 else 'It has not settled yet.'}"
    return (
        f"{last} With {enough} of {sizes[-1]} members it is within {100 * CLOSE_ENOUGH:g} points of the full ensemble."
    )


def _mean_curve(found: dict[str, Any]) -> list[float]:
    curves = [curve["mean"] for curve in found["auroc"]["epistemic"]["credal"].values()]
    return [sum(values) / len(values) for values in zip(*curves, strict=True)]
