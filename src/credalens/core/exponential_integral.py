r"""The exponential integral E_1 and its entire part Ein, to double precision for positive arguments."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

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
    series, fraction = _ein_by_series(np.minimum(s, SERIES_UP_TO)), _e1_by_fraction(np.maximum(s, SERIES_UP_TO))
    difference = np.log(s) + np.euler_gamma
    small = s <= SERIES_UP_TO
    return np.where(small, series - difference, fraction), np.where(small, series, fraction + difference)


def _ein_by_series(s: NDArray) -> NDArray:
    r"""Ein(s) = sum over k >= 1 of (-1)^(k+1) s^k / (k k!), for s up to 1."""
    total = np.zeros_like(s)
    for k in range(SERIES_TERMS, 0, -1):
        total = s * ((-1) ** (k + 1) / (k * math.factorial(k)) + total)
    return total


def _e1_by_fraction(s: NDArray) -> NDArray:
    r"""E_1(s) = e^(-s) / (s + 1 - 1 / (s + 3 - 4 / (s + 5 - 9 / ...))), for s from 1 on."""
    tail = np.zeros_like(s)
    for n in range(FRACTION_TERMS, 0, -1):
        tail = n**2 / (s + (2 * n + 1) - tail)
    return np.exp(-s) / (s + 1 - tail)
