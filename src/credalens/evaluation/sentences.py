"""The result in words: a win is said as a win, a loss as a loss, and an undecided case as undecided."""

from __future__ import annotations

from dataclasses import dataclass

from credalens.core.scores import SCORES, highest_possible
from credalens.evaluation.detection import Detection
from credalens.evaluation.guarded import Alarm
from credalens.evaluation.members_needed import MembersNeeded
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.prediction_quality import NEGLIGIBLE, Calibration, JudgedRows, PointChoice
from credalens.evaluation.remarks import about, remarks
from credalens.evaluation.results import TOO_FEW, Comparison, Interval, Result
from credalens.evaluation.statistics.counts import LEAST
from credalens.evaluation.which_score import Recommendation, clear_leader
from credalens.evaluation.words import SPACE, joined, number, percent, points, unit
from credalens.guard.false_alarms import share_at_top

CLOSE_ENOUGH = 0.005
MOST_NAMED = 4
"""OOD data sets that a sentence names one by one."""


LESS_IS_BETTER = frozenset({"fpr95", "ece", "nll"})


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
    rejection: str | None
    threshold: str
    members: str | None


def summary(evaluation: Evaluation, /) -> Summary:
    """An evaluation in words."""
    ood, needed, calibration = evaluation.ood, evaluation.members_needed, evaluation.calibration
    return Summary(
        headline=_headline(evaluation) if ood else None,
        plainly=_plainly(_mean_auroc(evaluation)) if ood else None,
        detection=tuple(_finding(evaluation, detection) for detection in ood),
        remarks=remarks(evaluation),
        prediction=None if calibration is None else _prediction(calibration, evaluation),
        rejection=_rejection(evaluation.rejection, evaluation.judged),
        threshold=alarm_sentence(evaluation, evaluation.alarm),
        members=_members(needed, _mean_auroc_by_size(needed)) if needed and needed.auroc else None,
    )


def verdict(comparison: Comparison, /) -> str:
    """ "better", "worse" or "undecided", by whether the interval of the difference lies on one side of zero."""
    if comparison.low <= 0 <= comparison.high:
        return "undecided"
    return "better" if (comparison.low > 0) != (comparison.metric in LESS_IS_BETTER) else "worse"


def _mean_auroc(evaluation: Evaluation) -> float:
    """Of the recommended score: on data that it was not chosen on, where there are enough."""
    recommended = evaluation.recommended
    if recommended.held_out:
        return sum(one.auroc for one in recommended.held_out) / len(recommended.held_out)
    return next(ranked.auroc for ranked in recommended.ranking if ranked.name == recommended.score)


def _headline(evaluation: Evaluation) -> str:
    recommended, sets = evaluation.recommended, len(evaluation.ood)
    label = SCORES[recommended.score].label
    over = f" (mean of {sets} data sets)" if sets > 1 else ""
    chosen = recommended.held_out and recommended.score != recommended.default
    where = ", measured on data that it was not chosen on" if chosen else ""
    if hopeless := _hopeless(evaluation):
        return f"{hopeless} {label[0].upper()}{label[1:]} has AUROC {percent(_mean_auroc(evaluation))}{over}{where}."
    return (
        f"Use {label} to find out-of-distribution (OOD) inputs: AUROC {percent(_mean_auroc(evaluation))}{over}{where}. "
        f"{_why(evaluation)}"
    )


def _hopeless(evaluation: Evaluation) -> str:
    """That no score is better than guessing on any OOD data set; empty where one is."""
    intervals = {one.name: [metrics.auroc_interval for metrics in one.ood.values()] for one in evaluation.scores}
    if any(one is None or one.low > 0.5 for of_score in intervals.values() for one in of_score):
        return ""
    if all(one is not None and one.high < 0.5 for one in intervals[evaluation.recommended.score]):
        return "The OOD inputs look more certain than the in-distribution ones: were the two swapped?"
    return "No score tells the OOD inputs from the in-distribution ones."


