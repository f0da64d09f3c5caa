r"""Decisions under costs: rows of a matrix (actions, classes) compared by their expectations over a credal set.

For an interval set the bounds of an expectation are exact greedy fills (``kernels/costs.py``). With K_a the costs of action a:

- interval dominance: a is out if max_p E_p[K_b] < min_p E_p[K_a] for another action b.
- maximality: a is out if min_p E_p[K_a - K_b] > 0 for another action b.
- E-admissibility: a is in if some p in the set has E_p[K_a] <= E_p[K_b] for all b. Whether it is so is the sign of the game
  min_p max_b E_p[K_a - K_b], which the simplex method solves with a certificate from either side.
- Gamma-maximin and Gamma-maximax, of the utility -K: the least max_p E_p[K_a], the least min_p E_p[K_a].

Rounding: the set is widened by what rounding of its bounds explains, and each cost may be off in its last digits, so that an
action is dropped only if it would be for all bounds and costs that round to the same. Then each set of actions still contains
the next, and ties stay ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import ROUNDINGS, rounding
from credalens.checks.arrays import as_array, refuse_values
from credalens.checks.intervals import FOR_KERNELS, IntervalArray
from credalens.core.batches import in_chunks

LEAST_ROUNDING: Final = 1e-12  # relative, of bounds: what sums and differences in float64 may be off by
COST_ROUNDING: Final = 1e-14  # relative, of costs and their differences
BLOCK: Final = 1 << 20  # values: the costs of so many pairs of actions are sorted together


@dataclass(frozen=True)
class Costs:
    """What each action costs in each class, scaled by a power of two, and the rounding of every cost."""

    matrix: NDArray[np.float64]
    rounding: NDArray[np.float64]

    def is_zero_one(self, *, by_column: bool) -> bool:
        """Whether they are 0-1 costs but for a unit and a constant, a column's own where that makes no difference."""
        if self.matrix.shape[0] != self.matrix.shape[1]:
            return False
        costs = self.matrix - self.matrix.min(axis=0 if by_column else None)
        return bool((costs == costs.max() * (1 - np.eye(len(costs)))).all())


def read_costs(costs: Any, classes: int, /) -> Costs:
    """A matrix of finite costs (actions, classes) whose rows are not all the same."""
    matrix, array_kind = as_array(costs, "costs")
    if matrix.ndim != 2 or matrix.shape[1] != classes:
        remedy = " Rows are actions: pass costs.T." if matrix.ndim == 2 and len(matrix) == classes else ""
        raise ValueError(
            f"costs must have shape (actions, classes), here (actions, {classes}): what each action costs in each class; "
            f"got {matrix.shape}.{remedy}"
        )
    if len(matrix) < 2:
        raise ValueError(
            f"costs needs a row for each of at least two actions, or there is nothing to decide; got shape {matrix.shape}. "
            "Add the alternative, such as a row with the cost of refusing."
        )
    matrix = matrix.astype(np.float64)
    remedy = "Give an action that is forbidden in a class a large cost there, or leave its row out."
    refuse_values(~np.isfinite(matrix), matrix, "costs", "not finite", remedy)
    if (matrix == matrix[0]).all():
        raise ValueError(
            f"all {len(matrix)} rows of costs are equal: every action costs the same in every class, and there is nothing to "
            "decide. Give each action costs of its own."
        )
    scaled = np.ldexp(matrix, -int(np.frexp(np.abs(matrix).max())[1]))  # so that no difference overflows
    relative = max(ROUNDINGS * rounding(array_kind.dtype), COST_ROUNDING)
    return Costs(np.require(scaled, np.float64, FOR_KERNELS), relative * np.abs(scaled))


