"""Expected pairwise Kullback-Leibler divergence of the members, a measure of their disagreement."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from credalens.arrays import array_kind_of, namespace, not_negative
from credalens.checks.member_array import MemberArray
from credalens.core.batches import for_each_chunk

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
