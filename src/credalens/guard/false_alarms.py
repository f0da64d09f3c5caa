"""How unlike the calibration data an input is: conformal p-values, and the threshold that a false-alarm rate allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from credalens.guard.quantile import conformal_quantile, least_samples


def p_values(ordered: NDArray, scores: NDArray, /) -> NDArray[np.float64]:
    r"""The p-value of being like the calibration data, whose scores are ``ordered``, in the shape of ``scores``.

    .. math:: p = (1 + |\{i : s_i \ge s\}|) / (n + 1)

    For an input exchangeable with the calibration data :math:`P(p \le r) \le r` at every r, ties included.

    >>> p_values(np.array([1.0, 2.0, 2.0]), np.array([0.0, 2.0, 3.0]))
    array([1.  , 0.75, 0.25])
    """
    flat = scores.ravel()
    order = np.argsort(flat)  # searching in order is several times faster
    above = np.empty(flat.size)
    above[order] = np.searchsorted(ordered, flat[order], side="left")
    return (1 + len(ordered) - above.reshape(scores.shape)) / (len(ordered) + 1)


def alarm_threshold(ordered: NDArray, rate: float, /) -> float:
    """The calibration score t such that s > t exactly where the p-value of s is at most ``rate``."""
    if len(ordered) < (least := least_samples(rate)):
        raise ValueError(
            f"{len(ordered)} samples cannot promise a false-alarm rate of {rate:g} on new data; at least {least} are needed."
        )
    return conformal_quantile(ordered, rate)
