"""A guard with sets, what it did on other data, and whether its promises hold there."""

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import ConformalSets, Guard
from credalens.guard.binomial import binomial_interval, conformal_excess
from credalens.guard.decisions import PromiseCheck
from credalens.guard.signature import Signature
from tests.strategies import batch_of


def data(rows, seed, *, shift=0.0):
    """Members whose mean names the right class, the more often the surer they are; ``shift`` flattens them."""
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(rows, 4)) * (1 - shift)
    members = np.exp(z + rng.normal(size=(5, rows, 4)))
    members /= members.sum(axis=-1, keepdims=True)
    chances = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    labels = (chances.cumsum(axis=-1) < rng.random((rows, 1))).sum(axis=-1)
    return wrap(members), np.minimum(labels, 3)


CALIBRATION, LABELS = data(3000, 0)
SETS = ConformalSets.fit(CALIBRATION, LABELS, alpha=0.1)
PLAIN = Guard.fit(CALIBRATION, LABELS, sets=SETS, largest_set=2)
STRICT = Guard.fit(CALIBRATION, LABELS, sets=SETS, largest_set=2, max_error=0.05, max_class_error={1: 0.1})
NEW, TRUTH = data(2000, 1)


@pytest.mark.parametrize("guard", [PLAIN, STRICT], ids=["plain", "strict"])
def test_a_small_set_stands_in_for_a_single_class(guard):
    decided = guard.decide(NEW)
    sizes, like = SETS.predict_set(NEW).sum(axis=-1), decided.p_value > 0.05
    assert {*np.unique(decided.decision)} == {"accept", "offer", "abstain"}
    np.testing.assert_array_equal(decided.set, SETS.predict_set(NEW))
    np.testing.assert_array_equal(decided.accepted, decided.decision == "accept")
    assert (decided.decision[~like] == "abstain").all()
    offered = decided.decision == "offer"
    assert ((sizes[offered] >= 1) & (sizes[offered] <= 2)).all()
    assert (sizes[like & (decided.decision == "abstain")] > 2).all()
    if guard is PLAIN:
        np.testing.assert_array_equal(decided.accepted, like & (sizes == 1))
    else:
        np.testing.assert_array_equal(decided.accepted, guard.accepts(decided.scores))


def test_an_empty_set_is_handed_over():
    sets = ConformalSets.fit(CALIBRATION, LABELS, alpha=0.5, allow_empty=True)
    guard = Guard.fit(CALIBRATION, sets=sets)
    decided, sizes = guard.decide(NEW), sets.predict_set(NEW).sum(axis=-1)
    like = decided.p_value > 0.05
    assert (sizes == 0).any()
    np.testing.assert_array_equal(decided.reason == "no class is possible", like & (sizes == 0))


def test_a_guard_with_sets_comes_back_from_its_file(tmp_path):
    STRICT.save(tmp_path / "guard.json")
    again = Guard.load(tmp_path / "guard.json")
    assert again.digest == STRICT.digest
    np.testing.assert_array_equal(again.decide(NEW).decision, STRICT.decide(NEW).decision)


def test_sets_of_other_classes_are_refused():
    other = ConformalSets.fit(wrap(batch_of("flat", 5, 50, 3)), np.arange(50) % 3)
    with pytest.raises(ValueError, match="the sets are for 3 classes and the prediction has 4"):
        Guard.fit(CALIBRATION, sets=other)
    with pytest.raises(TypeError, match=r"sets must be what ConformalSets.fit.*got float"):
        Guard.fit(CALIBRATION, sets=0.1)


def test_the_check_of_a_guard_is_also_that_of_its_sets():
    """Before the first row is decided about: a table has to pass it once for all parts."""
    members = batch_of("flat", 3, 60, 4)
    guard = Guard.fit(CALIBRATION, sets=ConformalSets.fit(wrap(members), np.arange(60) % 4, alpha=0.2))
    for signature in (Signature.of(NEW), Signature.of(wrap(members))):
        with pytest.raises(ValueError, match=r"this was fitted with \d members and the prediction has \d"):
            guard.check(signature)
    assert STRICT.check(Signature.of(NEW)) is None


def test_promises_hold_on_new_data_and_break_where_the_data_change():
    checks = {check.name: check for check in STRICT.check_promises(NEW, TRUTH)}
    assert list(checks) == [
        "false-alarm rate",
        "error rate",
        "error rate of true class 1",
        "sets without the true class",
    ]
    assert all(check.kept for check in checks.values())
    decided = STRICT.decide(NEW)
    wrong = NEW.predict() != TRUTH
    assert checks["error rate"].observed == wrong[decided.accepted].mean()
    assert checks["false-alarm rate"].observed == (decided.scores > STRICT.threshold).mean()
    assert checks["sets without the true class"].hits == (~decided.set[np.arange(2000), TRUTH]).sum()
    assert all(check.low <= check.observed <= check.high for check in checks.values())
    drifted = {check.name: check for check in STRICT.check_promises(*data(2000, 2, shift=0.8))}
    assert not drifted["false-alarm rate"].kept
    assert not drifted["sets without the true class"].kept
    mislabelled = STRICT.check_promises(NEW, (TRUTH + 1) % 4)[1]
    assert mislabelled.low > 0.05
    assert not mislabelled.kept
    assert [check.name for check in STRICT.check_promises(NEW)] == ["false-alarm rate"]
    for check in (*checks.values(), *drifted.values(), mislabelled):
        assert check.promised <= check.holds_up_to
        assert check.kept == ((check.observed or 0) <= check.holds_up_to)


def test_a_guard_that_accepts_nothing_keeps_its_promise_about_errors():
    check = PromiseCheck("error rate", 0.05, hits=0, n=0)
    assert check.kept
    assert (check.holds_up_to, check.low, check.high, check.observed) == (1.0, 0.0, 1.0, None)


def test_a_check_doubts_a_kept_promise_rarely():
    """2,000 times 99 calibration and 400 new scores of one kind: called broken in at most 2.5 %."""
    rng, broken = np.random.default_rng(0), 0
    for _ in range(2000):
        threshold = np.sort(rng.random(99))[-5]
        broken += conformal_excess(int((rng.random(400) > threshold).sum()), 400, 0.05, 99) <= 0.025
    low, high = binomial_interval(broken, 2000, level=0.998)
    assert low <= 0.025
    assert high >= 0.015


@given(st.lists(st.integers(1, 1999), max_size=4, unique=True))
def test_counts_of_parts_add_up(cuts):
    edges = [0, *sorted(cuts), 2000]
    parts = [slice(a, b) for a, b in pairwise(edges)]
    total = reduce(add, (STRICT.count(NEW[part], TRUTH[part]) for part in parts))
    whole = STRICT.count(NEW, TRUTH)
    assert total == whole
    assert whole.accepted + whole.offered <= whole.rows
