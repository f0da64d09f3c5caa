"""Uncertainty of averaging: the decomposition that the credal one is compared with (paper, Eq. AU_BNN), and pairwise KL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from credalens.arrays import array_kind_of, namespace, not_negative, short_repr
from credalens.checks.doubtful_members import warn_many_members
from credalens.core.members import Members, read_members
from credalens.core.options import Options
from credalens.kernels import epistemic_part

SMALLEST: Final = 2.0**-126
"""The smallest normal float32: probabilities below it count as it, so that the divergence stays finite."""


@dataclass(frozen=True, eq=False)
class ClassicalUncertainty:
    """Entropy of the mean, mean of the entropies, and their difference (mutual information), each of shape (*batch).

    What ``classical_uncertainty`` returns, and the ``classical`` of a prediction.
    """

    total: Any
    aleatoric: Any
    epistemic: Any
    __repr__ = short_repr


def classical_uncertainty(
    probs: Any, *, member_axis: int = 0, base: float = 2, threads: int | None = None
) -> ClassicalUncertainty:
    r"""Total, aleatoric and epistemic uncertainty of the averaged prediction.

    .. math:: TU = H(\bar p), \quad AU = \frac1N \sum_n H(p_n), \quad EU = TU - AU \ge 0, \quad \bar p = \frac1N \sum_n p_n

    Total is the entropy of the mean, aleatoric the mean of the entropies. (N + 1) C logarithms per row.

    >>> result = classical_uncertainty([[1.0, 0.0], [0.0, 1.0]])
    >>> float(result.total), float(result.aleatoric), float(result.epistemic)
    (1.0, 0.0, 1.0)
    """
    options = Options(base=base, threads=threads)
    warn_many_members(probs, "probs")
    return classical_of(read_members(probs, member_axis=member_axis), options)


def classical_of(members: Members, options: Options, /) -> ClassicalUncertainty:
    """The decomposition of members whose shape has been checked."""
    return from_bits(*members.entropies(threads=options.threads), members.restore, options)


def from_bits(total: Any, aleatoric: Any, restore: Callable[[Any], Any], options: Options, /) -> ClassicalUncertainty:
    """Total and aleatoric uncertainty in bits to all three in the caller's unit and kind of array, none below zero."""
    parts = (total, aleatoric, epistemic_part(total, aleatoric))
    return ClassicalUncertainty(*(restore(not_negative(options.unit * part)) for part in parts))


def pairwise_kl_of(members: Members, options: Options, /) -> Any:
    """The mean divergence over all pairs of members, (*batch), in the caller's unit and kind of array."""
    return members.restore(options.unit * members.by_rows(pairwise_kl, threads=options.threads))


def pairwise_kl(p: Any, /) -> Any:
    r"""The mean divergence over all pairs of members (N, rows, classes) in bits, by N C logarithms per row.

    .. math:: \frac1{N^2} \sum_{n,m} KL(p_n \| p_m) = \sum_k \Big(\frac1N \sum_n p_{nk} \log p_{nk}
              - \bar p_k \frac1N \sum_n \log p_{nk}\Big)

    A covariance of p and log p for each class, which does not change when both are measured from the first member: then it
    is zero, and no rounding, where all members are the same.
    """
    xp = namespace(array_kind_of(p).library)
    logs = xp.log2(xp.where(p > SMALLEST, p, xp.zeros_like(p) + SMALLEST))
    p, logs = p - p[:1], logs - logs[:1]
    of_each, of_mean = xp.mean(p * logs, axis=0), xp.mean(p, axis=0) * xp.mean(logs, axis=0)
    return not_negative(xp.sum(of_each - of_mean, axis=-1))
