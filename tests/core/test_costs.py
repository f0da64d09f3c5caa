"""Decisions under costs: rules against linear programmes, their laws, ties, 0-1 costs to the bit, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credalens import credal_decision, intersection_probability, probability_intervals, wrap
from credalens.core.decisions import RULES, SINGLE_RULES
from tests import oracles
from tests.strategies import KINDS, batch_of, ensembles, make_members

CAUTIOUS = ("interval_dominance", "maximality", "e_admissibility")
GAMMA = ("gamma_maximin", "gamma_maximax")
OF_BOUNDS = (*RULES, "gamma_minimax", "expected_intersection")
KINDS_OF_COSTS = ("uniform", "integers", "refuse", "twins", "wide", "envelope")
KINDS_IN_REACH = tuple(kind for kind in KINDS if kind != "tiny")  # of solvers, which see 1e-300 as zero
NEAR = 1e-8  # of the largest cost: what solvers leave open


def make_costs(kind: str, actions: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix (actions, classes) of a kind; not all rows are equal."""
    if kind == "uniform":
        costs = rng.random((actions, classes))
    elif kind == "wide":
        costs = rng.random((actions, classes)) * 10.0 ** rng.integers(-3, 5, (actions, classes))
    elif kind == "envelope":  # each action is the best one under some distribution
        q = rng.dirichlet(np.ones(classes), actions)
        costs = (q**2).sum(axis=1)[:, None] - 2 * q
    else:
        costs = rng.integers(-2, 6, (actions, classes)) / 10
        if kind == "refuse":
            costs[-1] = rng.choice([0.05, 0.1, 0.2])
        if kind == "twins":
            costs[-1] = costs[0]
    costs[0, 0] += (costs == costs[0]).all()
    return costs


@st.composite
def cost_matrices(draw: st.DrawFn, classes: int, *, max_actions: int = 6) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return make_costs(draw(st.sampled_from(KINDS_OF_COSTS)), draw(st.integers(2, max_actions)), classes, rng)


@st.composite
def problems(draw: st.DrawFn, *, kinds: tuple[str, ...] = KINDS) -> tuple[np.ndarray, np.ndarray]:
    """Members (members, classes) and costs (actions, classes)."""
    members = draw(ensembles(kinds=kinds))
    return members, draw(cost_matrices(members.shape[1]))


@pytest.mark.parametrize("largest", [4, 9])
@pytest.mark.parametrize("kind_of_costs", KINDS_OF_COSTS)
@pytest.mark.parametrize("kind", KINDS_IN_REACH)
def test_rules_equal_linear_programmes(kind, kind_of_costs, largest):
    rng = np.random.default_rng(7)
    for classes in (2, *rng.integers(2, largest, 3)):
        bounds = probability_intervals(make_members(kind, rng.integers(1, 6), classes, rng))
        costs = make_costs(kind_of_costs, rng.integers(2, largest), classes, rng)
        for rule, regret in oracles.regrets_under_costs(*bounds, costs).items():
            remains = credal_decision(*bounds, rule, costs=costs)
            regret = regret / np.abs(costs).max()
            assert remains.any()
            assert not (remains & (regret > NEAR)).any(), rule
            assert (remains | (regret > (0 if rule in GAMMA else -NEAR))).all(), rule


@pytest.mark.parametrize(("actions", "classes"), [(30, 10), (12, 25), (40, 3)])
def test_many_actions_equal_linear_programmes(actions, classes):
    rng = np.random.default_rng(1)
    bounds = probability_intervals(rng.dirichlet(np.full(classes, 2.0), 3))
    costs = make_costs("envelope", actions, classes, rng)
    regrets = oracles.regrets_under_costs(*bounds, costs)
    assert 2 < (regrets["e_admissibility"] <= NEAR).sum() < actions
    for rule in ("maximality", "e_admissibility"):
        expected = regrets[rule] <= NEAR
        np.testing.assert_array_equal(credal_decision(*bounds, rule, costs=costs), expected)


@given(problems())
def test_rules_are_nested_and_never_empty(problem):
    members, costs = problem
    bounds = probability_intervals(members)
    dominance, maximal, admissible = (credal_decision(*bounds, rule, costs=costs) for rule in CAUTIOUS)
    assert admissible.any()
    assert (maximal | ~admissible).all()
    assert (dominance | ~maximal).all()


