"""Set-valued decisions under intervals, each in closed form, and the usual scores of a set-valued prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.checks.arrays import read_sets
from credalens.checks.intervals import IntervalArray, read_unrepaired_intervals
from credalens.checks.options import check_choice, check_real
from credalens.core.batches import in_chunks


def credal_decision(lower: Any, upper: Any, rule: str) -> Any:
    """The classes that remain possible decisions, as a boolean mask (*batch, classes); never empty.

    Rules, from the most to the least cautious (each set contains the next):

    - ``"interval_dominance"``: drop a class if another one's lower bound exceeds its upper bound.
    - ``"maximality"``: drop a class if another one is more probable under every distribution in the set.
    - ``"e_admissibility"``: keep a class if it is a most probable one under some distribution in the set.

    And two that name one class (all of them in a tie): ``"gamma_maximin"`` (highest lower probability) and
    ``"gamma_maximax"`` (highest upper probability).

    The first three drop a class only if rounding in the bounds' dtype cannot explain the difference: ties stay ties in float32.
    The rounding is relative to the two bounds that are compared, or to one if the sum of all bounds is involved.

    >>> credal_decision([0.5, 0.2, 0.0], [0.8, 0.4, 0.1], "maximality")
    array([ True, False, False])
    """
    return decide(read_unrepaired_intervals(lower, upper), rule)


def decide(intervals: IntervalArray, rule: str, /, *, threads: int | None = None) -> Any:
    """The decision mask of intervals that have been validated, or that ``wrap`` computed.

    The rules in closed form, for intervals whose bounds are all reached, with S the sums over all classes:

    - interval dominance: j is out if l_i > u_j for some i.
    - maximality: j is out if max(l_i - u_j, l_i + S_l - l_j - 1, u_i + 1 - S_u - u_j) > 0 for another class i. The three
      terms are the least of p_i - p_j where no mass, only j, or only i can give way.
    - E-admissibility: raise class i to t = min(u_i, 1 - sum_{j != i} l_j); i is in if it is maximal and
      t + sum_{j != i} min(u_j, t) >= 1. Without rounding that implies the first two terms of maximality; all three are asked,
      since the slack of one rule must not let in what that of another drops.
    """
    from credalens.kernels import buffers, decisions

    number = RULES.index(check_choice(rule, RULES, "rule"))
    relative, least = ROUNDINGS * intervals.rounding, ROUNDING + intervals.smallest
    remains = np.empty(intervals.lower.shape, np.bool_)

    def work(low: NDArray, high: NDArray, out: NDArray) -> None:
        decisions.decide_rows(low, high, number, relative, least, out, buffers.row_workspace(low.shape[1]))

    in_chunks(work, intervals.lower, intervals.upper, remains, classes=intervals.lower.shape[1], threads=threads)
    return intervals.restore(remains)


ROUNDING = 1e-12  # what sums and differences in float64 may be off by
ROUNDINGS = 4  # of the bounds' own dtype: each of two bounds was rounded, and again where a sum had to be repaired
RULES = ("interval_dominance", "maximality", "e_admissibility", "gamma_maximin", "gamma_maximax")  # as in the kernels


def set_utility(size: Any, correct: Any, /, *, reward: float = 0.65) -> Any:
    r"""Discounted accuracy of a set of ``size`` classes that contains the true one: u65 by default, u80 for 0.8.

    .. math:: u(n) = (a / n) - (b / n^2) \ \text{with}\ u(1) = 1,\ u(2) = reward; \quad 0 \text{ if the true class is missing}

    u65 = 1.6/n - 0.6/n^2 and u80 = 2.2/n - 1.2/n^2. ``correct`` says for each set whether it contains the true class.

    >>> set_utility([1, 2, 2], [True, True, False])
    array([1.  , 0.65, 0.  ])
    """
    reward = check_real(reward, "reward", "a number in [0.5, 1]")
    if not 0.5 <= reward <= 1:
        raise ValueError(f"reward is the utility of a correct pair and lies in [0.5, 1]; got {reward}.")
    n, held, array_kind = read_sets(size, correct)
    a = 4 * reward - 1
    return array_kind.restore(np.where(held, a / n - (a - 1) / n / n, 0.0))
