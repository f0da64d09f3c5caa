"""Risk control: its laws, its level by simulation with and without ties, MAPIE's numbers, and what it says when it fails."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.guard.binomial import binomial_interval, binomial_tail
from credalens.guard.calibration import Calibration
from credalens.guard.decider import Guard
from credalens.guard.risk.control import last_passed, limits_of, risks_at
from credalens.guard.risk.promise import Risk, read_risks
from credalens.guard.risk.shortfall import inputs_needed
from tests import strategies  # noqa: F401 - its profile of hypothesis

SIGNATURE = {"score": "total", "point": "intersection", "base": 2.0, "classes": 10, "n_members": 5, "trim": 0.0}


def calibration_of(values, wrong, labels=None):
    labels = np.zeros(len(values), int) if labels is None else labels
    return Calibration(**SIGNATURE, values=values, predicted_classes=(labels + wrong) % 10, labels=labels)


def fit(values, wrong, *risks, rate=None, confidence=0.95):
    risks = risks or (Risk(0.05),)
    return Guard.from_calibration(
        calibration_of(values, wrong), false_alarm_rate=rate, risks=risks, confidence=confidence
    )


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.sampled_from([None, 0.1, 0.3]))
def test_limits_are_ordered_and_count_what_lies_below(values, rate):
    ordered = np.sort(np.array(values, float))
    threshold = math.inf if rate is None else float(ordered[int((1 - rate) * len(ordered))])
    limits = limits_of(ordered, threshold)
    assert (np.diff(limits.values) > 0).all()
    np.testing.assert_array_equal(limits.counts, [(ordered < limit).sum() for limit in limits.values])
    assert (limits.values <= math.nextafter(threshold, math.inf)).all()


def oracle(values, wrong, max_error, confidence):
    """The same sequence, limit by limit, by counting."""
    limits = limits_of(np.sort(values), math.inf)
    fewest = math.ceil(math.log(1 - confidence) / math.log1p(-max_error))
    start, found = max(fewest, min(7 * fewest, len(values) // 4), len(values) // 10), None
    for limit in limits.values:
        below = values < limit
        if below.sum() < start:
            continue
        if binomial_tail(int(wrong[below].sum()), int(below.sum()), max_error) > 1 - confidence:
            break
        found = limit
    return found


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.3]), st.booleans())
def test_the_limit_is_that_of_the_sequence(seed, max_error, tied):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 12, 400).astype(float) if tied else rng.random(400)
    wrong = rng.random(400) < 0.2 * values / values.max()
    expected = oracle(values, wrong, max_error, 0.9)
    if expected is None:
        with pytest.raises(ValueError, match=r"can promise|cannot promise"):
            fit(values, wrong, Risk(max_error), confidence=0.9)
    else:
        guard = fit(values, wrong, Risk(max_error), confidence=0.9)
        promise = guard.promises[0]
        below = values < guard.limit
        assert guard.limit == expected
        assert (promise.accepted, promise.errors) == (below.sum(), wrong[below].sum())
        assert promise.p_value <= 0.1 + 1e-12
        assert promise.bound <= max_error + 1e-9
        np.testing.assert_array_equal(guard.accepts(values), below)


@given(st.integers(0, 2**32 - 1))
def test_asking_for_less_accepts_no_less(seed):
    """A larger error, a lower confidence, or one risk fewer."""
    rng = np.random.default_rng(seed)
    values = rng.random(2000)
    data = calibration_of(values, rng.random(2000) < 0.04 * values, rng.integers(0, 2, 2000)).outcomes
    limits = limits_of(np.sort(values), math.inf)

    def place(*risks, confidence=0.9):
        found = last_passed(risks_at(data, risks, limits, confidence))
        return -1 if found is None else found

    strict = place(Risk(0.03))
    assert strict <= place(Risk(0.03), confidence=0.8) or strict == place(Risk(0.03))  # a later start may fail
    assert place(Risk(0.03), Risk(0.06, 1)) <= max(place(Risk(0.03)), place(Risk(0.06, 1)))


def simulated(kind, rng, n):
    """Scores and errors whose rate grows with the score, at 0.05 up to the limit 1; ties are to six values or to one."""
    score = rng.random(n) ** 2 * 2
    if kind == "tied":
        score = np.floor(3 * score) / 3
    elif kind == "saturated":
        score = np.where(score < 0.4, 0.0, score)
    elif kind == "falling":  # most errors where the score is lowest
        return score, rng.random(n) < 0.08 - 0.02 * score
    return score, rng.random(n) < 0.1 * score


def true_risk(kind, limit):
    """The error rate below a limit, by a large fixed sample."""
    score, mean_chance = TRUTH[kind]
    return mean_chance[np.searchsorted(score, limit, side="left")]


def _truth(kind):
    """Scores in order, and the error rate of those before each."""
    score = np.sort(simulated(kind, np.random.default_rng(7), 100_000)[0])
    chance = 0.08 - 0.02 * score if kind == "falling" else 0.1 * score
    return score, np.append(0.0, np.cumsum(chance) / np.arange(1, len(score) + 1))


TRUTH = {kind: _truth(kind) for kind in ("free", "tied", "saturated", "falling")}


@pytest.mark.parametrize("kind", ["tied", "saturated"])
def test_the_promise_holds_with_ties(kind):
    """Calibration sets of 600: the accepted error is above the promise in at most one of ten."""
    rng, broken, promised, draws = np.random.default_rng(3), 0, 0, 1_500
    for _ in range(draws):
        values, wrong = simulated(kind, rng, 600)
        limits = limits_of(np.sort(values), math.inf)
        place = last_passed(risks_at(calibration_of(values, wrong).outcomes, [Risk(0.05)], limits, 0.9))
        if place is not None:
            promised += 1
            broken += true_risk(kind, limits.values[place]) > 0.05
    assert binomial_interval(broken, draws, level=0.998)[0] <= 0.1
    assert promised > 0.95 * draws  # and it is used: promised often, broken at a rate of its order
    assert broken > 0.02 * draws


@pytest.mark.parametrize("kind", ["free", "falling"])
def test_the_promise_holds_in_ten_thousand_draws(kind):
    """Without ties all draws have the same counts below their limits, so that they are tested together."""
    rng, n = np.random.default_rng(4), 600
    values, wrong = simulated(kind, rng, (10_000, n))
    order = values.argsort(axis=1)
    values, wrong = (np.take_along_axis(x, order, axis=1) for x in (values, wrong))
    counts = limits_of(values[0], math.inf).counts
    start = n // 4  # 7 times the fewest, 45, are more
    most = [max((k for k in range(c) if binomial_tail(k, c, 0.05) <= 0.1), default=-1) for c in counts.tolist()]
    passed = (wrong.cumsum(axis=1)[:, counts - 1] <= np.array(most)) | (counts < start)
    last = passed.cumprod(axis=1).sum(axis=1) - 1
    limits = np.append(values, np.full((10_000, 1), np.inf), axis=1)[np.arange(10_000), counts[last]]
    promised = counts[last] >= start
    for row in range(20):
        tested = risks_at(
            calibration_of(values[row], wrong[row]).outcomes, [Risk(0.05)], limits_of(values[row], math.inf), 0.9
        )
        assert last_passed(tested) == (last[row] if promised[row] else None)
    broken = promised & (true_risk(kind, limits) > 0.05)
    low, high = binomial_interval(int(broken.sum()), 10_000, level=0.999)
    assert low <= 0.1
    assert high > (0.05 if kind == "free" else 0)


def test_a_false_alarm_rate_limits_what_is_accepted():
    rng = np.random.default_rng(0)
    values, wrong = rng.random(2000), np.zeros(2000, bool)
    guard = fit(values, wrong, rate=0.1)
    assert guard.limit <= guard.threshold
    assert 0.88 <= guard.accepts(values).mean() <= 0.9
    tied = np.repeat([0.0, 1.0, 2.0], [1000, 900, 100])
    guard = fit(tied, wrong, rate=0.1)
    assert (guard.threshold, guard.accepts(tied).mean()) == (1.0, 0.95)


def test_several_risks_are_kept_at_once():
    rng = np.random.default_rng(0)
    values, labels = rng.random(4000), rng.integers(0, 3, 4000)
    wrong = rng.random(4000) < 0.1 * values * (labels + 1) / 2
    data = calibration_of(values, wrong, labels)
    risks = (Risk(0.05), *(Risk(0.08, k, "true") for k in range(3)))
    guard = Guard.from_calibration(data, false_alarm_rate=None, risks=risks)
    accepted = guard.accepts(values)
    assert [promise.errors for promise in guard.promises] == [
        wrong[accepted].sum(),
        *(wrong[accepted & (labels == k)].sum() for k in range(3)),
    ]
    assert all(promise.bound <= promise.max_error for promise in guard.promises)
    alone = Guard.from_calibration(data, false_alarm_rate=None, risks=risks[:1])
    assert guard.limit <= alone.limit


def test_the_promise_of_several_risks_holds():
    """Errors of 10 % and 20 % of the score in two classes: below a limit t, 7.5 % of t in all and 10 % of t in class 1."""
    rng, draws, broken, promised = np.random.default_rng(6), 600, 0, 0
    risks = [Risk(0.05), Risk(0.06, 1)]
    for _ in range(draws):
        values, labels = rng.random(1500), rng.integers(0, 2, 1500)
        wrong = rng.random(1500) < 0.1 * values * (1 + labels)
        limits = limits_of(np.sort(values), math.inf)
        place = last_passed(risks_at(calibration_of(values, wrong, labels).outcomes, risks, limits, 0.9))
        if place is not None:
            limit = min(1.0, limits.values[place])
            promised += 1
            broken += 0.075 * limit > 0.05 or 0.1 * limit > 0.06
    assert binomial_interval(broken, draws, level=0.998)[0] <= 0.1
    assert promised > 0.5 * draws


def test_classes_are_true_or_predicted_ones():
    predicted, labels = np.array([0, 1, 1]), np.array([0, 0, 1])
    assert Risk(0.1, 1).concerns(predicted, labels).tolist() == [False, False, True]
    assert Risk(0.1, 1, "predicted").concerns(predicted, labels).tolist() == [False, True, True]
    assert [risk.name for risk in read_risks(0.1, {3: 0.2}, "true", 10)] == ["error rate", "error rate of true class 3"]
    assert len(read_risks(None, 0.2, "predicted", 4)) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, None, "true", 3), "max_error must lie strictly between 0 and 1"),
        ((None, {3: 0.1}, "true", 3), "a class of max_class_error must be at most 2"),
        ((None, {0: 0.0}, "true", 3), "max_class_error must lie strictly between 0 and 1"),
        ((0.1, None, "named", 3), "class_by must be one of 'true', 'predicted'"),
    ],
)
def test_bad_risks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        read_risks(*arguments)


def test_too_few_inputs_say_how_many_are_needed():
    with pytest.raises(
        ValueError, match=r"100 calibration inputs cannot promise .* at most 100 accepted .* at least 149"
    ):
        fit(np.arange(100.0), np.zeros(100, bool), Risk(0.02))
    guard = fit(np.arange(149.0), np.zeros(149, bool), Risk(0.02))
    assert guard.promises[0].accepted == 149


def test_too_many_errors_say_how_far_it_is():
    wrong = np.arange(1000) % 50 == 0
    with pytest.raises(
        ValueError,
        match=r"'total' .* at most 0.03 with 0.95 .* has 5 errors among 250 of the 1,000 .* promise 0.04\d+. With",
    ) as e:
        fit(np.arange(1000.0), wrong, Risk(0.03))
    needed = int(str(e.value).split(" about ")[1].split()[0].replace(",", ""))
    assert 1000 < needed < 10_000
    assert fit(np.arange(1.2 * needed), np.arange(1.2 * needed) % 50 == 0, Risk(0.03)).limit == math.inf
    with pytest.raises(ValueError, match="More data will hardly help: allow more errors, or use another score"):
        fit(np.arange(1000.0), np.arange(1000) % 10 == 0, Risk(0.03))


@given(st.floats(0, 0.02), st.sampled_from([0.03, 0.1]))
def test_the_inputs_needed_are_enough(rate, max_error):
    needed = inputs_needed(rate, max_error, 0.95)
    assert binomial_tail(math.ceil(rate * needed), needed, max_error) <= 0.05


def test_p_values_and_choice_are_those_of_mapie():
    methods = pytest.importorskip("mapie.risk_control.methods")
    fwer = pytest.importorskip("mapie.risk_control.fwer_control")
    rng = np.random.default_rng(5)
    values = rng.random(3000)
    wrong = rng.random(3000) < 0.06 * values
    limits = limits_of(np.sort(values), math.inf)
    [tested] = risks_at(calibration_of(values, wrong).outcomes, [Risk(0.03)], limits, 0.9)
    large = np.flatnonzero(tested.large_enough())
    rates, n = tested.errors[large] / tested.accepted[large], tested.accepted[large].astype(float)
    theirs = methods.compute_hoeffding_bentkus_p_value(rates - 1e-12 * (rates > 0), n, 0.03, binary=True)[:, 0]
    ours = [tested.p_value(place) for place in large.tolist()]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    chosen = fwer.FWERFixedSequenceTesting().run(theirs, 0.1)
    assert last_passed([tested]) == large[chosen[-1]]
