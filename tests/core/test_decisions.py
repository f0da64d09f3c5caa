"""Decision rules against linear programs, their order of caution, and utilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from credalens import (
    CredalPrediction,
    MemberSummary,
    credal_decision,
    probability_intervals,
    set_utility,
    wrap,
    wrap_logits,
)
from credalens.checks.intervals import CHUNK
from tests import oracles
from tests.memory_use import with_peak
from tests.strategies import batch_of, ensembles

CAUTIOUS = ("interval_dominance", "maximality", "e_admissibility")
FLOATS = ("float16", "bfloat16", "float32", "float64", "longdouble")


def narrowed(members, dtype):
    """``members`` in a NumPy dtype; NumPy knows bfloat16 only by a package that comes with JAX."""
    if dtype == "bfloat16":
        return members.astype(pytest.importorskip("ml_dtypes").bfloat16)
    return members.astype(dtype)


@settings(max_examples=40)
@given(ensembles(max_classes=6, kinds=("flat", "peaked", "sparse", "mixed", "rounded")))
def test_maximality_equals_linear_programs(members):
    low, high = probability_intervals(members)
    classes = range(len(low))
    expected = [not any(oracles.dominates(low, high, i, j) for i in classes if i != j) for j in classes]
    np.testing.assert_array_equal(credal_decision(low, high, "maximality"), expected)


@settings(max_examples=40)
@given(ensembles(max_classes=6, kinds=("flat", "peaked", "sparse", "mixed")))
def test_e_admissibility_equals_linear_programs(members):
    low, high = probability_intervals(members)
    expected = [oracles.is_e_admissible(low, high, i) for i in range(len(low))]
    np.testing.assert_array_equal(credal_decision(low, high, "e_admissibility"), expected)


@given(ensembles(max_classes=12))
def test_rules_are_nested_and_never_empty(members):
    low, high = probability_intervals(members)
    dominance = credal_decision(low, high, "interval_dominance")
    maximal = credal_decision(low, high, "maximality")
    admissible = credal_decision(low, high, "e_admissibility")
    assert admissible.any()
    assert (maximal | ~admissible).all()
    assert (dominance | ~maximal).all()
    assert credal_decision(low, high, "gamma_maximin")[low.argmax()]
    assert credal_decision(low, high, "gamma_maximax")[high.argmax()]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (3, 4), (5, 10), (40, 30)])
def test_a_class_that_some_member_ranks_top_stays_in_every_dtype(dtype, shape):
    members, classes = shape
    p = narrowed(batch_of("rounded", members, 400, classes), dtype)
    tops = (p == p.max(axis=-1, keepdims=True)).any(axis=0)
    prediction = wrap(p)
    bounds = p.min(axis=0), p.max(axis=0)
    for rule in CAUTIOUS:
        assert (prediction.predict_set(rule) | ~tops).all(), rule
        assert (credal_decision(*bounds, rule) | ~tops).all(), rule


def test_a_tie_in_float32_by_hand():
    # Member 0 ranks classes 0 and 1 both top.
    prediction = wrap(np.array([[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]], dtype=np.float32))
    for rule in CAUTIOUS:
        np.testing.assert_array_equal(prediction.predict_set(rule), [True, True, False])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["flat", "rounded", "agreeing", "mixed", "near"])
def test_rules_are_nested_up_to_the_last_digit(dtype, kind):
    if kind == "near":  # two classes that differ by a few roundings
        difference = np.linspace(-2e-12, 2e-12, 401)
        p = np.stack([0.5 + difference, 0.5 - difference], axis=-1)[None]
    else:
        p = batch_of(kind, 3, 500, 6)
    prediction = wrap(narrowed(p, dtype))
    dominance, maximal, admissible = (prediction.predict_set(rule) for rule in CAUTIOUS)
    assert admissible.any(axis=-1).all()
    assert (maximal | ~admissible).all()
    assert (dominance | ~maximal).all()


@pytest.mark.parametrize("rule", CAUTIOUS)
def test_of_many_classes_float32_drops_what_float64_drops(rule):
    # Both members give class 0 0.05 % more than any other: far more than float32 rounds, and 2.5e-7 in absolute terms.
    p = np.ones((2, 1, 2000))
    p[:, :, 0] += 5e-4
    p[1, :, 1:] *= np.linspace(1 - 1e-4, 1, 1999)
    p /= p.sum(axis=-1, keepdims=True)
    for dtype in ("float64", "float32"):
        assert wrap(p.astype(dtype)).predict_set(rule).sum() == 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2, 30), (3, 300)])
def test_what_is_possible_in_float64_stays_so_when_its_bounds_are_rounded(dtype, shape):
    spread = 2.0 ** -np.arange(4.0, 44.0)  # from far apart to a tie
    p = 1 + spread[:, None] * np.random.default_rng(3).uniform(-1, 1, (shape[0], 1, shape[1]))
    low, high = probability_intervals(p / p.sum(axis=-1, keepdims=True))
    sets = []
    for rule in CAUTIOUS:
        rounded = credal_decision(narrowed(low, dtype), narrowed(high, dtype), rule)
        assert (rounded | ~credal_decision(low, high, rule)).all(), rule
        sets.append(rounded)
    dominance, maximal, admissible = sets
    assert (maximal | ~admissible).all()
    assert (dominance | ~maximal).all()


def test_a_tie_near_zero_stays_one_in_float16():
    middle = 1.5 * 2.0**-24  # of the two smallest numbers there are: the one bound is rounded up, the other down
    low, high = np.array([middle + 4e-13, 0.0, 0.0]), np.array([1.0, middle - 4e-13, 1.0])
    for rule in CAUTIOUS[:2]:
        assert credal_decision(low, high, rule).all()
        assert credal_decision(low.astype(np.float16), high.astype(np.float16), rule).all()


def test_two_classes_that_rounding_tells_apart_are_a_tie_for_every_rule():
    prediction = wrap([[0.5000000000000002, 0.4999999999999997]])
    for rule in CAUTIOUS:
        np.testing.assert_array_equal(prediction.predict_set(rule), [True, True])


def test_one_distribution_decides_for_its_mode():
    p = np.array([0.2, 0.5, 0.3])
    for rule in ("interval_dominance", "maximality", "e_admissibility", "gamma_maximin", "gamma_maximax"):
        np.testing.assert_array_equal(credal_decision(p, p, rule), [False, True, False])


def test_interval_dominance_by_hand():
    # Class 2 is at most .1 < .5, the lower bound of class 0; class 1 is at most .5, not below it.
    np.testing.assert_array_equal(
        credal_decision([0.5, 0.2, 0.0], [0.8, 0.5, 0.1], "interval_dominance"), [True, True, False]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [4, 1000])
def test_memory_is_that_of_the_result_and_of_a_few_chunks(dtype, classes):
    prediction = wrap(np.full((2, 2_000_000 // classes, classes), 1 / classes, dtype))
    for decided in (prediction.predict_set, lambda: credal_decision(*prediction.intervals, "maximality")):
        decided()
        remains, peak = with_peak(decided)
        assert peak <= remains.nbytes + 16 * CHUNK * 8


def test_batches_equal_rows():
    low, high = probability_intervals(batch_of("flat", 4, 7, 5))
    for rule in ("interval_dominance", "maximality", "e_admissibility"):
        rows = [credal_decision(a, b, rule) for a, b in zip(low, high, strict=True)]
        np.testing.assert_array_equal(credal_decision(low, high, rule), rows)


@pytest.mark.parametrize(("reward", "a", "b"), [(0.65, 1.6, 0.6), (0.8, 2.2, 1.2)])
def test_utilities(reward, a, b):
    n = np.arange(1, 8)
    np.testing.assert_allclose(set_utility(n, True, reward=reward), a / n - b / n**2, atol=1e-15)
    np.testing.assert_array_equal(set_utility(n, False, reward=reward), np.zeros(7))
    assert set_utility(1, True) == 1.0
    with pytest.raises(ValueError, match="at least one class"):
        set_utility(0, True)


@pytest.mark.parametrize(
    ("size", "correct", "error", "message"),
    [
        ([1, 2.5], [True, True], ValueError, r"1 of 2 values of size.*index \(1,\): 2\.5"),
        ([np.nan], [True], ValueError, "nan"),
        ([np.inf], [True], ValueError, "inf"),
        ([2], [0.3], ValueError, r"correct.*index \(0,\): 0\.3"),
        ([1, 2, 3], [True, False], ValueError, r"same shape.*\(3,\) and \(2,\)"),
        ([[1], [2]], [True, False], ValueError, "same shape"),
        ([True, False], [True, True], TypeError, "Sum a mask"),
        (["two"], [True], TypeError, "real numbers"),
    ],
)
def test_what_is_no_set_has_no_utility(size, correct, error, message):
    with pytest.raises(error, match=message):
        set_utility(size, correct)


def test_utilities_come_back_in_kind():
    torch = pytest.importorskip("torch")
    utility = set_utility(torch.tensor([1, 2]), torch.tensor([True, True]))
    assert utility.tolist() == [1.0, 0.65]
    for pair in ((2, torch.tensor([True, False])), ([2, 1], torch.tensor([True, False])), (torch.tensor([2, 1]), True)):
        assert isinstance(set_utility(*pair), torch.Tensor)
    np.testing.assert_array_equal(set_utility([1.0, 2.0], [1, 0]), [1, 0])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "made",
    [
        wrap,
        lambda p: MemberSummary().update(p).prediction(),
        lambda p: wrap([p[0].astype(np.float64).round(1), *p[1:]]),
        lambda p: MemberSummary().update([*p[1:], p[0].astype(np.float64).round(1)]).prediction(),
        lambda p: MemberSummary().update(p[1:]).update(p[:1].astype(np.float64).round(1)).prediction(),
    ],
    ids=["wrap", "summary", "list", "summary of a list", "summary of two precisions"],
)
@pytest.mark.parametrize("rule", CAUTIOUS)
def test_ties_stay_ties_in_narrow_members_however_they_are_combined(rule, made, dtype):
    exact = np.random.default_rng(0).multinomial(10, np.full(5, 0.2), (5, 3000)) / 10
    assert (made(exact.astype(dtype)).predict_set(rule) >= wrap(exact).predict_set(rule)).all()


def test_a_saved_prediction_remembers_how_rough_its_members_were(tmp_path):
    exact = np.random.default_rng(0).multinomial(10, np.full(5, 0.2), (5, 3000)) / 10
    prediction = wrap(exact.astype(np.float16))
    prediction.save(tmp_path / "p.npz")
    assert (CredalPrediction.load(tmp_path / "p.npz").predict_set() == prediction.predict_set()).all()
    assert (prediction.predict_set() == wrap(exact).predict_set()).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rule", CAUTIOUS)
def test_ties_stay_ties_in_half_precision_logits(rule, dtype):
    """Of tenths; in float16 no other class is let in, since tenths are farther apart than its rounding."""
    torch = pytest.importorskip("torch")
    exact = np.random.default_rng(0).multinomial(10, np.full(5, 0.2), (5, 3000)) / 10
    logits = torch.from_numpy(np.log(np.maximum(exact, 1e-5))).to(getattr(torch, dtype))
    expected, found = wrap(exact).predict_set(rule), np.asarray(wrap_logits(logits).predict_set(rule))
    assert (found >= expected).all()
    if (dtype, rule) == ("float16", "interval_dominance"):
        np.testing.assert_array_equal(found, expected)
