"""What averaging says: the decomposition that the credal one is compared with (paper, Eq. AU_BNN), and pairwise KL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import array_kind_of, namespace, not_negative
from credalens.checks.bad_rows import raise_bad_rows
from credalens.checks.doubtful_members import warn_many_members
from credalens.checks.members import MemberArray, read_members
from credalens.checks.options import check_base
from credalens.core.batches import for_each_chunk
from credalens.kernels.epistemic import epistemic_part
from credalens.short_repr import short_repr


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
    check_base(base)
    warn_many_members(probs, "probs")
    return classical_of(read_members(probs, member_axis=member_axis), base=base, threads=threads)


def classical_of(members: MemberArray, /, *, base: float, threads: int | None = None) -> ClassicalUncertainty:
    """The decomposition of member predictions whose shape has been checked; their rows are checked here."""
    from credalens.kernels.classical import classical_rows

    _, rows, classes = members.array.shape
    total, aleatoric = np.empty((2, rows))

    def work(start: int, stop: int) -> None:
        results = total[start:stop], aleatoric[start:stop]
        if not classical_rows(*members.rows(start, stop), members.tolerance, *results):
            raise_bad_rows(members)

    for_each_chunk(work, rows, classes, threads=threads)
    return from_bits(total, aleatoric, members.restore, base=base)


def from_bits(
    total: NDArray, aleatoric: NDArray, restore: Callable[[NDArray], Any], /, *, base: float
) -> ClassicalUncertainty:
    """Total and aleatoric uncertainty in bits to all three in the caller's unit and kind of array, none below zero."""
    scale = 1.0 / math.log2(base)
    parts = (total, aleatoric, epistemic_part(total, aleatoric))
    return ClassicalUncertainty(*(restore(np.maximum(scale * part, 0.0) + 0.0) for part in parts))


SMALLEST: Final = 2.0**-126
"""The smallest normal float32: probabilities below it count as it, so that the divergence stays finite."""


def pairwise_kl_of(members: MemberArray, /, *, base: float, threads: int | None = None) -> Any:
    """The divergence of accepted member predictions, (*batch), in the caller's unit and kind of array."""
    _, rows, classes = members.array.shape
    values = np.empty(rows)

    def work(start: int, stop: int) -> None:
        p = members.array[:, start:stop].astype(np.float64)
        values[start:stop] = pairwise_kl(p / p.sum(axis=-1, keepdims=True))

    for_each_chunk(work, rows, classes * len(members.array), threads=threads)
    return members.restore(values / math.log2(base))


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
