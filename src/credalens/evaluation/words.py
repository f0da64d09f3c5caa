"""What measures, methods and numbers are called, how they are written, and what each means in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

SHORT: Final = {"epistemic": "EU", "total": "TU", "aleatoric": "AU"}
METHOD_NAMES: Final = {"credal": "credal", "classical": "averaging"}
RULE_NAMES: Final = {
    "interval_dominance": "interval dominance",
    "maximality": "maximality",
    "e_admissibility": "E-admissibility",
}
SIGNS: Final = {"better": "▲", "worse": "▼", "undecided": "■"}
GROUPS: Final = {
    "uncertain": "most uncertain",
    "contradictory": "most contradictory",
    "missed": "OOD, with least doubt",
    "wrong": "wrong, with least doubt",
}
GROUP_MEANINGS: Final = {
    "uncertain": "highest total uncertainty",
    "contradictory": "the members put most of their probability on different classes",
    "missed": "out of distribution, with the lowest epistemic uncertainty: a threshold finds them last",
    "wrong": "the wrong predictions of lowest total uncertainty",
}


def line_name(method: str, measure: str, /) -> str:
    """One uncertainty of one method in a legend.

    >>> line_name("classical", "epistemic")
    'EU, averaging'
    """
    return f"{SHORT[measure]}, {METHOD_NAMES[method]}"


MINUS, SPACE = "\u2212", "\u00a0"  # the space keeps a number and its unit on one line


def percent(value: float, digits: int = 1, /) -> str:
    """A fraction as a percentage; a dash for NaN.

    >>> percent(0.9387).split(), percent(math.nan)
    (['93.9', '%'], '–')
    """
    return "–" if math.isnan(value) else f"{100 * value:z.{digits}f}{SPACE}%".replace("-", MINUS)


def points(value: float, /) -> str:
    """A difference of two fractions, with its sign, in percentage points.

    >>> points(-0.0105), points(-1e-9)
    ('−1.05', '+0.00')
    """
    return f"{100 * value:+z.2f}".replace("-", MINUS)


def number(value: float, digits: int = 3, /) -> str:
    """A plain number with a typographic minus; a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:z.{digits}f}".replace("-", MINUS)


def unit(base: float, /) -> str:
    """What uncertainty is measured in."""
    return {2.0: "bits", math.e: "nats"}.get(base, f"units of log {base:g}")


def joined(texts: Iterable[str], /) -> str:
    """An enumeration.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *rest, last = texts
    return f"{', '.join(rest)} and {last}" if rest else last


GLOSSARY: Final[dict[str, str]] = {
    "member": "One of the networks (or posterior samples, or dropout passes) whose predictions are combined.",
    "in distribution (ID)": "Inputs of the kind that the members were trained for.",
    "out of distribution (OOD)": "Inputs of another kind, on which a prediction should not be trusted.",
    "averaging": "The usual way: the mean of the members' probabilities.",
    "credal set": (
        "Every probability distribution that stays, class by class, between the lowest and the highest value that any "
        "member gives."
    ),
    "intersection probability": (
        "The one distribution in the credal set that lies at the same relative height inside every interval; the point "
        "prediction of the credal set."
    ),
    "total uncertainty (TU)": (
        "How undecided the prediction can be: the entropy of the average, or the highest entropy in the credal set."
    ),
    "aleatoric uncertainty (AU)": (
        "Doubt that lies in the input itself: the members' mean entropy, or the lowest entropy in the credal set."
    ),
    "epistemic uncertainty (EU)": (
        "Doubt for lack of knowledge, total minus aleatoric: it is zero where all members agree and grows as they differ."
    ),
    "AUROC": (
        "The chance that an OOD input has a higher uncertainty than an ID input, both drawn at random; 50 % is guessing, "
        "100 % perfect."
    ),
    "AUPRC": (
        "Average share of real OOD inputs among those flagged, over all thresholds; guessing gives the share of OOD inputs "
        "in the data."
    ),
    "FPR95": "Share of ID inputs flagged by mistake when the threshold catches 95 % of the OOD inputs; lower is better.",
    "interval (95 %)": (
        "The range that would hold the true value in 95 of 100 repetitions with new data; a difference whose interval "
        "leaves out zero is more than luck."
    ),
    "accuracy": "Share of inputs whose most probable class is the right one.",
    "ECE": (
        "Expected calibration error: how far confidence and accuracy are apart; 0 means that 80 % confident predictions are "
        "right in 8 cases of 10."
    ),
    "NLL": "Negative log-likelihood in nats: the mean surprise at the true class; lower is better.",
    "Brier score": "Mean squared distance between the predicted probabilities and the truth, from 0 to 2; lower is better.",
    "coverage": "Share of inputs whose set of possible classes holds the true one.",
    "set size": "Mean number of classes that remain possible.",
    "single class": "Share of inputs for which exactly one class remains possible.",
    "accuracy if single": "Accuracy on the inputs for which exactly one class remains possible.",
    "u65": "Utility of set-valued predictions that values a correct set of two classes at 0.65 of a correct single class.",
    "u80": "The same for users who welcome caution: a correct set of two classes is worth 0.80.",
    "mean accuracy on the inputs kept": (
        "The mean over all shares of inputs turned away, the most uncertain first: the area under the curve; higher means "
        "that the uncertainty knows where the mistakes are."
    ),
    "AURC": (
        "Share of wrong predictions among the inputs kept, on average over all shares kept, the least uncertain first; lower "
        "means that the uncertainty knows where the mistakes are."
    ),
    "E-AURC": "AURC less the lowest that is possible with as many mistakes: all of them turned away first; lower is better.",
    "AUGRC": (
        "Share of all inputs that are kept and wrong, on average over all shares kept, the least uncertain first; lower means "
        "that the uncertainty knows where the mistakes are."
    ),
    "dispute": "Share of probability on which the members do not agree: one minus the sum of the lowest values.",
    "threshold": "The uncertainty above which an input is flagged as OOD.",
    "false-alarm rate": "Share of ID inputs that are flagged.",
}
