"""The result in words: a win is said as a win, a loss as a loss, and an undecided case as undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from credalens.evaluation.detection import Detection
from credalens.evaluation.members_needed import MembersNeeded
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.prediction_quality import Calibration
from credalens.evaluation.results import Comparison, Interval, Result
from credalens.evaluation.words.numbers import SPACE, joined, number, percent, points, unit
from credalens.evaluation.words.remarks import about, remarks

CLOSE_ENOUGH = 0.005


@dataclass(frozen=True)
class Finding(Result):
    """What is said about one OOD data set."""

    name: str
    verdict: str
    auroc: str
    interval: str
    epistemic: str
    total: str
    remark: str


@dataclass(frozen=True)
class Summary(Result):
    """The sentences that open the report; None or empty where the data for one are missing."""

    headline: str | None
    plainly: str | None
    detection: tuple[Finding, ...]
    remarks: list[str]
    prediction: str | None
    threshold: str
    members: str | None


def summary(evaluation: Evaluation, /) -> Summary:
    """An evaluation in words."""
    ood, needed, calibration = evaluation.ood, evaluation.members_needed, evaluation.calibration
    return Summary(
        headline=_headline(ood) if ood else None,
        plainly=_plainly(ood) if ood else None,
        detection=tuple(_finding(detection) for detection in ood),
        remarks=remarks(evaluation),
        prediction=None if calibration is None else _prediction(calibration, evaluation.data.id.name),
        threshold=_threshold(evaluation),
        members=_members(needed, _mean_auroc_by_size(needed)) if needed and needed.auroc else None,
    )


def verdict(comparison: Comparison, /) -> str:
    """ "better", "worse" or "undecided", by whether the interval of the difference lies on one side of zero."""
    if comparison.low <= 0 <= comparison.high:
        return "undecided"
    return "better" if comparison.low > 0 else "worse"


def _mean_auroc(ood: Sequence[Detection]) -> float:
    return sum(detection.epistemic.credal.auroc for detection in ood) / len(ood)


def _headline(ood: Sequence[Detection]) -> str:
    verdicts = {detection.name: verdict(detection.epistemic.difference.auroc) for detection in ood}
    sides = [
        f"{text} on {joined(names)}"
        for key, text in (("better", "better"), ("worse", "worse"), ("undecided", "not clearly different"))
        if (names := [name for name, said in verdicts.items() if said == key])
    ]
    over = f" (mean of {len(ood)} data sets)" if len(ood) > 1 else ""
    return (
        "Epistemic uncertainty from credal sets finds out-of-distribution (OOD) inputs at AUROC "
        f"{percent(_mean_auroc(ood))}{over}. Against averaging it is {joined(sides)}."
    )


def _plainly(ood: Sequence[Detection]) -> str:
    return (
        "In other words: draw one OOD and one ordinary input at random, and the OOD one has the higher uncertainty in "
        f"{100 * _mean_auroc(ood):.0f} of 100 cases; 50 would be guessing."
    )


def _finding(detection: Detection) -> Finding:
    epistemic, total = detection.epistemic, detection.total
    interval = epistemic.credal.auroc_interval
    return Finding(
        name=detection.name,
        verdict=verdict(epistemic.difference.auroc),
        auroc=percent(epistemic.credal.auroc),
        interval=f"AUROC of epistemic uncertainty, {_level(interval)} interval {_range(interval)}.",
        epistemic=f"{_against(epistemic.difference.auroc)}.",
        total=f"Total uncertainty: {percent(total.credal.auroc)}, {_against(total.difference.auroc)}.",
        remark=about(detection),
    )


def _against(comparison: Comparison) -> str:
    """The difference to averaging with its interval."""
    span = f"({points(comparison.low)} to {points(comparison.high)})"
    if comparison.low == comparison.high == 0:
        return "the same as averaging"
    said = verdict(comparison)
    if said == "undecided":
        return f"no clear difference from averaging {span}"
    return f"{100 * abs(comparison.difference):.2f} points {said} than averaging {span}"


def _level(interval: Interval) -> str:
    return f"{100 * interval.level:g}{SPACE}%"


def _range(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _prediction(calibration: Calibration, id_name: str) -> str:
    credal, averaged = calibration.intersection, calibration.averaged
    gains = {
        "accuracy": credal.accuracy - averaged.accuracy,
        "ECE": averaged.ece - credal.ece,
        "NLL": averaged.nll - credal.nll,
    }
    return (
        f"On {id_name} data the intersection probability names the right class for "
        f"{percent(credal.accuracy)} of the inputs, averaging for {percent(averaged.accuracy)}; the calibration error "
        f"(ECE) is {percent(credal.ece, 2)} against {percent(averaged.ece, 2)}, the NLL {number(credal.nll)} against "
        f"{number(averaged.nll)}. {_who_is_ahead(gains)}"
    )


def _who_is_ahead(gains: dict[str, float]) -> str:
    sides = {
        "credal prediction is ahead in": [name for name, gain in gains.items() if gain > 0],
        "averaging is ahead in": [name for name, gain in gains.items() if gain < 0],
        "they are equal in": [name for name, gain in gains.items() if gain == 0],
    }
    text = "; ".join(f"{side} {joined(names)}" for side, names in sides.items() if names)
    return text[0].upper() + text[1:] + "."


def _threshold(evaluation: Evaluation) -> str:
    alarm = evaluation.alarm
    caught = [f"{percent(share, 0)} of {name}" for name, share in alarm.caught.items()]
    rate = f"{100 * alarm.threshold.false_alarm_rate:g}{SPACE}%"
    return (
        f"To raise the alarm for at most {rate} of in-distribution inputs, flag an epistemic uncertainty above "
        f"{number(alarm.threshold.value)} {unit(evaluation.settings.base)}"
        f"{f': that catches {joined(caught)}' if caught else ''}."
    )


def _members(needed: MembersNeeded, curve: list[float]) -> str:
    sizes = needed.sizes
    far = [place for place, value in enumerate(curve) if abs(value - curve[-1]) > CLOSE_ENOUGH]
    enough, gain = sizes[max(far, default=-1) + 1], curve[-1] - curve[-2]
    last = f"From {sizes[-2]} to {sizes[-1]} members the mean AUROC of epistemic uncertainty changes by {points(gain)} points."
    if enough == sizes[-1]:
        return f"{last} {'More members may well help.' if gain > 0 else 'It has not settled yet.'}"
    return (
        f"{last} With {enough} of {sizes[-1]} members it is within {100 * CLOSE_ENOUGH:g} points of the full ensemble."
    )


def _mean_auroc_by_size(needed: MembersNeeded) -> list[float]:
    """AUROC of credal epistemic uncertainty at each size, the mean over the OOD data sets."""
    if needed.auroc is None:
        return []
    curves = [trend.mean for trend in needed.auroc.epistemic.credal.values()]
    return [sum(values) / len(values) for values in zip(*curves, strict=True)]
