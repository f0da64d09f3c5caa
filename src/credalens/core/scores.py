r"""The catalogue of uncertainty scores: each under one name, used by Python, files, evaluation, report and guard alike.

A higher score means a less certain prediction. l, u are the bounds, p* is the intersection probability, \bar p the mean
of the N members p_n; H is the entropy in units of the prediction's base.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from credalens.arrays import array_kind_of, astype, count_true, largest, namespace, not_negative
from credalens.checks.intervals import computed_intervals, trusted_intervals
from credalens.core.imprecision import imprecision_of


@dataclass(frozen=True)
class Score:
    """One uncertainty score.

    :ivar label: what tables and charts call it.
    :ivar formula: in LaTeX.
    :ivar unit: "information" is measured in bits unless another base was asked for.
    :ivar top: the largest value it can have, in LaTeX.
    :ivar cost: what it costs in addition to ``wrap``, with C classes and N members.
    :ivar averaged: whether it is of averaged predictions; the others are of credal sets.
    :ivar needs_members: whether a prediction made from a summary of its members has none.
    :ivar disagreement: whether only rounding keeps it from zero where members agree; of a single one it is read as zero.
    :ivar changed_by_half: whether half precision changes it by far more than it does a probability: by what it rounds to
        zero, or makes a tie.
    :ivar compute: from a ``CredalPrediction`` to an array (*batch).
    """

    name: str
    label: str
    formula: str
    unit: Literal["information", "probability", "classes"]
    top: str
    cost: str
    compute: Callable[[Any], Any]
    averaged: bool = False
    needs_members: bool = False
    disagreement: bool = False
    changed_by_half: bool = False


def _entropy(p: Any, base: float) -> Any:
    kind = array_kind_of(p)
    xp, q = namespace(kind.library), astype(p, "float64")
    terms = q * xp.log2(xp.where(q > 0, q, xp.ones_like(q)))
    return astype(not_negative(-xp.sum(terms, axis=-1)) / math.log2(base), kind.result_dtype.name)


def _imprecision(prediction: Any) -> Any:
    read = computed_intervals if prediction.n_members == 2 else trusted_intervals  # a repaired sum widens intervals
    intervals = read(prediction.lower, prediction.upper)
    return imprecision_of(intervals, members=prediction.n_members, stacklevel=4)[0]


BITS: Final = "information"
LOG, FREE, LOGS, AVERAGED_LOGS = r"\log C", "nothing", "C logarithms", "(N + 1) C logarithms"
LOG_EITHER, HIGHEST_DOUBT, UNBOUNDED = r"\log \min(C, N)", "1 - 1/C", r"\infty"
HARTLEY_COST = "2^C sums up to 16 classes, beyond that milliseconds per row"
IMPRECISION_COST = "a sort of C widths, of two members a sum; in rare rows a search of some milliseconds"
_CATALOGUE: Final = (
    Score("total", "credal total", r"\max_{l \le p \le u} H(p)", BITS, LOG, FREE, lambda x: x.total),
    Score(
        "epistemic", "credal epistemic", r"\text{total} - \text{aleatoric}", BITS, LOG, FREE, lambda x: x.epistemic,
        disagreement=True,
    ),
    Score("aleatoric", "credal aleatoric", r"\min_{l \le p \le u} H(p)", BITS, LOG, FREE, lambda x: x.aleatoric),
    Score(
        "hartley", "generalized Hartley", r"\sum_B m(B) \log \lvert B \rvert", BITS, LOG, HARTLEY_COST,
        lambda x: x.hartley,
    ),
    Score(
        "imprecision", "maximum mean imprecision", r"\max_A \overline P(A) - \underline P(A)", "probability", "1",
        IMPRECISION_COST, _imprecision,
    ),
    Score("entropy", "entropy of p*", "H(p^*)", BITS, LOG, LOGS, lambda x: _entropy(x.probability, x.base)),
    Score(
        "least_confidence", "1 - max p*", r"1 - \max_k p^*_k", "probability", HIGHEST_DOUBT, "C comparisons",
        lambda x: 1 - largest(x.probability),
    ),
    Score(
        "set_size", "size of the maximal set", r"\lvert \{k : k \text{ is maximal}\} \rvert", "classes", "C",
        "one decision", lambda x: count_true(x.predict_set("maximality")), changed_by_half=True,
    ),
    Score(
        "mean_total", "entropy of the mean", r"H(\bar p)", BITS, LOG, AVERAGED_LOGS, lambda x: x.classical.total,
        averaged=True,
    ),
    Score(
        "mean_epistemic", "mutual information", r"H(\bar p) - \frac1N \sum_n H(p_n)", BITS, LOG_EITHER, AVERAGED_LOGS,
        lambda x: x.classical.epistemic, averaged=True, disagreement=True,
    ),
    Score(
        "mean_aleatoric", "mean entropy", r"\frac1N \sum_n H(p_n)", BITS, LOG, AVERAGED_LOGS,
        lambda x: x.classical.aleatoric, averaged=True,
    ),
    Score(
        "mean_least_confidence", "1 - max of the mean", r"1 - \max_k \bar p_k", "probability", HIGHEST_DOUBT,
        "C comparisons", lambda x: 1 - largest(x.mean), averaged=True,
    ),
    Score(
        "mean_pairwise_kl", "expected pairwise KL", r"\frac1{N^2} \sum_{n, m} KL(p_n, p_m)", BITS, UNBOUNDED,
        "N C logarithms", lambda x: x._pairwise_kl, averaged=True, needs_members=True, disagreement=True,
        changed_by_half=True,
    ),
)  # fmt: skip
SCORES: Final = {score.name: score for score in _CATALOGUE}
DEFAULT: Final = "total"
FEW_CLASSES: Final = 6
"""With fewer, the default is a score of the mean: measured on real tables (results/few_classes.json)."""
FALLBACK_SCORES: Final = ("mean_total", "mean_least_confidence")
"""Scores that take the place of the default where many inputs have its highest value; they have theirs less often."""
_TOPS: Final[dict[str, Callable[[int, int, float], float]]] = {
    LOG: lambda classes, members, base: math.log(classes, base),
    LOG_EITHER: lambda classes, members, base: math.log(min(classes, members), base),
    HIGHEST_DOUBT: lambda classes, members, base: 1 - 1 / classes,
    "1": lambda classes, members, base: 1.0,
    "C": lambda classes, members, base: float(classes),
    UNBOUNDED: lambda classes, members, base: math.inf,
}


def default_score(classes: int, /, *, errors: bool = False, members: bool = True) -> str:
    """The score to use without data to choose it on, by the number of classes, which is known before any data are seen.

    With few classes credal total is at its maximum for many inputs, and finds errors less well than the averaged prediction.
    ``errors`` says that finding wrong predictions is all that matters, and not inputs of another kind. Intervals without
    ``members`` have the same of the intersection probability.

    >>> default_score(2), default_score(2, errors=True), default_score(10)
    ('mean_total', 'mean_least_confidence', 'total')
    """
    if classes >= FEW_CLASSES:
        return DEFAULT
    if members:
        return "mean_least_confidence" if errors else "mean_total"
    return "least_confidence" if errors else "entropy"


def highest_possible(name: str, /, *, classes: int, members: int, base: float) -> float:
    """The largest value that a score of the catalogue can have.

    >>> highest_possible("total", classes=4, members=5, base=2), highest_possible("set_size", classes=4, members=5, base=2)
    (2.0, 4.0)
    """
    return _TOPS[SCORES[name].top](classes, members, base)
