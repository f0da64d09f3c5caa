"""A promise about the expected cost of accepted actions: kept as often as it says, also of few and of rare, dear errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.guard import Guard
from credalens.guard.cost_risk import cheapest_action, mean_above
from credalens.guard.signature import CalibrationData, Signature
from credalens.prediction import wrap
from tests.core.test_recalibration import overconfident

REFUSE = np.array([[0.0, 5.0], [1.0, 0.0], [0.7, 0.7]])  # call it 0, call it 1, ask a person
SIGNATURE = Signature(2, 5, 0.0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: (rng.random(n) < 0.1).astype(float),
        lambda rng, n: 0.2 * rng.random(n),
        lambda rng, n: np.where(rng.random(n) < 0.01, 1.0, 0.0909 * rng.random(n) * 2),
        lambda rng, n: np.full(n, 0.1),
    ],
    ids=["errors", "uniform", "rare and dear", "all the same"],
)
@pytest.mark.parametrize("n", [30, 200])
def test_a_mean_at_the_edge_is_called_below_it_as_rarely_as_it_says(draw, n):
    """Of 2,000 samples whose expectation is the tested one 5 % may be; 6.5 % come once in a thousand such tests."""
    rng = np.random.default_rng(0)
    rejected = sum(mean_above(draw(rng, n), 0.1, 0.05) <= 0.05 for _ in range(2000))
    assert rejected <= 0.065 * 2000


def test_means_that_are_clearly_below_are_seen():
    rng = np.random.default_rng(1)
    seen = sum(mean_above((rng.random(300) < 0.04).astype(float), 0.1, 0.05) <= 0.05 for _ in range(200))
    assert seen > 150


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 0.98))
def test_values_that_never_lie_below_say_nothing_and_each_of_none_says_more(values, mean):
    values = np.array(values)
    assert 0 < mean_above(values, mean, 0.05) <= 1
    assert mean_above(np.maximum(values, mean), mean, 0.05) == 1
    assert mean_above(np.zeros(len(values) + 1), mean, 0.05) < mean_above(np.zeros(len(values)), mean, 0.05) < 1


def made(rng, n):
    """Scores and labels; the costs of the actions that are taken grow with the score."""
    scores = rng.random(n)
    actions = rng.integers(0, 2, n)
    wrong = rng.random(n) < 0.3 * scores
    return scores, actions, np.where(wrong, 1 - actions, actions)


def expected_cost(limit):
    """Of actions below a limit: half of the errors cost 5, half of them 1, and 0.3 s of the inputs with score s are errors."""
    return 3.0 * 0.15 * min(limit, 1.0)


@pytest.mark.parametrize("n", [1000, 2500])
def test_the_promise_is_kept_as_often_as_it_says(n):
    rng, fitted, broken = np.random.default_rng(2), 0, 0
    for _ in range(300):
        scores, actions, labels = made(rng, n)
        data = CalibrationData(SIGNATURE, "total", "intersection", scores, actions, labels)
        try:
            guard = Guard.from_calibration(data, false_alarm_rate=None, cost=(REFUSE, actions, 0.25))
        except ValueError:
            continue
        fitted += 1
        broken += expected_cost(guard.limit) > 0.25
    assert fitted > 100
    assert broken <= 0.08 * 300


@pytest.fixture
def data():
    logits, labels = overconfident(3000, classes=2, factor=1.0)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return p, labels


def test_it_acts_promises_and_is_saved(data, tmp_path):
    p, labels = data
    fit = wrap(p[:, :2000])
    guard = Guard.fit(fit, labels[:2000], costs=REFUSE, max_cost=0.6, false_alarm_rate=None)
    assert guard.cost.mean_cost < guard.cost.bound <= 0.6
    guard.save(tmp_path / "guard.json")
    loaded, new = Guard.load(tmp_path / "guard.json"), wrap(p[:, 2000:])
    decided = loaded.decide(new)
    expected = (np.asarray(new.probability) @ REFUSE.T).argmin(-1)
    np.testing.assert_array_equal(decided.action, expected)
    np.testing.assert_array_equal(decided.accepted, guard.decide(new).accepted)
    counts = loaded.count(new, labels[2000:])
    accepted = np.asarray(decided.accepted)
    assert counts.cost.observed == pytest.approx(REFUSE[expected, labels[2000:]][accepted].mean())
    assert counts.cost.kept
    first, rest = loaded.count(new[:300], labels[2000:2300]), loaded.count(new[300:], labels[2300:])
    assert (first + rest).cost.observed == pytest.approx(counts.cost.observed)


def test_a_tighter_promise_accepts_less(data):
    p, labels = data
    fitted = [
        Guard.fit(wrap(p), labels, costs=REFUSE, max_cost=most, false_alarm_rate=None, score="mean_total")
        for most in (0.35, 0.42)
    ]
    assert fitted[0].limit < fitted[1].limit


def test_errors_and_costs_are_promised_together(data):
    p, labels = data
    guard = Guard.fit(wrap(p), labels, costs=REFUSE, max_cost=0.6, max_error=0.3, score="mean_total")
    alone = Guard.fit(wrap(p), labels, max_error=0.3, score="mean_total")
    assert guard.limit <= alone.limit
    assert "expected cost <= 0.6" in repr(guard)


def test_the_cheapest_action_is_that_of_the_expected_costs(data):
    p, _ = data
    prediction = wrap(p[:, :50])
    for point, probs in (("intersection", prediction.probability), ("mean", prediction.mean)):
        slow = [min(range(3), key=lambda a, row=row: sum(REFUSE[a] * row)) for row in np.asarray(probs)]
        assert cheapest_action(prediction, REFUSE, point).tolist() == slow


class TestRefusals:
    @pytest.mark.parametrize(
        ("costs", "words"),
        [
            (np.ones((3, 3)), r"here \(actions, 2\)"),
            (np.ones((1, 2)), "at least two actions"),
            ([[0.0, np.nan], [1.0, 0.0]], "not finite"),
            (np.ones((3, 2)), "nothing to decide"),
            ([1.0, 2.0], "must have shape"),
        ],
    )
    def test_costs_that_are_none(self, data, costs, words):
        p, labels = data
        with pytest.raises(ValueError, match=words):
            Guard.fit(wrap(p), labels, costs=costs, max_cost=0.5)

    def test_half_of_what_is_needed(self, data):
        p, labels = data
        for options in ({"costs": REFUSE}, {"max_cost": 0.5}):
            with pytest.raises(ValueError, match="needs both"):
                Guard.fit(wrap(p), labels, **options)
        with pytest.raises(ValueError, match="needs labels"):
            Guard.fit(wrap(p), costs=REFUSE, max_cost=0.5)

    @pytest.mark.parametrize("most", [-1.0, 0.0, 5.0, 9.0])
    def test_promises_that_are_empty_or_cannot_be(self, data, most):
        p, labels = data
        with pytest.raises(ValueError, match="between the lowest and highest"):
            Guard.fit(wrap(p), labels, costs=REFUSE, max_cost=most)

    def test_a_promise_that_these_data_cannot_keep(self, data):
        p, labels = data
        with pytest.raises(ValueError, match="Allow a higher cost, add an action that hands over"):
            Guard.fit(wrap(p[:, :200]), labels[:200], costs=REFUSE[:2], max_cost=0.05)

    def test_actions_without_costs(self, data):
        p, labels = data
        with pytest.raises(ValueError, match="fit it with costs="):
            Guard.fit(wrap(p), labels, max_error=0.4, score="mean_total").decide(wrap(p)).action  # noqa: B018