def _why(evaluation: Evaluation) -> str:
    """How the recommended score compares with the default, or the default with averaging."""
    recommended = evaluation.recommended
    ranking = {ranked.name: ranked for ranked in recommended.ranking}
    score, default = SCORES[recommended.score], SCORES[recommended.default]
    if score.name != default.name:
        gain = points(ranking[score.name].auroc - ranking[default.name].auroc)
        averaging = " It belongs to averaging: here credal sets do not find more." if score.averaging else ""
        better = f"On these data it is clearly better than {default.label} ({gain} points of AUROC)."
        return f"{better}{_elsewhere(recommended)}{averaging}"
    if default.averaging:  # credal total cannot be used here, as a remark says
        return f"{_rivals(evaluation)}."
    averaged = ranking["mean_total"]
    comparison, p_value = averaged.difference, averaged.p_value
    if comparison is None or p_value is None or p_value >= 1 - evaluation.settings.level:
        return f"{_rivals(evaluation)}. The entropy of the averaged prediction is not clearly different."
    side = "better" if comparison.difference < 0 else "worse"
    apart = f"{100 * abs(comparison.difference):.2f} points {side}"
    name = f"{default.label[0].upper()}{default.label[1:]}"
    return f"{_rivals(evaluation)}. {name} is {apart} than the entropy of the averaged prediction."


def _rivals(evaluation: Evaluation) -> str:
    """That no score is better than the default, or why the one that is on average is not recommended."""
    recommended, several = evaluation.recommended, len(evaluation.ood) > 1
    leader = clear_leader(recommended, evaluation.settings.level)
    if leader is None or leader.difference is None:
        return f"No score is clearly better{' over all data sets' if several else ''}"
    if recommended.gain is None:
        but = "there are too few inputs to choose by"
    elif recommended.gain <= 0:
        but = f"what is chosen on some data finds no more on others ({points(recommended.gain)} points)"
    else:
        but = "not by mean rank"
    ahead = f"{SCORES[leader.name].label} is {100 * leader.difference.difference:.2f} points ahead of it"
    return f"By {'mean ' if several else ''}AUROC {ahead}, but {but}"


def _elsewhere(recommended: Recommendation) -> str:
    """What the choice was worth on data that it was not made on."""
    if recommended.gain is None:
        return ""
    others = "other data sets" if recommended.rule == "leave one set out" else "other inputs"
    return f" Chosen on some and measured on {others}, the gain is {points(recommended.gain)} points."


def _plainly(auroc: float) -> str:
    return (
        "In other words: draw one OOD and one ordinary input at random, and the OOD one has the higher uncertainty in "
        f"{100 * auroc:.0f} of 100 cases; 50 would be guessing."
    )


def _finding(evaluation: Evaluation, detection: Detection) -> Finding:
    score = evaluation.recommended.score
    metrics = next(quality for quality in evaluation.scores if quality.name == score).ood[detection.name]
    pair = detection.epistemic if score in ("epistemic", "mean_epistemic") else detection.total
    interval = metrics.auroc_interval
    span = f", {_level(interval)} interval {_range(interval)}" if interval else ""
    epistemic, total = (
        f"{name}: {percent(detector.credal.auroc)}, {_against(detector.difference.auroc)}."
        for name, detector in (
            ("Epistemic uncertainty", detection.epistemic),
            ("Total uncertainty", detection.total),
        )
    )
    return Finding(
        name=detection.name,
        verdict=verdict(pair.difference.auroc),
        auroc=percent(metrics.auroc),
        interval=f"AUROC of {SCORES[score].label}{span}.",
        epistemic=epistemic,
        total=total,
        remark=about(detection),
    )


def _against(comparison: Comparison) -> str:
    """The difference to averaging with its interval."""
    span = f"({points(comparison.low)} to {points(comparison.high)})"
    if comparison.low == comparison.high == 0:
        return "the same as averaging"
    if comparison.method == TOO_FEW:
        return "not compared with averaging, for too few inputs"
    said = verdict(comparison)
    if said == "undecided":
        return f"no clear difference from averaging {span}"
    return f"{100 * abs(comparison.difference):.2f} points {said} than averaging {span}"


def _level(interval: Interval) -> str:
    return f"{100 * interval.level:g}{SPACE}%"