@given(problems())
def test_single_actions_are_among_those_that_remain(problem):
    members, costs = problem
    bounds, prediction = probability_intervals(members), wrap(members)
    maximal, admissible = (credal_decision(*bounds, rule, costs=costs) for rule in CAUTIOUS[1:])
    minimax = credal_decision(*bounds, "gamma_minimax", costs=costs)
    assert (maximal | ~minimax).all()
    assert (credal_decision(*bounds, "gamma_maximin", costs=costs) | ~minimax).all()
    for rule in SINGLE_RULES:
        single = prediction.predict_set(rule, costs)
        assert single.sum() == 1
        assert (maximal | ~single).all(), rule
        assert rule == "gamma_minimax" or (admissible | ~single).all(), rule


@given(problems(), st.integers(0, 2**32 - 1))
def test_a_constant_in_a_column_changes_no_comparison_of_differences(problem, seed):
    members, costs = problem
    bounds = probability_intervals(members)
    shifted = costs + np.random.default_rng(seed).integers(-3, 4, costs.shape[1])
    for rule in ("maximality", "e_admissibility", "expected_intersection"):
        expected = credal_decision(*bounds, rule, costs=costs)
        np.testing.assert_array_equal(credal_decision(*bounds, rule, costs=shifted), expected, rule)
    for rule in OF_BOUNDS:  # the same constant everywhere changes no range either
        expected = credal_decision(*bounds, rule, costs=costs)
        np.testing.assert_array_equal(credal_decision(*bounds, rule, costs=costs + 2), expected, rule)


@given(problems(), st.sampled_from([1e-200, 0.1, 3.0, 1e9, 1e300]))
def test_the_unit_of_costs_changes_nothing(problem, unit):
    members, costs = problem
    bounds = probability_intervals(members)
    for rule in OF_BOUNDS:
        expected = credal_decision(*bounds, rule, costs=costs)
        np.testing.assert_array_equal(credal_decision(*bounds, rule, costs=costs * unit), expected, rule)


@given(problems(), st.integers(0, 2**32 - 1))
def test_the_order_of_actions_and_classes_changes_nothing(problem, seed):
    members, costs = problem
    rng = np.random.default_rng(seed)
    actions, classes = rng.permutation(len(costs)), rng.permutation(costs.shape[1])
    for rule in RULES:
        expected = credal_decision(*probability_intervals(members), rule, costs=costs)[actions]
        bounds = probability_intervals(members[:, classes])
        np.testing.assert_array_equal(credal_decision(*bounds, rule, costs=costs[actions][:, classes]), expected, rule)


