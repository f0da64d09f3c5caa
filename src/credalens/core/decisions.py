"""Set-valued decisions under intervals, each in closed form, and the usual scores of a set-valued prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from credalens.checks.intervals import IntervalArray, read_intervals
from credalens.checks.options import check_choice
from credalens.checks.sets import read_sets

__all__ = ["RULES", "credal_decision", "decide", "set_utility"]


def credal_decision(lower: Any, upper: Any, rule: str) -> Any:
    """The classes that remain possible decisions, as a boolean mask (*batch, classes); never empty.

    Rules, from the most to the least cautious (each set contains the next):

    - ``"interval_dominance"``: drop a class if another one's lower bound exceeds its upper bound.
    - ``"maximality"``: drop a class if another one is more probable under every distribution in the set.
    - ``"e_admissibility"``: keep a class if it is a most probable one under some distribution in the set.

    And two that name one class (all of them in a tie): ``"gamma_maximin"`` (highest lower probability) and
    ``"gamma_maximax"`` (highest upper probability).

    The first three drop a class only for more than the rounding of the bounds' dtype explains: ties stay ties in float32. That
    is relative to two bounds that are compared, and to one where the sum of all bounds takes part.

    >>> credal_decision([0.5, 0.2, 0.0], [0.8, 0.4, 0.1], "maximality")
    array([ True, False, False])
    """
    check_choice(rule, RULES, "rule")
    return decide(read_intervals(lower, upper), rule)


def decide(intervals: IntervalArray, rule: str, /) -> Any:
    """The decision mask of validated intervals."""
    apply_rule = RULES[check_choice(rule, RULES, "rule")]
    slack = Slack(ROUNDINGS * intervals.rounding, ROUNDING + intervals.smallest)
    return intervals.restore(apply_rule(intervals.lower, intervals.upper, slack))


class Slack(NamedTuple):
    """What rounding explains of a difference: a part of what was rounded, and at least so much."""

    relative: float
    least: float

    @property
    def of_sums(self) -> float:
        """Where sums over all classes take part, which are about one."""
        return max(self.relative, self.least)

    def of_bounds(self, low: NDArray, high: NDArray) -> NDArray:
        """Where a lower bound is compared with an upper one. Every rule asks here, so that their sets nest."""
        return self.least + self.relative * np.maximum(low, high)


def _interval_dominance(low: NDArray, high: NDArray, slack: Slack) -> NDArray:
    """j is out if some l_i > u_j."""
    largest = low.max(axis=-1, keepdims=True)
    return largest - high <= slack.of_bounds(largest, high)


def _maximality(low: NDArray, high: NDArray, slack: Slack) -> NDArray:
    """j is out if max(l_i - u_j, l_i + S_l - l_j - 1, u_i + 1 - S_u - u_j) > 0 for another class i, with S the sums over all.

    The three terms are the least of p_i - p_j where no mass, only j, or only i can give way. They grow with l_i and u_i, so
    the largest of the other classes decide: O(classes) for a row.
    """
    low_i, high_i = _largest_other(low), _largest_other(high)
    below, above = low.sum(axis=-1, keepdims=True), high.sum(axis=-1, keepdims=True)
    keep = low_i - high <= slack.of_bounds(low_i, high)
    keep &= low_i + (below - 1) - low <= slack.of_sums
    return keep & (high_i + (1 - above) - high <= slack.of_sums * np.maximum(above, 1))


def _largest_other(x: NDArray) -> NDArray:
    """For each class the largest value among the others."""
    top = np.partition(x, -2, axis=-1)
    second, first = top[:, -2, None], top[:, -1, None]
    return np.where(x < first, first, second)


def _e_admissibility(low: NDArray, high: NDArray, slack: Slack) -> NDArray:
    """Raise class i to t = min(u_i, 1 - sum_{j != i} l_j): in if t >= max l and t + sum_{j != i} min(u_j, t) >= 1.

    Such a class is maximal: t >= max l says so of the first two terms there. The third is asked as well, since the slack of
    one rule must not let in what that of the other drops.
    """
    keep = _maximality(low, high, slack)
    room_for = 1 - (low.sum(axis=-1, keepdims=True) - low) + slack.of_sums
    top = np.minimum(high + slack.of_bounds(low.max(axis=-1, keepdims=True), high), room_for)
    for i in range(low.shape[-1]):
        t = top[:, i]
        room = np.minimum(high, t[:, None]).sum(axis=-1) - np.minimum(high[:, i], t) + t
        keep[:, i] &= room >= 1 - slack.of_sums
    return keep


def _gamma_maximin(low: NDArray, high: NDArray, slack: Slack) -> NDArray:
    return low == low.max(axis=-1, keepdims=True)


def _gamma_maximax(low: NDArray, high: NDArray, slack: Slack) -> NDArray:
    return high == high.max(axis=-1, keepdims=True)


ROUNDING = 1e-12  # what sums and differences in float64 may be off by
ROUNDINGS = 4  # of the bounds' own dtype: each of two bounds was rounded, and again where a sum had to be repaired
RULES: dict[str, Callable[[NDArray, NDArray, Slack], NDArray]] = {
    "interval_dominance": _interval_dominance,
    "maximality": _maximality,
    "e_admissibility": _e_admissibility,
    "gamma_maximin": _gamma_maximin,
    "gamma_maximax": _gamma_maximax,
}


def set_utility(size: Any, correct: Any, /, *, reward: float = 0.65) -> Any:
    r"""Discounted accuracy of a set of ``size`` classes that holds the true one: u65 by default, u80 for 0.8.

    .. math:: u(n) = (a / n) - (b / n^2) \ \text{with}\ u(1) = 1,\ u(2) = reward; \quad 0 \text{ if the true class is missing}

    u65 = 1.6/n - 0.6/n^2 and u80 = 2.2/n - 1.2/n^2. ``correct`` says for each set whether it holds the true class.

    >>> set_utility([1, 2, 2], [True, True, False])
    array([1.  , 0.65, 0.  ])
    """
    if not 0.5 <= reward <= 1:
        raise ValueError(f"reward is the utility of a correct pair and lies in [0.5, 1]; got {reward}.")
    n, held, array_kind = read_sets(size, correct)
    a = 4 * reward - 1
    return array_kind.restore(np.where(held, a / n - (a - 1) / n**2, 0.0))