def _range(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _prediction(calibration: Calibration, evaluation: Evaluation) -> str:
    credal, averaged = calibration.intersection, calibration.averaged
    gains = {
        "accuracy": credal.accuracy - averaged.accuracy,
        "ECE": averaged.ece - credal.ece,
        "NLL": averaged.nll - credal.nll,
    }
    if evaluation.data.members == 1:
        return (
            f"On {evaluation.data.id.name} data the right class is named for {percent(averaged.accuracy)} of the inputs; the "
            f"calibration error (ECE) is {percent(averaged.ece, 2)}, the NLL {number(averaged.nll)}."
        )
    return (
        f"On {evaluation.data.id.name} data the intersection probability names the right class for "
        f"{percent(credal.accuracy)} of the inputs, averaging for {percent(averaged.accuracy)}; the calibration error "
        f"(ECE) is {percent(credal.ece, 2)} against {percent(averaged.ece, 2)}, the NLL {number(credal.nll)} against "
        f"{number(averaged.nll)}. {_who_is_ahead(gains)} {_which_point(evaluation.point)}"
    )


def _which_point(choice: PointChoice | None) -> str:
    if choice is None:
        return ""
    if choice.prediction == "mean":
        where = joined(difference.metric for difference in choice.clear)
        return f"Averaging is clearly better in {where}: use the mean as the point prediction."
    return "The mean is not clearly better calibrated: use the intersection probability as the point prediction."


def _who_is_ahead(gains: dict[str, float]) -> str:
    gains = {name: gain if name == "accuracy" or abs(gain) >= NEGLIGIBLE else 0.0 for name, gain in gains.items()}
    sides = {
        "credal prediction is ahead in": [name for name, gain in gains.items() if gain > 0],
        "averaging is ahead in": [name for name, gain in gains.items() if gain < 0],
        "they are equal in": [name for name, gain in gains.items() if gain == 0],
    }
    text = "; ".join(f"{side} {joined(names)}" for side, names in sides.items() if names)
    return text[0].upper() + text[1:] + "."


def _rejection(recommended: Recommendation | None, judged: JudgedRows | None) -> str | None:
    """Which score finds wrong predictions, and what it was worth where it was not chosen."""
    if recommended is None or judged is None:
        return None
    if not recommended.held_out:
        right = int(judged.correct.sum())
        return (
            f"{right:,} of the predictions are right and {len(judged.correct) - right:,} wrong: too few to measure which score "
            f"finds the wrong ones, which needs {2 * LEAST} of each."
        )
    if share := recommended.tied.get(recommended.score):
        return (
            f"{percent(share)} of the right predictions have the highest {SCORES[recommended.score].label} there can be, and "
            "so it is with other scores: it cannot be said which predictions to hand to a person."
        )
    (wrong,) = recommended.held_out
    rate = f"{100 * recommended.false_alarm_rate:g}{SPACE}%"
    caught = f"{percent(wrong.caught, 0)} of the wrong ones ({100 * wrong.low:.0f} to {100 * wrong.high:.0f})"
    return (
        f"To hand doubtful predictions to a person, sort by {SCORES[recommended.score].label}: where {rate} of the right "
        f"ones are handed over, so are {caught}."
    )


def alarm_sentence(evaluation: Evaluation, alarm: Alarm, /) -> str:
    """What a threshold does, in one sentence; of many OOD data sets it names the two ends."""
    score = SCORES[alarm.score]
    in_unit = f" {unit(evaluation.settings.base)}" if score.unit == "information" else ""
    rate = f"{100 * alarm.threshold.false_alarm_rate:g}{SPACE}%"
    caught = _caught(evaluation, alarm)
    data, base = evaluation.data, evaluation.settings.base
    highest = highest_possible(alarm.score, classes=data.classes, members=data.members, base=base)
    share = share_at_top(evaluation.values[data.id.name][alarm.score], alarm.threshold.false_alarm_rate, highest)
    blind = f" No input can be above it: {percent(share)} of the in-distribution ones are there." if share else ""
    return (
        f"To raise the alarm for at most {rate} of in-distribution inputs, flag {score.label} above "
        f"{number(alarm.threshold.value)}{in_unit}{f': that catches {caught}' if caught else ''}.{blind}"
    )


def _caught(evaluation: Evaluation, alarm: Alarm) -> str:
    recommended = evaluation.recommended
    measured = alarm.threshold.false_alarm_rate == recommended.false_alarm_rate
    expected = {one.name: f" ({100 * one.low:.0f} to {100 * one.high:.0f})" for one in recommended.held_out if measured}
    shares = [f"{percent(share, 0)} of {name}{expected.get(name, '')}" for name, share in alarm.caught.items()]
    if len(shares) > MOST_NAMED:
        order = sorted(alarm.caught, key=lambda name: alarm.caught[name])
        least, most = (shares[list(alarm.caught).index(name)] for name in (order[0], order[-1]))
        return f"from {least} to {most}, of {len(shares)} OOD data sets"
    return joined(shares) if shares else ""


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