@given(problems())
def test_narrower_intervals_leave_fewer_actions(problem):
    members, costs = problem
    wide, narrow = probability_intervals(members), probability_intervals(members[: 1 + len(members) // 2])
    for rule in CAUTIOUS:
        assert (credal_decision(*wide, rule, costs=costs) | ~credal_decision(*narrow, rule, costs=costs)).all(), rule


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_zero_one_costs_are_the_rules_without_costs(kind, classes, dtype):
    members = batch_of(kind, 4, 300, classes).astype(dtype)
    wrong = 1 - np.eye(classes)
    prediction = wrap(members)
    bounds = prediction.lower, prediction.upper
    for rule in (*RULES, *SINGLE_RULES):
        expected = prediction.predict_set(rule)
        for costs in (wrong, -np.eye(classes), 3 * wrong + 1, wrong.astype(int)):
            np.testing.assert_array_equal(prediction.predict_set(rule, costs), expected)
        if rule in RULES:
            np.testing.assert_array_equal(credal_decision(*bounds, rule, costs=wrong), credal_decision(*bounds, rule))


@settings(max_examples=30)
@given(ensembles())
def test_almost_zero_one_costs_agree_with_zero_one_costs(members):
    """Up to a difference that is too small for the other path to see as a tie, but large enough to be taken."""
    classes = members.shape[1]
    bounds = probability_intervals(members)
    twice = np.concatenate([1 - np.eye(classes), 1 - np.eye(classes)[:1]])
    for rule in CAUTIOUS:
        remains = credal_decision(*bounds, rule, costs=twice)
        np.testing.assert_array_equal(remains[:-1], credal_decision(*bounds, rule))
        assert remains[-1] == remains[0]


def test_without_costs_a_single_class_is_that_of_predict():
    prediction = wrap(batch_of("rounded", 4, 300, 5))
    chosen = prediction.predict_set("expected_intersection")
    np.testing.assert_array_equal(chosen.argmax(axis=1), prediction.predict())
    means = prediction.predict_set("expected_mean")
    assert (prediction.mean[means] >= prediction.mean.max(axis=1) - 1e-12).all()
    minimax = prediction.predict_set("gamma_minimax")
    assert (prediction.lower[minimax] >= prediction.lower.max(axis=1) - 1e-12).all()


def test_expected_costs_by_hand():
    # Costs of the two actions under p: 5 p_1 and p_0. p* = (.8, .2), the mean is (.9, .1): 1 > .8, but .5 < .9.
    members = np.array([[1.0, 0.0]] * 3 + [[0.6, 0.4]])
    prediction, costs = wrap(members), [[0, 5], [1, 0]]
    np.testing.assert_allclose(prediction.probability, [0.8, 0.2])
    np.testing.assert_array_equal(prediction.predict_set("expected_intersection", costs), [False, True])
    np.testing.assert_array_equal(prediction.predict_set("expected_mean", costs), [True, False])
    # At worst they cost 5 * .4 = 2 and 1; at best 0 and .6.
    np.testing.assert_array_equal(prediction.predict_set("gamma_minimax", costs), [False, True])
    np.testing.assert_array_equal(prediction.predict_set("gamma_maximax", costs), [True, False])


def test_an_action_between_two_is_maximal_but_best_nowhere():
    # Two classes, p_1 free: costs p_1, 1 - p_1 and .6. The last one is never best, but neither other one beats it everywhere.
    costs = [[0, 1], [1, 0], [0.6, 0.6]]
    np.testing.assert_array_equal(credal_decision([0, 0], [1, 1], "maximality", costs=costs), [True] * 3)
    np.testing.assert_array_equal(credal_decision([0, 0], [1, 1], "e_admissibility", costs=costs), [True, True, False])
    # At .5 the three meet in one point, a tie; below, refusing is best in between.
    for cost in (0.5, 0.4):
        costs[2] = [cost, cost]
        assert credal_decision([0, 0], [1, 1], "e_admissibility", costs=costs).all()
    # Three classes: the same, with a game instead of a line.
    costs = np.r_[1 - np.eye(3), [[0.7] * 3]]
    free = np.zeros(3), np.ones(3)
    assert credal_decision(*free, "maximality", costs=costs).all()
    np.testing.assert_array_equal(credal_decision(*free, "e_admissibility", costs=costs), [True] * 3 + [False])
    costs[3] = 2 / 3
    assert credal_decision(*free, "e_admissibility", costs=costs).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", RULES)
def test_ties_of_costs_are_ties(rule, dtype):
    bounds = (x.astype(dtype) for x in probability_intervals(batch_of("flat", 3, 200, 4)))
    costs = np.array([[0.3, 1, 0.1, 0], [0.1 + 0.2, 1, 0.3 - 0.2, 0], [5, 5, 5, 5]])
    remains = credal_decision(*bounds, rule, costs=costs)
    assert remains[:, :2].all()
    assert not remains[:, 2].any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("rule", CAUTIOUS)
def test_an_action_that_some_member_ranks_best_stays_in_every_dtype(rule, dtype):
    exact = batch_of("rounded", 4, 400, 4)
    costs = np.array([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0], [0.9, 0.9, 0.9, 0.9]])
    expected = exact @ costs.T
    best = (expected <= expected.min(axis=-1, keepdims=True) + 1e-12).any(axis=0)
    assert (wrap(exact.astype(dtype)).predict_set(rule, costs) | ~best).all()


def test_a_class_that_is_impossible_costs_nothing():
    low, high = np.array([0.5, 0.2, 0.0]), np.array([0.8, 0.5, 0.0])
    for rule in OF_BOUNDS:
        expected = credal_decision(low, high, rule, costs=[[0, 3, 0], [2, 0, 0], [1, 1, 0]])
        found = credal_decision(low, high, rule, costs=[[0, 3, 1e9], [2, 0, -1e9], [1, 1, 1e5]])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("classes", [2, 5])
def test_batches_equal_rows_on_any_number_of_threads(classes):
    prediction = wrap(batch_of("flat", 4, 60, classes))
    costs = make_costs("envelope", 7, classes, np.random.default_rng(0))
    for rule in (*RULES, *SINGLE_RULES):
        rows = [prediction[i].predict_set(rule, costs) for i in range(60)]
        np.testing.assert_array_equal(prediction.predict_set(rule, costs), rows)
        maps = wrap(batch_of("flat", 4, 60, classes).reshape(4, 6, 10, classes), threads=1).predict_set(rule, costs)
        np.testing.assert_array_equal(maps.reshape(60, 7), rows)


def test_many_actions_are_compared_in_blocks(monkeypatch):
    bounds = probability_intervals(batch_of("flat", 3, 20, 6))
    costs = make_costs("uniform", 9, 6, np.random.default_rng(0))
    expected = credal_decision(*bounds, "maximality", costs=costs)
    monkeypatch.setattr("credalens.core.costs.BLOCK", 2 * costs.size)
    np.testing.assert_array_equal(credal_decision(*bounds, "maximality", costs=costs), expected)


def test_results_have_the_library_of_the_bounds():
    torch = pytest.importorskip("torch")
    members = batch_of("flat", 3, 20, 4).astype(np.float32)
    costs = make_costs("refuse", 5, 4, np.random.default_rng(0))
    for rule in (*RULES, *SINGLE_RULES):
        expected = wrap(members).predict_set(rule, costs)
        found = wrap(torch.from_numpy(members)).predict_set(rule, torch.from_numpy(costs))
        assert found.dtype == torch.bool
        np.testing.assert_array_equal(found.numpy(), expected)


def test_the_intersection_probability_of_bounds_is_that_of_a_prediction():
    prediction = wrap(batch_of("flat", 3, 200, 4))
    costs = make_costs("uniform", 5, 4, np.random.default_rng(0))
    bounds = prediction.lower, prediction.upper
    found = credal_decision(*bounds, "expected_intersection", costs=costs)
    np.testing.assert_array_equal(found, prediction.predict_set("expected_intersection", costs))
    expected = (intersection_probability(*bounds) @ costs.T).argmin(axis=1)
    np.testing.assert_array_equal(found.argmax(axis=1), expected)


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ([0, 1, 2], ValueError, r"\(actions, 3\).*got \(3,\)"),
        ([[0, 1], [1, 0], [1, 1]], ValueError, r"got \(3, 2\).*costs\.T"),
        (np.zeros((2, 4)), ValueError, r"got \(2, 4\)\.$"),
        (np.zeros((2, 2, 3)), ValueError, r"\(2, 2, 3\)"),
        ([[0, 1, 2]], ValueError, "at least two actions.*cost of refusing"),
        ([[0, 1, 2], [0, np.nan, 1]], ValueError, r"1 of 6 costs are not finite.*\(1, 1\): nan.*forbidden"),
        ([[0, 1, np.inf], [0, 1, 1]], ValueError, r"\(0, 2\): inf"),
        ([[1, 2, 3], [1, 2, 3]], ValueError, "all 2 rows of costs are equal.*nothing to decide"),
        ([["a", "b", "c"]], TypeError, "costs must hold real numbers"),
        ("costs.csv", TypeError, "read it first"),
    ],
)
def test_bad_costs_are_refused_with_a_remedy(costs, error, message):
    bounds = np.full(3, 0.2), np.full(3, 0.6)
    with pytest.raises(error, match=message):
        credal_decision(*bounds, "maximality", costs=costs)
    with pytest.raises(error, match=message):
        wrap(np.full((2, 3), 1 / 3)).predict_set(costs=costs)


def test_bounds_have_no_mean():
    with pytest.raises(ValueError, match=r"not known from bounds.*predict_set\('expected_mean'.*expected_intersection"):
        credal_decision(np.full(3, 0.2), np.full(3, 0.6), "expected_mean", costs=np.eye(3))
    with pytest.raises(ValueError, match="'gamma_minimax'"):
        credal_decision(np.full(3, 0.2), np.full(3, 0.6), "minimax", costs=np.eye(3))
