r"""The inverse temperature at which a prediction of several members has the lowest negative log-likelihood.

Members are p_n(b) proportional to p_n^b, softmax(b z_n) for logits. Through the mean the loss of a row with class y is
-log (1/N) sum_n p_ny(b); through the intersection probability it is -log p*_y of the bounds of all p_n(b). The loss of a single
member is convex in b, the others need not be, and the second has kinks where another member attains a bound. So a grid
over all temperatures finds the valleys, and Brent's method the bottom of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from credalens.core.batches import for_each_chunk

LOG_RANGE: Final = 3.0
"""Temperatures from exp(-3) to exp(3) are searched."""
FEWEST, MOST = 49, 1201  # points of the grid: losses of few rows have narrow valleys, and cost little
FEW_VALUES: Final = 1 << 20  # probabilities: with more, an even share of the rows finds the valleys
VALLEYS: Final = 3  # as deep as the deepest ones, which are followed to the bottom
CLOSE: Final = 1e-7  # in log b
GOLDEN: Final = 0.5 * (3 - 5**0.5)
STEP: Final = 0.1  # in log b, of differences that stand for derivatives
NORMAL_95: Final = 1.959963984540054


@dataclass(frozen=True, eq=False)
class LabelledMembers:
    """Logarithms of members' probabilities (members, rows, classes), at most 0 in each row, with labels and weights (rows,).

    :ivar through: "credal" for the intersection probability, "averaged" for the mean.
    """

    logs: NDArray[np.float64]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    through: str
    threads: int | None = None

    def losses(self, log_b: float, /) -> NDArray[np.float64]:
        """The negative log-likelihood of each row, in nats."""
        members, rows, classes = self.logs.shape
        losses = np.empty(rows)
        of_labels = _intersection_of_labels if self.through == "credal" else _mean_of_labels

        def work(start: int, stop: int) -> None:
            z = np.exp(self.logs[:, start:stop] * np.exp(log_b))
            z /= z.sum(axis=-1, keepdims=True)
            with np.errstate(divide="ignore"):  # zero, where members that are nearly one-hot agree
                losses[start:stop] = -np.log(of_labels(z, np.arange(stop - start), self.labels[start:stop]))

        for_each_chunk(work, rows, members * classes, threads=self.threads)
        return losses

    def loss(self, log_b: float, /) -> float:
        """The weighted mean of the losses."""
        return float(self.weights @ self.losses(log_b) / self.weights.sum())

    def members(self) -> list[LabelledMembers]:
        """Each member alone, with the rows in which it can give the true class."""
        rows = np.arange(len(self.labels))
        alone = [replace(self, logs=self.logs[n : n + 1], through="averaged") for n in range(len(self.logs))]
        return [each.rows(each.logs[0, rows, self.labels] > -np.inf) for each in alone]

    def rows(self, chosen: NDArray | slice, /) -> LabelledMembers:
        """The same for some rows."""
        return replace(self, logs=self.logs[:, chosen], labels=self.labels[chosen], weights=self.weights[chosen])


def _mean_of_labels(p: NDArray, rows: NDArray, labels: NDArray) -> NDArray:
    return p[:, rows, labels].mean(axis=0)


def _intersection_of_labels(p: NDArray, rows: NDArray, labels: NDArray) -> NDArray:
    low, high = p.min(axis=0), p.max(axis=0)
    width = (high - low).sum(axis=-1)
    alpha = np.divide(1 - low.sum(axis=-1), width, out=np.zeros_like(width), where=width > 1e-15)
    at_low = low[rows, labels]
    return at_low + alpha.clip(0, 1) * (high[rows, labels] - at_low)


def best_log_b(data: LabelledMembers, /) -> float:
    """log b of the lowest loss within the range, to 3e-7."""
    stride = -(-data.logs.size // FEW_VALUES)
    sample = data.rows(slice(None, None, stride))
    grid = np.linspace(-LOG_RANGE, LOG_RANGE, min(MOST, max(FEWEST, FEW_VALUES // (2 * sample.logs.size))))
    on_grid = np.array([sample.loss(log_b) for log_b in grid])
    left, right = np.append(np.inf, on_grid[:-1]), np.append(on_grid[1:], np.inf)
    valleys = np.flatnonzero((on_grid <= left) & (on_grid <= right))
    deepest = valleys[np.argsort(on_grid[valleys], kind="stable")][:VALLEYS]
    step = grid[1] - grid[0]
    bottoms = [lowest_point(sample.loss, grid[at] - step, grid[at] + step) for at in deepest]
    if stride > 1:
        # Of all rows the bottom lies near, a few standard errors of the sample away.
        reach = min(step, 5 * standard_error(sample, bottoms[0]))
        bottoms = [lowest_point(data.loss, bottom - reach, bottom + reach) for bottom in bottoms]
    return min(bottoms, key=data.loss) if len(bottoms) > 1 else bottoms[0]


def lowest_point(loss: Callable[[float], float], low: float, high: float, /) -> float:
    """Where ``loss`` is lowest between two points, or beyond one of them as long as it falls there, within the range."""
    while True:
        at = brent(loss, max(low, -LOG_RANGE), min(high, LOG_RANGE))
        width = high - low
        if at - low < 1e-3 * width and low > -LOG_RANGE:
            low, high = low - width, low + 1e-2 * width
        elif high - at < 1e-3 * width and high < LOG_RANGE:
            low, high = high - 1e-2 * width, high + width
        else:
            return round(at / LOG_RANGE, 6) * LOG_RANGE if LOG_RANGE - abs(at) < 3 * CLOSE else at


def brent(loss: Callable[[float], float], low: float, high: float, /) -> float:
    """A minimum of ``loss`` between two points by parabolas, and by golden sections where these do not help (Brent 1973)."""
    best = second = third = low + GOLDEN * (high - low)
    f_best = f_second = f_third = loss(best)
    step = before = 0.0
    while max(high - best, best - low) > 2 * CLOSE:
        middle = 0.5 * (low + high)
        r = (best - second) * (f_best - f_third)
        q = (best - third) * (f_best - f_second)
        p, q = (best - third) * q - (best - second) * r, 2 * (q - r)
        p, q = (-p, q) if q > 0 else (p, -q)
        usable = abs(p) < abs(0.5 * q * before) and q * (low - best) < p < q * (high - best)
        before, step = step, p / q if usable else 0.0
        if not usable:
            before = (high if best < middle else low) - best
            step = GOLDEN * before
        tried = best + (step if abs(step) >= CLOSE else CLOSE if best < middle else -CLOSE)
        f_tried = loss(tried)
        if f_tried <= f_best:
            low, high = (best, high) if tried >= best else (low, best)
            third, f_third, second, f_second, best, f_best = second, f_second, best, f_best, tried, f_tried
            continue
        low, high = (tried, high) if tried < best else (low, tried)
        if f_tried <= f_second or second == best:
            third, f_third, second, f_second = second, f_second, tried, f_tried
        elif f_tried <= f_third or third in (best, second):
            third, f_third = tried, f_tried
    return best


def standard_error(data: LabelledMembers, log_b: float, /) -> float:
    """Of the best log b, if other rows had come: the sandwich of an M-estimator; infinite where the loss is flat."""
    below, at, above = (data.losses(log_b + shift) for shift in (-STEP, 0.0, STEP))
    share = data.weights / data.weights.sum()
    slopes = (above - below) / (2 * STEP)
    curvature = float(share @ (above - 2 * at + below)) / STEP**2
    spread = float(np.sqrt((share**2) @ (slopes - share @ slopes) ** 2))
    return spread / curvature if curvature > 0 else np.inf
