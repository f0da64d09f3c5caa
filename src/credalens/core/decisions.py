"""Set-valued decisions under intervals, each in closed form, and the usual scores of a set-valued prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy, top_class
from credalens.checks.arrays import read_sets
from credalens.checks.intervals import FOR_KERNELS, IntervalArray, read_unrepaired_intervals
from credalens.checks.options import check_choice, check_real
from credalens.core.batches import in_chunks
from credalens.core.costs import CostComparison, read_costs


def credal_decision(lower: Any, upper: Any, rule: str, *, costs: Any = None) -> Any:
    """The classes that remain possible decisions, as a boolean mask (*batch, classes); never empty.

    Rules, from the most to the least cautious (each set contains the next):

    - ``"interval_dominance"``: drop a class if another one's lower bound exceeds its upper bound.
    - ``"maximality"``: drop a class if another one is more probable under every distribution in the set.
    - ``"e_admissibility"``: keep a class if it is a most probable one under some distribution in the set.

    And two that name one class (all of them in a tie): ``"gamma_maximin"`` (highest lower probability) and
    ``"gamma_maximax"`` (highest upper probability).

    ``costs`` (actions, classes) says what each action costs in each class: the mask is then (*batch, actions), and the rules
    compare expected costs instead of probabilities. An action is dropped if another one costs less even when both cost what
    is worst for the comparison (interval dominance), or under every distribution (maximality); it is E-admissible if it costs
    least under some distribution; gamma_maximin names the least highest expected cost, gamma_maximax the least lowest one.
    Without costs, actions are the classes and each costs 1 where it is wrong.

    Rules that leave exactly one action: ``"gamma_minimax"``, the least highest expected cost (ties: the intersection
    probability decides); ``"expected_intersection"``, the least expected cost under the intersection probability; and, only
    for ``CredalPrediction.predict_set``, ``"expected_mean"``, that under the mean. Of what is equal still, the first.

    The rules that may leave several drop an action only if rounding in the bounds' dtype cannot explain the difference: ties
    stay ties in float32. The rounding is relative to the two bounds that are compared, or to one if the sum of all bounds is
    involved; with costs, no bounds within rounding would keep it.

    >>> credal_decision([0.5, 0.2, 0.0], [0.8, 0.4, 0.1], "maximality")
    array([ True, False, False])
    >>> costs = [[0, 5, 20], [1, 0, 10], [1.2, 1.2, 1.2]]  # the last action refuses
    >>> credal_decision([0.5, 0.2, 0.0], [0.8, 0.4, 0.1], "maximality", costs=costs)
    array([False,  True,  True])
    """
    if rule == "expected_mean":
        raise ValueError(
            "the mean of the members is not known from bounds; use predict_set('expected_mean', costs) of a prediction, such "
            "as wrap(probs) or a CredalClassifier's credal_predict(X), or the rule 'expected_intersection'."
        )
    return decide(read_unrepaired_intervals(lower, upper), rule, costs=costs)


def decide(
    intervals: IntervalArray,
    rule: str,
    /,
    *,
    costs: Any = None,
    probability: Any = None,
    mean: Any = None,
    threads: int | None = None,
) -> Any:
    """The decision mask of intervals that have been validated, or that ``wrap`` computed.

    The rules in closed form, for intervals whose bounds are all reached, with S the sums over all classes:

    - interval dominance: j is out if l_i > u_j for some i.
    - maximality: j is out if max(l_i - u_j, l_i + S_l - l_j - 1, u_i + 1 - S_u - u_j) > 0 for another class i. The three
      terms are the least of p_i - p_j where no mass, only j, or only i can give way.
    - E-admissibility: raise class i to t = min(u_i, 1 - sum_{j != i} l_j); i is in if it is maximal and
      t + sum_{j != i} min(u_j, t) >= 1. Without rounding that implies the first two terms of maximality; all three are asked,
      since the slack of one rule must not let in what that of another drops.

    Costs other than 0-1 are in ``core/costs.py``. ``probability`` and ``mean`` (*batch, classes) are those of a prediction.
    """
    check_choice(rule, (*RULES, *SINGLE_RULES), "rule")
    table = None if costs is None else read_costs(costs, intervals.lower.shape[1])
    single = rule in SINGLE_RULES
    points = _tie_breakers(intervals, rule, probability, mean) if single else []
    if table is None or table.is_zero_one(by_column=rule in BY_DIFFERENCES):
        remains = _most_probable(intervals, rule, points) if single else _likely_classes(intervals, rule, threads)
    else:
        comparison = CostComparison.over(intervals, table, threads=threads)
        if rule in RULES or rule == "gamma_minimax":
            several = "gamma_maximin" if single else rule
            remains = comparison.remaining(several, intervals.lower, intervals.upper)
        else:
            remains = np.ones((len(intervals.lower), len(table.matrix)), np.bool_)
        for point in points:
            comparison.narrow(remains, point)
        if single:
            remains = _one_of(remains.argmax(axis=-1), len(table.matrix))
    return intervals.restore(remains)


def _likely_classes(intervals: IntervalArray, rule: str, threads: int | None) -> NDArray[np.bool_]:
    """A rule that may leave several classes, in closed form."""
    from credalens.kernels import buffers, decisions

    number = RULES.index(rule)
    relative, least = ROUNDINGS * intervals.rounding, ROUNDING + intervals.smallest
    remains = np.empty(intervals.lower.shape, np.bool_)

    def work(low: NDArray, high: NDArray, out: NDArray) -> None:
        decisions.decide_rows(low, high, number, relative, least, out, buffers.row_workspace(low.shape[1]))

    in_chunks(work, intervals.lower, intervals.upper, remains, classes=intervals.lower.shape[1], threads=threads)
    return remains


def _most_probable(intervals: IntervalArray, rule: str, points: list[NDArray]) -> NDArray[np.bool_]:
    """The one class of the highest lower bound, intersection probability or mean."""
    first, second = (intervals.lower, points[0]) if rule == "gamma_minimax" else (points[0], points[-1])
    return _one_of(top_class(first, ties=second), first.shape[1])


def _one_of(chosen: NDArray, actions: int) -> NDArray[np.bool_]:
    return chosen[:, None] == np.arange(actions)


def _tie_breakers(intervals: IntervalArray, rule: str, probability: Any, mean: Any) -> list[NDArray]:
    """The distributions (rows, classes) under which a rule for one action compares expected costs, one after the other."""
    from credalens.kernels.members import intersection_rows

    shape = intervals.lower.shape
    if probability is None:
        repaired = intervals.repaired()
        intersection = np.empty(shape)
        intersection_rows(repaired.lower, repaired.upper, intersection)
        return [intersection]
    points = [np.require(to_numpy(x)[0], None, FOR_KERNELS).reshape(shape) for x in (probability, mean)]
    return points[::-1] if rule == "expected_mean" else points


ROUNDING = 1e-12  # what sums and differences in float64 may be off by
ROUNDINGS = 4  # of the bounds' own dtype: each of two bounds was rounded, and again where a sum had to be repaired
RULES = ("interval_dominance", "maximality", "e_admissibility", "gamma_maximin", "gamma_maximax")  # as in the kernels
SINGLE_RULES = ("gamma_minimax", "expected_intersection", "expected_mean")  # exactly one action
BY_DIFFERENCES = ("maximality", "e_admissibility", "expected_intersection", "expected_mean")
"""Rules for which only the differences of costs in each class count."""


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
