"""The result in words: a win is said as a win, a loss as a loss, and an undecided case as undecided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credalens.core.scores import DEFAULT, SCORES, highest_possible
from credalens.evaluation.detection import Detection
from credalens.evaluation.evaluate import Evaluation
from credalens.evaluation.ood import LEAST
from credalens.evaluation.prediction_quality import NEGLIGIBLE
from credalens.evaluation.results import TOO_FEW, Comparison, Result
from credalens.evaluation.thresholds import Alarm
from credalens.evaluation.which_score import Recommendation, clear_leader
from credalens.evaluation.words import SPACE, gain_text, interval_text, joined, number, percent, points, unit
from credalens.guard.binomial import share_at_top

CLOSE_ENOUGH = 0.005
MOST_NAMED = 4
"""OOD data sets that a sentence names one by one."""
ONE_MEMBER: Final = (
    "There is a single member, and one member cannot disagree: epistemic uncertainty is zero everywhere. Train a few "
    "more with other seeds."
)
NO_LABELS: Final = "No labels were given, so that accuracy and calibration are unknown. Pass them with --labels."


@dataclass(frozen=True)
class Finding(Result):
    """Sentences about one OOD data set."""

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
    recalibration: str | None
    rejection: str | None
    threshold: str
    members: str | None

    def lines(self) -> list[str]:
        """The sentences in the order in which terminal and notebook show them."""
        prediction = self.prediction, self.recalibration
        parts = (self.headline, *prediction, self.rejection, self.threshold, self.members, *self.remarks)
        return [part for part in parts if part]


def summary(evaluation: Evaluation, /) -> Summary:
    """An evaluation in words."""
    headline = plainly = None
    if evaluation.ood:
        headline = _headline(evaluation)
        plainly = (
            "In other words: draw one OOD and one ordinary input at random, and the OOD one has the higher uncertainty in "
            f"{100 * _mean_auroc(evaluation):.0f} of 100 cases; 50 would be guessing."
        )
    findings = tuple(_finding(evaluation, detection) for detection in evaluation.ood)
    threshold = alarm_sentence(evaluation, evaluation.alarm)
    said = _prediction(evaluation), _recalibration(evaluation), _rejection(evaluation), threshold, _members(evaluation)
    return Summary(headline, plainly, findings, _remarks(evaluation, findings), *said)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _rate(false_alarm_rate: float) -> str:
    return f"{100 * false_alarm_rate:g}{SPACE}%"


def _mean_auroc(evaluation: Evaluation) -> float:
    """AUROC of the recommended score: on data that it was not chosen on, where there are enough."""
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
    auroc = f"AUROC {percent(_mean_auroc(evaluation))}{over}{where}."
    intervals = {one.name: [metrics.auroc_interval for metrics in one.ood.values()] for one in evaluation.scores}
    if any(one is None or one.low > 0.5 for of_score in intervals.values() for one in of_score):
        return f"Use {label} to find out-of-distribution (OOD) inputs: {auroc} {_why(evaluation)}"
    hopeless = "No score tells the OOD inputs from the in-distribution ones."
    if all(one is not None and one.high < 0.5 for one in intervals[recommended.score]):
        hopeless = "The OOD inputs look more certain than the in-distribution ones: were the two swapped?"
    return f"{hopeless} {_capital(label)} has {auroc}"


def _why(evaluation: Evaluation) -> str:
    """Compare the recommended score with the default, or the default with the averaged prediction."""
    recommended = evaluation.recommended
    ranking = {ranked.name: ranked for ranked in recommended.ranking}
    score, default = SCORES[recommended.score], SCORES[recommended.default]
    if score.name != default.name:
        gain = points(ranking[score.name].auroc - ranking[default.name].auroc)
        text = f"On these data it is clearly better than {default.label} ({gain} points of AUROC)."
        if recommended.gain is not None:  # on data that were not used to choose
            others = "other data sets" if recommended.rule == "leave one set out" else "other inputs"
            text += f" Chosen on some and measured on {others}, the gain is {points(recommended.gain)} points."
        averaged = " It is a score of the averaged prediction: here credal sets do not find more."
        return text + (averaged if score.averaged else "")
    rivals = _rivals(evaluation)
    if default.averaged:  # credal total cannot be used here, as a remark says
        return f"{rivals}."
    comparison, p_value = ranking["mean_total"].difference, ranking["mean_total"].p_value
    if comparison is None or p_value is None or p_value >= 1 - evaluation.settings.level:
        return f"{rivals}. The entropy of the averaged prediction is not clearly different."
    apart = f"{100 * abs(comparison.difference):.2f} points {'better' if comparison.difference < 0 else 'worse'}"
    return f"{rivals}. {_capital(default.label)} is {apart} than the entropy of the averaged prediction."


def _rivals(evaluation: Evaluation) -> str:
    """Say that no score is better than the default, or why the one that is on average is not recommended."""
    recommended, several = evaluation.recommended, len(evaluation.ood) > 1
    leader = clear_leader(recommended, evaluation.settings.level)
    if leader is None or leader.difference is None:
        return f"No score is clearly better{' over all data sets' if several else ''}"
    if recommended.gain is None:
        but = "there are too few inputs to choose by"
    elif recommended.gain <= 0:
        but = f"a score that is chosen on some data finds no more on other data ({points(recommended.gain)} points)"
    else:
        but = "not by mean rank"
    ahead = f"{SCORES[leader.name].label} is {100 * leader.difference.difference:.2f} points ahead of it"
    return f"By {'mean ' if several else ''}AUROC {ahead}, but {but}"


def _finding(evaluation: Evaluation, detection: Detection) -> Finding:
    score = evaluation.recommended.score
    metrics = next(quality for quality in evaluation.scores if quality.name == score).ood[detection.name]
    pair = detection.epistemic if score in ("epistemic", "mean_epistemic") else detection.total
    interval = metrics.auroc_interval
    span = f", {_rate(interval.level)} interval {interval_text(interval)}" if interval else ""
    epistemic, total = (
        f"{_capital(measure)} uncertainty: {percent(detector.credal.auroc)}, {_against(detector.difference.auroc)}."
        for measure, detector in detection.detectors()
    )
    return Finding(
        name=detection.name,
        verdict=pair.difference.auroc.verdict,
        auroc=percent(metrics.auroc),
        interval=f"AUROC of {SCORES[score].label}{span}.",
        epistemic=epistemic,
        total=total,
        remark=_remark(detection),
    )


def _against(comparison: Comparison) -> str:
    """The difference to the averaged prediction with its interval."""
    if comparison.low == comparison.high == 0:
        return "the same as for the averaged prediction"
    if comparison.method == TOO_FEW:
        return "not compared with the averaged prediction, for too few inputs"
    if comparison.verdict == "undecided":
        return f"no clear difference from the averaged prediction ({gain_text(comparison)})"
    apart = f"{100 * abs(comparison.difference):.2f} points {comparison.verdict}"
    return f"{apart} than the averaged prediction ({gain_text(comparison)})"


def _remark(detection: Detection) -> str:
    """Warnings about one OOD data set: worse than chance, or too few inputs; empty where there is nothing to warn of."""
    remarks = []
    if detection.epistemic.credal.auroc_interval.high < 0.5:
        remarks.append(
            "Credal epistemic uncertainty is worse than chance here: it is lower for these inputs than for those that the "
            "members were trained for."
        )
    compared = detection.epistemic.difference.auroc
    fewest, kind = min((compared.n_ood, "OOD"), (compared.n_id, "ID"))
    if fewest < LEAST:
        remarks.append(
            f"With only {fewest} {kind} inputs credal and averaged predictions are not compared by their AUROC (that needs "
            f"{LEAST}), and the intervals of AUPRC and FPR95 may well be wrong."
        )
    return " ".join(remarks)


def _remarks(evaluation: Evaluation, findings: tuple[Finding, ...]) -> list[str]:
    """Warnings that come before the numbers: too few inputs, one member, data not given, a score that cannot be used."""
    recommended = evaluation.recommended
    texts = [f"{one.name}: {one.remark[0].lower()}{one.remark[1:]}" for one in findings if one.remark]
    if evaluation.data.members == 1:
        texts.append(ONE_MEMBER)
    if evaluation.calibration is None:
        texts.append(NO_LABELS)
    if recommended.tied.get(DEFAULT):
        texts.append(_tied(recommended))
    if not evaluation.ood:
        score = recommended.score
        proven = score == DEFAULT and score not in recommended.tied
        praise = ", which was never far from the best one with accurate networks" if proven else ""
        texts.append(
            f"Without inputs of another kind no score could be chosen: {SCORES[score].label} is used{praise}. Pass such inputs "
            "with --ood."
        )
    return texts


def _tied(recommended: Recommendation) -> str:
    """Say that credal total cannot tell inputs apart, and which score takes its place."""
    blind = (
        f"{percent(recommended.tied[DEFAULT])} of the in-distribution inputs have the highest {SCORES[DEFAULT].label} there "
        f"can be, so that at {_rate(recommended.false_alarm_rate)} of false alarms it flags nothing"
    )
    if recommended.default in recommended.tied:
        return f"{blind}; nor do the scores that could take its place."
    return f"{blind}: {SCORES[recommended.default].label} takes its place. With few classes that is common."


def _prediction(evaluation: Evaluation) -> str | None:
    if evaluation.calibration is None or evaluation.point is None:
        return None
    credal, averaged = evaluation.calibration.credal, evaluation.calibration.averaged
    if evaluation.data.members == 1:
        return (
            f"On {evaluation.data.id.name} data the right class is named for {percent(averaged.accuracy)} of the inputs; the "
            f"calibration error (ECE) is {percent(averaged.ece, 2)}, the NLL {number(averaged.nll)}."
        )
    losses = {"ECE": credal.ece - averaged.ece, "NLL": credal.nll - averaged.nll}
    gains = {"accuracy": credal.accuracy - averaged.accuracy}
    gains |= {name: -loss if abs(loss) >= NEGLIGIBLE else 0.0 for name, loss in losses.items()}
    sides = {
        "the credal prediction is ahead in": [name for name, gain in gains.items() if gain > 0],
        "the averaged prediction is ahead in": [name for name, gain in gains.items() if gain < 0],
        "they are equal in": [name for name, gain in gains.items() if gain == 0],
    }
    ahead = _capital("; ".join(f"{side} {joined(names)}" for side, names in sides.items() if names))
    choice = "The averaged probability is not clearly better calibrated: use the intersection probability"
    if evaluation.point.method == "averaged":
        where = joined(one.metric.upper() for one in evaluation.point.clear)
        choice = f"The averaged probability is clearly better in {where}: use it"
    return (
        f"On {evaluation.data.id.name} data the intersection probability names the right class for "
        f"{percent(credal.accuracy)} of the inputs, the averaged probability for {percent(averaged.accuracy)}; the calibration "
        f"error (ECE) is {percent(credal.ece, 2)} against {percent(averaged.ece, 2)}, the NLL {number(credal.nll)} against "
        f"{number(averaged.nll)}. {ahead}. {choice} as the point prediction."
    )


def _recalibration(evaluation: Evaluation) -> str | None:
    """What one temperature for all members would change, and whether to use it."""
    if evaluation.settings.temperatures:
        low, high = min(evaluation.settings.temperatures), max(evaluation.settings.temperatures)
        between = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        return f"All of this is of recalibrated members, divided by the temperature {between}."
    if (effect := evaluation.recalibration) is None:
        return None
    nll, ece = effect.nll.of(effect.through), effect.ece.of(effect.through)
    point = "the intersection probability" if effect.through == "credal" else "the averaged probability"
    one = f"One temperature for all members, {effect.temperature:.3g} ({effect.low:.3g} to {effect.high:.3g}),"
    change = f"the NLL of {point} from {number(nll.b)} to {number(nll.a)} ({gain_text(nll, number)})"
    judged = f"judged on inputs that it was not fitted on ({effect.n:,}, cross-fitting)"
    if not effect.recommended:
        return f"Recalibration is not clearly worth it: {one[0].lower()}{one[1:]} changes {change}, {judged}."
    found = [
        f"{SCORES[name].label} {points(changed.difference)} on {data_set}"
        for data_set, of_score in list(effect.detection.items())[:MOST_NAMED]
        for name, changed in of_score.items()
        if name in ("total", "epistemic")
    ]
    auroc = f" In points of AUROC: {joined(found)}." if found else ""
    return (
        f"Recalibrate the members. {one} lowers {change}, and moves its ECE from {percent(ece.b, 2)} to {percent(ece.a, 2)}, "
        f"{judged}.{auroc} Fit it on labelled inputs with Recalibration.fit or credalens recalibrate, and pass it on: "
        "wrap(probs, recalibration=r), --recalibration r.json."
    )


def _rejection(evaluation: Evaluation) -> str | None:
    """Which score finds wrong predictions, and what it was worth where it was not chosen."""
    recommended, judged = evaluation.rejection, evaluation.judged
    if recommended is None or judged is None:
        return None
    if not recommended.held_out:
        right = int(judged.correct.sum())
        return (
            f"{right:,} of the predictions are right and {len(judged.correct) - right:,} wrong: too few to measure which score "
            f"finds the wrong ones, which needs {2 * LEAST} of each."
        )
    label = SCORES[recommended.score].label
    if share := recommended.tied.get(recommended.score):
        return (
            f"{percent(share)} of the right predictions have the highest {label} there can be, and other scores have the same "
            "fault: none tells which predictions to hand to a person."
        )
    (wrong,) = recommended.held_out
    caught = f"{percent(wrong.caught, 0)} of the wrong ones ({100 * wrong.low:.0f} to {100 * wrong.high:.0f})"
    return (
        f"To hand doubtful predictions to a person, sort by {label}: where {_rate(recommended.false_alarm_rate)} of the right "
        f"ones are handed over, so are {caught}."
    )


def alarm_sentence(evaluation: Evaluation, alarm: Alarm, /) -> str:
    """The effect of a threshold, in one sentence; of many OOD data sets it names the two ends."""
    score, data, base = SCORES[alarm.score], evaluation.data, evaluation.settings.base
    rate = alarm.threshold.false_alarm_rate
    in_unit = f" {unit(base)}" if score.unit == "information" else ""
    caught = f": that catches {_caught(evaluation, alarm)}" if alarm.caught else ""
    highest = highest_possible(alarm.score, classes=data.classes, members=data.members, base=base)
    share = share_at_top(evaluation.values[data.id.name][alarm.score], rate, highest)
    blind = (
        f" No input can lie above it: {percent(share)} of the in-distribution ones lie exactly on it." if share else ""
    )
    return (
        f"To raise the alarm for at most {_rate(rate)} of in-distribution inputs, flag {score.label} above "
        f"{number(alarm.threshold.value)}{in_unit}{caught}.{blind}"
    )


def _caught(evaluation: Evaluation, alarm: Alarm) -> str:
    recommended = evaluation.recommended
    measured = alarm.threshold.false_alarm_rate == recommended.false_alarm_rate
    expected = {one.name: f" ({100 * one.low:.0f} to {100 * one.high:.0f})" for one in recommended.held_out if measured}
    texts = {name: f"{percent(share, 0)} of {name}{expected.get(name, '')}" for name, share in alarm.caught.items()}
    if len(texts) <= MOST_NAMED:
        return joined(texts.values())
    least, most = (texts[pick(alarm.caught, key=lambda name: alarm.caught[name])] for pick in (min, max))
    return f"from {least} to {most}, of {len(texts)} OOD data sets"


def _members(evaluation: Evaluation) -> str | None:
    """Say how much the last members changed the AUROC of credal EU, a mean over the OOD data sets, and how many are enough."""
    needed = evaluation.members_needed
    if needed is None or needed.auroc is None:
        return None
    trends = [trend.mean for trend in needed.auroc.epistemic.credal.values()]
    sizes, curve = needed.sizes, [sum(values) / len(values) for values in zip(*trends, strict=True)]
    far = [place for place, value in enumerate(curve) if abs(value - curve[-1]) > CLOSE_ENOUGH]
    enough, gain = sizes[max(far, default=-1) + 1], curve[-1] - curve[-2]
    last = f"From {sizes[-2]} to {sizes[-1]} members the mean AUROC of epistemic uncertainty changes by {points(gain)} points."
    if enough == sizes[-1]:
        return f"{last} {'More members may well help.' if gain > 0 else 'It has not settled yet.'}"
    return (
        f"{last} With {enough} of {sizes[-1]} members it is within {100 * CLOSE_ENOUGH:g} points of the full ensemble."
    )