@dataclass(frozen=True)
class CostComparison:
    """Compares the rows of a cost matrix over credal sets whose bounds (rows, classes) were rounded."""

    costs: Costs
    relative: float  # rounding of the bounds: a part of each
    least: float  # and so much more
    threads: int | None

    @classmethod
    def over(cls, intervals: IntervalArray, costs: Costs, /, *, threads: int | None) -> CostComparison:
        """With the rounding of the intervals."""
        return cls(costs, max(ROUNDINGS * intervals.rounding, LEAST_ROUNDING), intervals.smallest, threads)

    def remaining(self, rule: str, low: NDArray, high: NDArray, /) -> NDArray[np.bool_]:
        """The mask (rows, actions) of a rule that may leave several."""
        out = np.empty((len(low), len(self.costs.matrix)), np.bool_)
        if rule == "interval_dominance":
            self._write_undominated_ranges(low, high, out)
        elif rule in ("gamma_maximin", "gamma_maximax"):
            self._write_best_extremes(low, high, out, highest=rule == "gamma_maximin")
        elif low.shape[1] == 2:
            self._write_on_a_line(low, high, out, jointly=rule == "e_admissibility")
        else:
            self._write_maximal(low, high, out)
            if rule == "e_admissibility":
                self._drop_inadmissible(low, high, out)
        return out

    def _in_chunks(self, work: Callable[..., object], /, *arrays: NDArray) -> None:
        in_chunks(work, *arrays, classes=self.costs.matrix.size, threads=self.threads)

    def _write_undominated_ranges(self, low: NDArray, high: NDArray, out: NDArray[np.bool_]) -> None:
        from credalens.kernels.costs import range_rows

        cheap, dear = self.costs.matrix - self.costs.rounding, -self.costs.matrix - self.costs.rounding
        order, opposite = _orders(cheap), _orders(dear)

        def work(low: NDArray, high: NDArray, out: NDArray) -> None:
            memory, lowest = np.empty((2, low.shape[1])), np.empty(len(cheap))
            range_rows(low, high, self.relative, self.least, cheap, order, dear, opposite, out, memory, lowest)

        self._in_chunks(work, low, high, out)

    def _write_best_extremes(self, low: NDArray, high: NDArray, out: NDArray[np.bool_], *, highest: bool) -> None:
        from credalens.kernels.costs import extreme_rows

        sign = -1.0 if highest else 1.0
        values = sign * self.costs.matrix
        rounded, order = values - self.costs.rounding, _orders(values)
        most = 3 * np.abs(values).max() * (self.relative + low.shape[1] * self.least) + 3 * self.costs.rounding.max()

        def work(low: NDArray, high: NDArray, out: NDArray) -> None:
            memory, extreme = np.empty((2, low.shape[1])), np.empty((2, len(values)))
            extreme_rows(low, high, self.relative, self.least, sign, values, rounded, order, most, out, memory, extreme)

        self._in_chunks(work, low, high, out)

    def _write_on_a_line(self, low: NDArray, high: NDArray, out: NDArray[np.bool_], *, jointly: bool) -> None:
        """Two classes: another action b does not beat a where p_1 is on one side of the point at which both cost the same.

        For maximality the set must reach each of these half-lines, for E-admissibility all of them at once.
        """
        from credalens.kernels.costs import line_rows

        excess = self._excess(slice(None))
        slope = excess[..., 1] - excess[..., 0]
        level = -excess[..., 0] / np.where(slope != 0, slope, 1.0)
        first, last = (np.where(side, level, bound) for side, bound in ((slope < 0, -np.inf), (slope > 0, np.inf)))
        first[(slope == 0) & (excess[..., 0] > 0)] = np.inf
        first, last = first.max(axis=1), last.min(axis=1)
        if jointly:
            first[first > last] = np.inf

        def work(low: NDArray, high: NDArray, out: NDArray) -> None:
            line_rows(low, high, self.relative, self.least, first, last, out, np.empty((2, 2)))

        self._in_chunks(work, low, high, out)

    def _excess(self, some: slice) -> NDArray:
        """What some actions cost more than each action, at the least that rounding allows: (some actions, actions, classes)."""
        costs, rounding = self.costs.matrix, self.costs.rounding
        return costs[some, None] - costs - (rounding[some, None] + rounding)

    def _write_maximal(self, low: NDArray, high: NDArray, out: NDArray[np.bool_]) -> None:
        from credalens.kernels.costs import maximal_rows

        costs = self.costs.matrix
        step = max(1, BLOCK // costs.size)

        def work(start: int, excess: NDArray, orders: NDArray, low: NDArray, high: NDArray, out: NDArray) -> None:
            memory, expected = np.empty((3, costs.shape[1])), np.empty(len(costs))
            maximal_rows(low, high, self.relative, self.least, costs, start, excess, orders, out, memory, expected)

        for start in range(0, len(costs), step):
            excess = self._excess(slice(start, start + step))
            self._in_chunks(partial(work, start, excess, _orders(excess)), low, high, out)

    def _drop_inadmissible(self, low: NDArray, high: NDArray, out: NDArray[np.bool_]) -> None:
        from credalens.kernels.costs import admissible_rows

        costs, rounding = self.costs.matrix, self.costs.rounding
        actions, classes = costs.shape

        def work(low: NDArray, high: NDArray, out: NDArray) -> None:
            rows, games = np.empty((5, classes)), np.empty((4, actions + 1))
            excess, inverse, order = (
                np.empty((actions, classes)),
                np.empty((actions, actions)),
                np.empty(classes, np.int64),
            )
            memory = (rows, games, excess, inverse, order)
            admissible_rows(low, high, self.relative, self.least, costs, rounding, out, *memory)

        self._in_chunks(work, low, high, out)

    def narrow(self, out: NDArray[np.bool_], points: NDArray, /) -> None:
        """Keep of the actions left those of the least expected cost under distributions (rows, classes), up to rounding.

        A part of the rounding of bounds, so that what beats an action in the whole set beats it here.
        """
        from credalens.kernels.costs import narrow_rows

        costs, relative = self.costs, self.relative / ROUNDINGS

        def work(p: NDArray, left: NDArray) -> None:
            narrow_rows(p, costs.matrix, costs.rounding, relative, left, np.empty(len(costs.matrix)))

        self._in_chunks(work, points, out)


def _orders(values: NDArray) -> NDArray[np.int32]:
    """What sorts the last axis."""
    return np.argsort(values, axis=-1).astype(np.int32)
