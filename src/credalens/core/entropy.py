"""Highest and lowest Shannon entropy in an interval credal set: the highest exact, the lowest with a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.intervals import read_intervals
from credalens.core.batches import for_each_chunk, in_chunks
from credalens.core.options import MAX_NODES, TOLERANCE, Options, warn_open_rows

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
    options, intervals = Options(base=base, threads=threads), read_intervals(lower, upper)
    bounds = intervals.lower, intervals.upper
    entropy, distribution = upper_entropy_bits(*bounds, options, distribution=return_distribution)
    value = intervals.restore(entropy * options.unit)
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
    options = Options(base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
    intervals = read_intervals(lower, upper)
    entropy, bound, distribution = lower_entropy_bits(intervals.lower, intervals.upper, options)
    warn_open_rows(entropy - bound, len(entropy), options, stacklevel=3)
    value = intervals.restore(entropy * options.unit)
    extras = [intervals.restore(distribution)] if return_distribution else []
    extras += [(intervals.restore(bound * options.unit), value)] if return_bounds else []
    return (value, *extras) if extras else value


def shannon_entropy(p: NDArray, /) -> NDArray[np.float64]:
    """Shannon entropy in bits along the last axis, with 0 log 0 = 0, never below zero. For validated arrays."""
    from credalens.kernels.simd.phi import entropy_of

    return np.maximum(entropy_of(p), 0.0)  # below: a probability that rounding puts above one


def upper_entropy_bits(
    lower: NDArray, upper: NDArray, options: Options, /, *, distribution: bool
) -> tuple[NDArray, NDArray]:
    """Upper entropy in bits of validated float64 rows; the maximiser if asked for, else an empty array."""
    from credalens.kernels.upper import upper_entropy_rows

    rows, classes = lower.shape
    entropy, p = np.empty(rows), np.empty((rows if distribution else 0, classes))
    in_chunks(upper_entropy_rows, lower, upper, entropy, p, classes=classes, threads=options.threads)
    return np.maximum(entropy, 0.0, out=entropy), p


def lower_entropy_bits(lower: NDArray, upper: NDArray, options: Options, /) -> tuple[NDArray, NDArray, NDArray]:
    """(lower entropy, certified bound, minimiser) in bits of validated float64 rows."""
    from credalens.kernels.lower.solve import first_outside, lower_entropy_rows

    rows, classes = lower.shape
    entropy, bound, p = np.full(rows, np.inf), np.full(rows, -np.inf), np.empty((rows, classes))

    def work(start: int, stop: int) -> None:
        low, high, minimiser = lower[start:stop], upper[start:stop], p[start:stop]
        results = entropy[start:stop], bound[start:stop], minimiser
        lower_entropy_rows(low, high, options.tolerance, options.max_nodes, *results)
        if (row := int(first_outside(low, high, minimiser, OUTSIDE))) >= 0:  # no input may lead there
            raise ArithmeticError(
                f"the search for the lowest entropy ended outside the credal set in row {start + row}: its minimiser sums to "
                f"{minimiser[row].sum():.6g}. This is a defect of credalens; please report it with the bounds of this row."
            )

    for_each_chunk(work, rows, classes, threads=options.threads)
    return entropy, bound, p
