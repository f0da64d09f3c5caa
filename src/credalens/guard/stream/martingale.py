r"""Wealth of a player who bets against uniform p-values: it grows where p-values become small, and rarely elsewhere.

A bet :math:`f_e(p) = e p^{e-1}` integrates to one, hence wealth that is multiplied by it is a martingale while p-values are
independent and uniform. The player holds a mixture over bets e and over the input t at which to begin:

.. math:: M_n = W_n + \sum_{t \le n} w_t \frac1E \sum_e \prod_{i=t}^n f_e(p_i), \quad
          W_t = \frac1{1 + \ln(1 + t)}, \quad w_t = W_{t-1} - W_t

Without the mixture over beginnings all wealth is lost on a long stream without drift, and a late drift is noticed late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

BETS: Final = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)  # the exponents e, from strong drifts to weak ones


@dataclass(frozen=True, eq=False)
class Wealth:
    r"""The wealth after ``count`` p-values, in logarithms.

    :ivar growth: for each bet :math:`L = \sum_i \ln f_e(p_i)`.
    :ivar stakes: for each bet :math:`\ln \sum_t w_t e^{-L_{t-1}} / E`, so that growth + stakes is the wealth in it.
    """

    count: int
    growth: NDArray[np.float64]
    stakes: NDArray[np.float64]

    @classmethod
    def start(cls) -> Wealth:
        """Before any bet: the wealth is one."""
        return cls(0, np.zeros(len(BETS)), np.full(len(BETS), -np.inf))

    def after(self, p_values: NDArray[np.float64], /) -> tuple[Wealth, NDArray[np.float64]]:
        """The wealth after more p-values (n,) in (0, 1], and the logarithm of its value after each of them.

        Sums run in the order of the stream, hence p-values one at a time or in batches give the same bits.
        """
        e, t = np.array(BETS), self.count + np.arange(1.0, len(p_values) + 1)
        gains = np.log(e) + (e - 1) * np.log(p_values)[:, None]
        growth = np.add.accumulate(np.concatenate([self.growth[None], gains]))
        begun = _log_begun(t)[:, None] - np.log(len(BETS)) - growth[:-1]
        stakes = np.logaddexp.accumulate(np.concatenate([self.stakes[None], begun]))
        values = np.logaddexp(np.logaddexp.reduce(growth[1:] + stakes[1:], axis=1), _log_kept(t))
        return Wealth(self.count + len(p_values), growth[-1], stakes[-1]), values


def _log_kept(t: NDArray) -> NDArray:
    """The logarithm of W_t: what is kept for beginnings after t."""
    return -np.log1p(np.log1p(t))


def _log_begun(t: NDArray) -> NDArray:
    """The logarithm of w_t, written without a difference of almost equal numbers."""
    return np.log(np.log1p(1 / t)) + _log_kept(t - 1) + _log_kept(t)
