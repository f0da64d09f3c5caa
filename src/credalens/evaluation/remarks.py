"""What a reader must know before believing the numbers: too few inputs, one member, data not given, a score upside down."""

from __future__ import annotations

from typing import Final

from credalens.core.scores import DEFAULT, SCORES
from credalens.evaluation.detection import Detection
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.counts import LEAST
from credalens.evaluation.which_score import Recommendation
from credalens.evaluation.words import SPACE, percent

ONE_MEMBER: Final = (
    "There is a single member, and one member cannot disagree: epistemic uncertainty is zero everywhere. Train a few "
    "more with other seeds."
)
NO_LABELS: Final = "No labels were given, so that accuracy and calibration are unknown. Pass them with --labels."


def remarks(evaluation: Evaluation, /) -> list[str]:
    """All that hold for this result, the ones about a data set with its name in front."""
    texts = [f"{one.name}: {text[0].lower()}{text[1:]}" for one in evaluation.ood if (text := about(one))]
    if evaluation.data.members == 1:
        texts.append(ONE_MEMBER)
    if evaluation.calibration is None:
        texts.append(NO_LABELS)
    if evaluation.recommended.tied.get(DEFAULT):
        texts.append(_tied(evaluation.recommended))
    if not evaluation.ood:
        texts.append(_no_ood(evaluation.recommended))
    return texts


def _tied(recommended: Recommendation) -> str:
    """That credal total cannot tell inputs apart, and what is used instead."""
    rate = f"{100 * recommended.false_alarm_rate:g}{SPACE}%"
    share, label = percent(recommended.tied[DEFAULT]), SCORES[DEFAULT].label
    blind = (
        f"{share} of the in-distribution inputs have the highest {label} there can be, so that at {rate} of false alarms it "
        "flags nothing"
    )
    if recommended.default in recommended.tied:
        return f"{blind}, and so it is with the scores that could take its place."
    return f"{blind}: {SCORES[recommended.default].label} takes its place. With few classes that is common."


def _no_ood(recommended: Recommendation) -> str:
    score = recommended.score
    proven = score == DEFAULT and score not in recommended.tied
    praise = ", which was never far from the best one with accurate networks" if proven else ""
    return (
        f"Without inputs of another kind no score could be chosen: {SCORES[score].label} is used{praise}. Pass such inputs "
        "with --ood."
    )


def about(detection: Detection, /) -> str:
    """What to know about one OOD data set; nothing where there is nothing."""
    parts = (_below_chance(detection.epistemic.credal.auroc_interval), _few(detection.epistemic.difference.auroc))
    return " ".join(filter(None, parts))


def _below_chance(interval: Interval) -> str:
    if interval.high >= 0.5:
        return ""
    return (
        "Credal epistemic uncertainty is worse than chance here: it is lower for these inputs than for those that the members "
        "were trained for."
    )


def _few(comparison: Comparison) -> str:
    fewest, kind = min((comparison.n_ood, "OOD"), (comparison.n_id, "ID"))
    if fewest >= LEAST:
        return ""
    return (
        f"With only {fewest} {kind} inputs credal sets and averaging are not compared by their AUROC (that needs {LEAST}), and "
        "the intervals of AUPRC and FPR95 may well be wrong."
    )
