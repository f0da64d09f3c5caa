"""Highest and lowest Shannon entropy in an interval credal set: the highest exact, the lowest with a certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.intervals import read_intervals
from credalens.checks.options import check_base
from credalens.core.batches import for_each_chunk
from credalens.core.open_rows import warn_open_rows
from credalens.core.options import MAX_NODES, TOLERANCE, Options

OUTSIDE = 1e-9  # mass; sums of any number of classes round by less


def upper_entropy(
    lower: Any,
    upper: Any,
    *,
    base: float = 2,
    return_distribution: bool = False,
    threads: int | None = None,
) -> Any:
    r"""Total uncertainty: the highest entropy in the credal set (paper, Eq. NewCredalMeasure2), by water-filling.

    .. math:: \overline H = \max_{l \le p \le u,\ \sum p = 1} -\sum_k p_k \log p_k, \quad p_k = \mathrm{clip}(t, l_k, u_k)

    with the one level t at which the distribution sums to one. Exact; O(C) per row, about five passes.

    >>> round(float(upper_entropy([0.1, 0.1, 0.2], [0.7, 0.6, 0.7])), 4)
    1.585
    """
    bits_per_unit = 1.0 / math.log2(check_base(base))
    intervals = read_intervals(lower, upper)
    entropy, distribution = upper_entropy_bits(
        intervals.lower, intervals.upper, distribution=return_distribution, threads=threads
    )
    value = intervals.restore(entropy * bits_per_unit)
    return (value, intervals.restore(distribution)) if return_distribution else value


def lower_entropy(
    lower: Any,
    upper: Any,
    *,
    base: float = 2,
    return_distribution: bool = False,
    return_bounds: bool = False,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> Any:
    r"""Aleatoric uncertainty: the lowest entropy in the credal set (paper, Eq. CreUncertainty), certified.

    .. math:: \underline H = \min_{l \le p \le u,\ \sum p = 1} -\sum_k p_k \log p_k

    The objective is concave, so a local solver stops at whichever vertex it falls into; here the chord relaxation leaves
    few sets of classes that might be better, and these are tried (see ``kernels/lower/solve.py``). In general the problem is
    reported NP-hard: the search of a row ends when value and certified bound are within ``tolerance`` bits, or after
    ``max_nodes`` nodes, a node being the work of trying one set of classes, some 75 ns; a warning then says how many rows
    are open, and how far. The value is always attained by a distribution in the set; the bound is never above the optimum.

    ``return_distribution`` adds the minimiser; ``return_bounds`` adds the pair (certified lower bound, value).

    >>> value, (bound, _) = lower_entropy([0.1, 0.1, 0.2], [0.7, 0.6, 0.7], return_bounds=True)
    >>> round(float(value), 4), float(value - bound) < 1e-9
    (1.1568, True)
    """
    options = Options.checked(base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
    intervals = read_intervals(lower, upper)
    entropy, bound, distribution = lower_entropy_bits(intervals.lower, intervals.upper, options)
    warn_open_rows(
        entropy - bound, len(entropy), max_nodes=options.max_nodes, tolerance=options.tolerance, stacklevel=3
    )
    value = intervals.restore(entropy * options.unit)
    extras = []
    if return_distribution:
        extras.append(intervals.restore(distribution))
    if return_bounds:
        extras.append((intervals.restore(bound * options.unit), value))
    return (value, *extras) if extras else value


def shannon_entropy(p: NDArray, /) -> NDArray[np.float64]:
    """Shannon entropy in bits along the last axis, with 0 log 0 = 0, never below zero. For validated arrays."""
    from credalens.kernels.simd.phi import phi_into

    terms = np.empty(p.size)
    phi_into(np.ascontiguousarray(p, dtype=np.float64).reshape(-1), terms)
    return np.maximum(terms.reshape(p.shape).sum(axis=-1), 0.0)  # below: a probability that rounding puts above one


def upper_entropy_bits(
    lower: NDArray, upper: NDArray, *, distribution: bool, threads: int | None
) -> tuple[NDArray, NDArray]:
    """Upper entropy in bits of validated float64 rows; the maximiser if asked for, else an empty array."""
    from credalens.kernels.upper import upper_entropy_rows

    rows, classes = lower.shape
    entropy = np.empty(rows)
    p = np.empty((rows if distribution else 0, classes))

    def work(start: int, stop: int) -> None:
        low, high = lower[start:stop], upper[start:stop]
        upper_entropy_rows(low, high, entropy[start:stop], p[start:stop])

    for_each_chunk(work, rows, classes, threads=threads)
    return np.maximum(entropy, 0.0, out=entropy), p


def lower_entropy_bits(lower: NDArray, upper: NDArray, options: Options, /) -> tuple[NDArray, NDArray, NDArray]:
    """(lower entropy, certified bound, minimiser) in bits of validated float64 rows."""
    from credalens.kernels.lower.solve import lower_entropy_rows

    rows, classes = lower.shape
    entropy, bound, p = np.full(rows, np.inf), np.full(rows, -np.inf), np.empty((rows, classes))

    def work(start: int, stop: int) -> None:
        results = entropy[start:stop], bound[start:stop], p[start:stop]
        lower_entropy_rows(lower[start:stop], upper[start:stop], options.tolerance, options.max_nodes, *results)
        _check_inside(lower[start:stop], upper[start:stop], p[start:stop], start)

    for_each_chunk(work, rows, classes, threads=options.threads)
    return entropy, bound, p


def _check_inside(lower: NDArray, upper: NDArray, p: NDArray, start: int) -> None:
    """Refuse minimisers that lie outside their credal set: no input may lead there."""
    from credalens.kernels.lower.solve import first_outside

    row = int(first_outside(lower, upper, p, OUTSIDE))
    if row >= 0:
        raise ArithmeticError(
            f"the search for the lowest entropy ended outside the credal set in row {start + row}: its minimiser sums to "
            f"{p[row].sum():.6g}. This is a defect of credalens; please report it with the bounds of this row."
        )
