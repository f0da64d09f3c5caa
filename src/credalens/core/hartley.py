"""The generalized Hartley measure of interval credal sets: non-specificity, a second measure of epistemic uncertainty.

Its weights need the exponential integral, to double precision for positive arguments.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.intervals import IntervalArray, read_intervals
from credalens.checks.options import check_tolerance
from credalens.core.batches import in_chunks
from credalens.core.options import Options

SERIES_UP_TO = 1.0  # above, the terms of the series cancel in E_1
SERIES_TERMS = 18  # of which the last is below 1e-16 of the sum
FRACTION_TERMS = 100  # at 1, where it converges slowest: its error falls as exp(-4 sqrt(terms * s))


def exponential_integrals(s: NDArray, /) -> tuple[NDArray, NDArray]:
    r"""(E_1(s), Ein(s)) for s > 0, both without cancellation.

    .. math:: E_1(s) = \int_s^\infty \frac{e^{-t}}{t} dt, \qquad Ein(s) = \int_0^s \frac{1 - e^{-t}}{t} dt
              = E_1(s) + \ln s + \gamma

    >>> exponential_integrals(np.array([1.0]))
    (array([0.21938393]), array([0.7965996]))
    """
    small, large, difference = np.minimum(s, SERIES_UP_TO), np.maximum(s, SERIES_UP_TO), np.log(s) + np.euler_gamma
    series = np.zeros_like(s)  # Ein(s) = sum over k >= 1 of (-1)^(k+1) s^k / (k k!), for s up to 1
    for k in range(SERIES_TERMS, 0, -1):
        series = small * ((-1) ** (k + 1) / (k * math.factorial(k)) + series)
    tail = np.zeros_like(s)  # E_1(s) = e^(-s) / (s + 1 - 1 / (s + 3 - 4 / (s + 5 - 9 / ...))), for s from 1 on
    for n in range(FRACTION_TERMS, 0, -1):
        tail = n**2 / (large + (2 * n + 1) - tail)
    fraction, is_small = np.exp(-large) / (large + 1 - tail), s <= SERIES_UP_TO
    return np.where(is_small, series - difference, fraction), np.where(is_small, series, fraction + difference)


EXACT_CLASSES = 16
MOST_CELLS = 1 << 15
TOLERANCE = 1e-3  # bits


def generalized_hartley(
    lower: Any,
    upper: Any,
    *,
    base: float = 2,
    return_bounds: bool = False,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> Any:
    r"""Generalized Hartley measure of the credal set (paper, App. GH), in polynomial time.

    .. math:: GH = \sum_B m(B) \log |B| = \log C - \sum_{\emptyset \ne A \ne Y} |c_{|A|}|\, \nu(A), \quad
              \nu(A) = \max(l(A), 1 - u(A^c))

    with m the Moebius inverse of the lower probability nu. Zero for a single distribution, log C for the whole simplex.
    Up to 16 classes every subset is summed and the result is exact; beyond that it is the middle of a certified bracket, at
    most ``tolerance`` bits wide where the work budget allows. ``return_bounds`` adds the bracket
    as a pair (low, high).

    The budget, 256 expectations on grids of at most 32768 cells, is ample for the default. A smaller ``tolerance`` may not be
    reached: brackets rarely get below 1e-5 bits, and stayed at 1.6e-4 for the worst sets seen. They hold the value all the
    same; as with the budget of ``lower_entropy``, ``return_bounds`` says how wide they are.

    >>> round(float(generalized_hartley([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])), 6)
    2.0
    """
    options, tolerance = Options(base=base, threads=threads), check_tolerance(tolerance)
    value, low, high = hartley_of(read_intervals(lower, upper), options, tolerance=tolerance)
    return (value, (low, high)) if return_bounds else value


def hartley_of(intervals: IntervalArray, options: Options, /, *, tolerance: float = TOLERANCE) -> tuple[Any, Any, Any]:
    """The measure and its bracket (value, low, high) of validated intervals."""
    from credalens.kernels.hartley import hartley_exact_rows

    rows, classes = intervals.lower.shape
    low, high = np.empty(rows), np.empty(rows)
    is_exact = classes <= EXACT_CLASSES

    def work(lower: NDArray, upper: NDArray, low: NDArray, high: NDArray) -> None:
        if is_exact:
            weights = subset_weights(classes)
            hartley_exact_rows(lower, upper, weights, low, *np.empty((2, weights.size)))
            high[:] = low
        else:
            low[:], high[:] = certified_bits(lower, upper, tolerance)

    bounds = intervals.lower, intervals.upper
    in_chunks(work, *bounds, low, high, classes=classes if is_exact else 1 << 14, threads=options.threads)
    value, low, high = (intervals.restore(options.unit * x) for x in (0.5 * (low + high), low, high))
    return value, low, high


def certified_bits(lower: NDArray, upper: NDArray, tolerance: float, /) -> tuple[NDArray, NDArray]:
    """(low, high) in bits of validated rows, for any number of classes."""
    from credalens.kernels.hartley import MOST_NODES, hartley_certified_rows

    rows, classes = lower.shape
    widths = np.sort(upper - lower, axis=-1)
    room, rest = upper.sum(axis=-1) - 1.0, 1.0 - lower.sum(axis=-1)
    margin = math.isqrt(9 * classes) + 8  # three standard deviations of the grid's noise, in cells, and some
    grid, brackets = np.empty((2, MOST_CELLS + margin)), np.empty((2, MOST_NODES + 1))
    at, (low, high) = np.empty(MOST_NODES + 1, np.int64), np.empty((2, rows))
    hartley_certified_rows(widths, room, rest, tolerance, MOST_CELLS, *quadrature(), grid, brackets, at, low, high)
    return low, high


@cache
def cardinality_weights(classes: int) -> NDArray:
    r"""|c_a| for a = 0..C: the weight in bits of the lower probability of a set of a classes (0 for a = 0 and a = C).

    .. math:: c_a = \sum_{j=0}^{C-a} (-1)^j \binom{C-a}{j} \log_2 (a + j) \le 0 \quad (0 < a < C)

    The sum cancels, so it is done in sixty decimal digits.
    """
    weights = np.zeros(classes + 1)
    with localcontext() as context:
        context.prec = 60
        logs = [Decimal(0)] + [Decimal(n).ln() / Decimal(2).ln() for n in range(1, classes + 1)]
        for a in range(1, classes):
            terms = ((-1) ** j * math.comb(classes - a, j) * logs[a + j] for j in range(classes - a + 1))
            weights[a] = -float(sum(terms, Decimal(0)))
    return weights


@cache
def subset_weights(classes: int) -> NDArray:
    """The weight of every subset, indexed by its bit mask."""
    sizes = np.zeros(1, dtype=np.int64)
    for _ in range(classes):
        sizes = np.concatenate([sizes, sizes + 1])
    return cardinality_weights(classes)[sizes]


@cache
def quadrature() -> tuple[NDArray, NDArray, NDArray]:
    r"""Nodes u_j and two tail integrals there, with s = -ln u from 10 to 1e-6 on a logarithmic scale.

    .. math:: \int_{u_j}^1 \frac{1-u}{u(-\ln u)} du = Ein(s), \qquad \int_0^{u_j} \frac{du}{-\ln u} = E_1(s)
    """
    s = np.geomspace(10.0, 1e-6, 2**13 + 1)
    below, above = exponential_integrals(s)
    return np.exp(-s), above, below
