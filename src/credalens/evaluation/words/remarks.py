"""What a reader must know before believing the numbers: too few inputs, one member, data not given, a score upside down."""

from __future__ import annotations

from typing import Final

from credalens.evaluation.detection import Detection
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.results import Comparison, Interval
from credalens.evaluation.statistics.wins import LEAST

ONE_MEMBER: Final = (
    "There is a single member, and one member cannot disagree: epistemic uncertainty is zero everywhere. Train a few "
    "more with other seeds."
)
NO_LABELS: Final = "No labels were given, so that accuracy and calibration are unknown. Pass them with --labels."

NO_OOD: Final = (
    "Without inputs of another kind no score could be chosen: credal total is used, which was never far from the best one with "
    "accurate networks. Pass such inputs with --ood."
)


def remarks(evaluation: Evaluation, /) -> list[str]:
    """All that hold for this result, the ones about a data set with its name in front."""
    texts = [f"{one.name}: {text[0].lower()}{text[1:]}" for one in evaluation.ood if (text := about(one))]
    if evaluation.data.members == 1:
        texts.append(ONE_MEMBER)
    if evaluation.calibration is None:
        texts.append(NO_LABELS)
    if not evaluation.ood:
        texts.append(NO_OOD)
    return texts


def about(detection: Detection, /) -> str:
    """What to know about one OOD data set; nothing where there is nothing."""
    parts = (_below_chance(detection.epistemic.credal.auroc_interval), _few(detection.epistemic.difference.auroc))
    return " ".join(filter(None, parts))


def _below_chance(interval: Interval) -> str:
    if interval.high >= 0.5:
        return ""
    return "Worse than chance: the members are surer of these inputs than of those they were trained for."


def _few(comparison: Comparison) -> str:
    fewest, kind = min((comparison.n_ood, "OOD"), (comparison.n_id, "ID"))
    if fewest >= LEAST:
        return ""
    return (
        f"With only {fewest} {kind} inputs credal sets and averaging are not compared by their AUROC (that needs {LEAST}), and "
        "the intervals of AUPRC and FPR95 may well be wrong."
    )
