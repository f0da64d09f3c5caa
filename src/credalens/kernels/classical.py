"""Entropy of the mean and mean of the entropies, in one pass over the members."""

from __future__ import annotations

from typing import Any

import numpy as np

from credalens.kernels.bounds import scale_members
from credalens.kernels.rows import last_vector
from credalens.kernels.simd.jit import inlined, kernel
from credalens.kernels.simd.phi import phi
from credalens.kernels.simd.vectors import WIDTH, bits_of, everywhere, fetch, load, load_some, smaller, sum_of


@inlined
def _add_member(p, total, entropies, least):
    return total + p, entropies + phi(p), smaller(p, least)


@kernel
def classical_within(members, start, stop, tolerance, total, aleatoric, scales):
    """As `classical_rows`, with a number for every member."""
    number, _, classes = members.shape
    last, lanes = last_vector(classes)
    share = 1.0 / number
    for i in range(start, stop):
        if not scale_members(members, i, last, lanes, tolerance, scales):
            return False
        of_mean, entropies, least = everywhere(0.0), everywhere(0.0), everywhere(0.0)
        mean = everywhere(0.0)
        for n in range(number):
            p = load_some(members[n, i], last, lanes) * scales[n]
            mean, entropies, least = _add_member(p, mean, entropies, least)
        of_mean = of_mean + phi(mean * share)
        for k in range(0, last, WIDTH):
            mean = everywhere(0.0)
            for n in range(number):
                p = load(members[n, i], k) * scales[n]
                fetch(members[n, i], k + classes)
                mean, entropies, least = _add_member(p, mean, entropies, least)
            of_mean = of_mean + phi(mean * share)
        if bits_of(least < 0.0) != 0:
            return False
        total[i - start], aleatoric[i - start] = sum_of(of_mean), sum_of(entropies) * share
    return True


def classical_rows(members: Any, start: int, stop: int, tolerance: float, total: Any, aleatoric: Any) -> bool:
    """Entropy of the mean and mean entropy of rows start..stop in bits; False if a row is not a distribution."""
    return bool(classical_within(members, start, stop, tolerance, total, aleatoric, np.empty(len(members))))
