"""Risk control: its laws, its level by simulation with and without ties, MAPIE's numbers, and what it says when it fails."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens.guard.binomial import binomial_interval, binomial_tail
from credalens.guard.decider import Guard
from credalens.guard.limit_search import _smooth_errors, refused_share
from credalens.guard.risk import Plan, Risk, last_passed, limits_of, plan_of, read_risks, risks_at
from credalens.guard.signature import CalibrationData, Signature
from tests import strategies  # noqa: F401 - its profile of hypothesis

SIGNATURE = Signature(classes=10, n_members=5, trim=0.0)


def calibration_of(values, wrong, labels=None):
    labels = np.zeros(len(values), int) if labels is None else labels
    return CalibrationData(SIGNATURE, "total", "intersection", values, (labels + wrong) % 10, labels)


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
    below = [((ordered < limit) & (ordered <= threshold)).sum() for limit in limits.values]
    np.testing.assert_array_equal(limits.counts, below)
    distinct = np.unique(ordered[ordered <= threshold])
    once = rate is not None and (ordered == threshold).sum() == 1  # which a guard need not see again
    assert len(limits.counts) == len(distinct) - once


def plan_by_hand(counts, n, max_error, delta):
    """Where sequences begin with which share, and from which limit on all hundredths are tried, by the words."""

    def fewest(share):
        return next(m for m in range(1, 10**6) if (1 - max_error) ** m <= share * delta * (1 + 1e-9))

    def first(size):
        return next((place for place, count in enumerate(counts) if count >= size), None)

    few = first(fewest(0.95))
    if few is None:
        alone = first(fewest(1))
        return None if alone is None else ({alone: 1.0}, alone)
    many = counts[few] >= n / 10
    share = 0.95 if many else 0.2
    start = first(fewest(share))
    if start is None:
        return {few: 1.0}, few
    begin = max(start, first(max(fewest(1), min(7 * fewest(1), counts[-1] // 4), counts[-1] // 10)))
    starts = Counter({start: share})
    starts[begin] += 0.95 - share
    starts[max(begin, first(0.6 * counts[-1]))] += 0.05
    return {place: part for place, part in starts.items() if part > 0}, begin


def tried_by_hand(counts, plan):
    starts, begin = plan
    hundredths = np.linspace(0, counts[-1], 101).astype(int)[1:]
    tried = {next(i for i, count in enumerate(counts) if count >= h) for h in hundredths}
    return sorted({*starts, begin, *(i for i in tried if i > begin)})


def oracle(values, wrong, max_error, delta):
    """The two sequences, limit by limit, by counting."""
    candidates = [*np.unique(values)[1:], math.inf]
    counts = [int((values < limit).sum()) for limit in candidates]
    plan = plan_by_hand(counts, len(values), max_error, delta)
    found, share = None, 0.0
    for place in [] if plan is None else tried_by_hand(counts, plan):
        share += plan[0].get(place, 0.0)
        below = values < candidates[place]
        p_value = binomial_tail(int(wrong[below].sum()), int(below.sum()), max_error)
        if share and p_value <= share * delta * (1 + 1e-12):
            found = candidates[place]
        else:
            share = 0.0
    return found


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1, 0.3]), st.booleans(), st.sampled_from([30, 150, 400, 2000])
)
def test_the_limit_is_that_of_the_sequences(seed, max_error, tied, n):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 12, n).astype(float) if tied else rng.permutation(np.arange(n) / n)
    wrong = rng.random(n) < 0.2 * values / values.max()
    expected = oracle(values, wrong, max_error, 0.1)
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


def test_sixty_sure_rows_are_enough_and_so_is_a_tail_of_errors():
    values = np.arange(500.0)
    guard = fit(values, values >= 60, Risk(0.05))
    assert (guard.promises[0].accepted, guard.promises[0].errors) == (60, 0)
    with pytest.raises(ValueError, match=r"no limit of .total. can promise an error rate of at most 0\.05"):
        fit(values, values >= 58, Risk(0.05))
    spread = np.isin(values, [20, 130, 220, 300, 380])  # an error among the first, and few later
    assert fit(values, spread, Risk(0.05)).promises[0].accepted > 400


def test_more_of_the_same_rows_are_promised_no_less():
    for n in (400, 800, 1600, 3200):
        values = np.arange(n, dtype=float)
        accepted = fit(values, np.arange(n) % 100 == 99, Risk(0.05)).promises[0].accepted
        assert accepted == n


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


def searched(data, risks, confidence=0.9):
    """The limit of the sequences; None where nothing is promised."""
    limits = limits_of(np.sort(data.scores), math.inf)
    tested = risks_at(data, risks, limits, confidence)
    place = last_passed(tested, limits, plan_of(tested, limits))
    return None if place is None else limits.values[place]


@pytest.mark.parametrize("kind", ["tied", "saturated"])
def test_the_promise_holds_with_ties(kind):
    """Calibration sets of 600: the accepted error is above the promise in at most one of ten."""
    rng, broken, promised, draws = np.random.default_rng(3), 0, 0, 1_500
    for _ in range(draws):
        values, wrong = simulated(kind, rng, 600)
        limit = searched(calibration_of(values, wrong), [Risk(0.05)])
        if limit is not None:
            promised += 1
            broken += true_risk(kind, limit) > 0.05
    assert binomial_interval(broken, draws, level=0.998)[0] <= 0.1
    assert promised > 0.95 * draws  # and it is used: promised often, broken at a rate of its order
    assert broken > 0.02 * draws


@pytest.mark.parametrize("n", [60, 150, 600])
@pytest.mark.parametrize("kind", ["free", "falling"])
def test_the_promise_holds_in_ten_thousand_draws(kind, n):
    """Without ties all draws have the same counts below their limits, so that they are tested together."""
    rng = np.random.default_rng(4)
    values, wrong = simulated(kind, rng, (10_000, n))
    order = values.argsort(axis=1)
    values, wrong = (np.take_along_axis(x, order, axis=1) for x in (values, wrong))
    counts = list(range(1, n + 1))
    plan = plan_by_hand(counts, n, 0.05, 0.1)
    limits, share = np.full(10_000, -np.inf), np.zeros(10_000)
    errors = wrong.cumsum(axis=1)
    beyond = np.append(values, np.full((10_000, 1), np.inf), axis=1)
    for place in tried_by_hand(counts, plan):
        share = share + plan[0].get(place, 0.0)
        tails = np.array([binomial_tail(k, place + 1, 0.05) for k in range(place + 2)])
        passed = (tails[errors[:, place]] <= 0.1 * share * (1 + 1e-12)) & (share > 0)
        limits, share = np.where(passed, beyond[:, place + 1], limits), np.where(passed, share, 0.0)
    for row in range(20):
        found = searched(calibration_of(values[row], wrong[row]), [Risk(0.05)])
        assert (-np.inf if found is None else found) == limits[row]
    broken = (limits > -np.inf) & (true_risk(kind, limits) > 0.05)
    low, high = binomial_interval(int(broken.sum()), 10_000, level=0.999)
    assert low <= 0.1
    assert high > (0.05 if (kind, n) == ("free", 600) else 0)


@pytest.mark.parametrize(("n", "max_error"), [(200, 0.05), (200, 0.1), (600, 0.05), (2000, 0.05), (60, 0.05)])
def test_how_many_calibration_sets_are_refused_is_what_a_simulation_says(n, max_error):
    """Errors as frequent at every limit: at the allowed rate, below and above."""
    values, rng = np.arange(float(n)), np.random.default_rng(n)
    clean = fit(values, np.zeros(n, bool), Risk(max_error))
    limits = limits_of(values, math.inf)
    [tested] = risks_at(calibration_of(values, np.zeros(n, bool)), [Risk(max_error)], limits, 0.95)
    plan = plan_of([tested], limits)
    for rate in (0.2 * max_error, 0.6 * max_error, 1.02 * max_error):
        wrong = rng.random((2000, n)) < rate
        errors = wrong.cumsum(axis=1)
        passed = np.zeros(2000, bool)
        for place, share in plan.starts.items():
            tails = np.array([binomial_tail(k, place + 1, max_error) for k in range(place + 2)])
            passed |= tails[errors[:, place]] <= 0.05 * share * (1 + 1e-12)
        low, high = binomial_interval(int((~passed).sum()), 2000, level=0.999)
        assert low <= refused_share(tested, plan, rate) <= high
    promise = clean.promises[0]
    assert promise.refused == refused_share(tested, plan, 0.0) == 0.0
    assert promise.highest == binomial_interval(0, n)[1]
    assert promise.refused_at_highest == refused_share(tested, plan, promise.highest)


def test_a_lucky_guard_is_seen_for_what_it_is():
    """Of calibration sets with 1.02 times the allowed error rate nearly all are refused; what is returned says so."""
    rng, returned = np.random.default_rng(0), []
    for _ in range(400):
        try:
            returned.append(fit(np.arange(200.0), rng.random(200) < 0.051, Risk(0.05)))
        except ValueError:
            continue
    assert 1 <= len(returned) <= 40
    for guard in returned:
        assert guard.promises[0].refused_at_highest >= 0.9


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
        limit = searched(calibration_of(values, wrong, labels), risks)
        if limit is not None:
            limit = min(1.0, limit)
            promised += 1
            broken += 0.075 * limit > 0.05 or 0.1 * limit > 0.06
    assert binomial_interval(broken, draws, level=0.998)[0] <= 0.1
    assert promised > 0.5 * draws


def test_classes_are_true_or_predicted_ones():
    predicted, labels = np.array([0, 1, 1]), np.array([0, 0, 1])
    assert Risk(0.1, 1).concerns(predicted, labels, {}).tolist() == [False, False, True]
    assert Risk(0.1, 1, "predicted").concerns(predicted, labels, {}).tolist() == [False, True, True]
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
    with pytest.raises(ValueError, match=r"100 calibration inputs cannot promise .* at least 149"):
        fit(np.arange(100.0), np.zeros(100, bool), Risk(0.02))
    guard = fit(np.arange(149.0), np.zeros(149, bool), Risk(0.02))
    assert guard.promises[0].accepted == 149


def refusals(curve, max_error, n, *, draws=60, seed=1):
    """What refusals say of calibration sets whose error rate at a score from 0 to 1 is given; none where it is promised."""
    rng, words = np.random.default_rng(seed), []
    for _ in range(draws):
        u = rng.random(n)
        try:
            fit(u, rng.random(n) < curve(u), Risk(max_error))
        except ValueError as error:
            words.append(str(error))
    return words


def accepted_share(curve, max_error, n, *, draws=60, seed=2):
    return 1 - len(refusals(curve, max_error, n, draws=draws, seed=seed)) / draws


def needed_by(message):
    """The numbers of inputs that a refusal names, if errors are as frequent as observed and as they may be."""
    named = re.search(r"about ([\d,]+) calibration inputs .* every second case, and (?:about ([\d,]+)|more)", message)
    return named and [number and int(number.replace(",", "")) for number in named.groups()]


def test_too_many_errors_say_how_far_it_is():
    with pytest.raises(
        ValueError,
        match=r"2 errors in 60 \(enough for 0.\d+\) and 7 errors in 300 .* about",
    ) as e:
        fit(np.arange(500.0), np.arange(500) % 45 == 0, Risk(0.05))
    needed, cautious = needed_by(str(e.value))
    assert 500 < needed < cautious
    assert "as these data leave possible at 80% confidence" in str(e.value)
    assert fit(np.arange(1.2 * needed), np.arange(1.2 * needed) % 45 == 0, Risk(0.05)).promises[0].accepted > 100


@pytest.mark.parametrize("n", [150, 500])
@pytest.mark.parametrize(
    ("rate", "max_error", "share_of_none"), [(0.2, 0.05, 0.8), (0.5, 0.1, 0.8), (0.1, 0.05, 0.0), (0.06, 0.05, 0.0)]
)
def test_no_number_is_named_where_none_would_do(rate, max_error, share_of_none, n):
    """The lowest leading run of errors as frequent everywhere is chance; at most a tenth of refusals may believe it."""
    words = refusals(lambda u: rate + 0 * u, max_error, n)
    named = sum(" about " in text for text in words)
    assert binomial_interval(named, len(words), level=0.998)[0] <= 0.1
    none = sum("more inputs like these can promise it for a smaller share of them at most" in text for text in words)
    unclear = sum("these data cannot tell whether more inputs would do" in text for text in words)
    assert named + none + unclear == len(words)
    assert none >= share_of_none * len(words)


def test_none_is_seldom_said_where_a_number_would_do():
    words = refusals(lambda u: 0.045 + 0 * u, 0.05, 300, draws=200)
    assert binomial_interval(sum("smaller share" in text for text in words), len(words), level=0.998)[0] <= 0.025


CURVES = {
    "even": (lambda u: 0.03 + 0 * u, 0.05, 500),
    "rising": (lambda u: 0.02 + 0.04 * u, 0.05, 500),
    "steep": (lambda u: 0.06 + 0.2 * u, 0.1, 2000),
}


@pytest.mark.parametrize("kind", CURVES)
def test_as_many_inputs_as_a_refusal_names_at_most_are_promised_in_every_second_case(kind):
    """New data with the same error rates, as many as each refusal names for the rates that its data leave possible."""
    curve, max_error, n = CURVES[kind]
    named = [needed_by(text) for text in refusals(curve, max_error, n, draws=120) if " about " in text]
    assert len(named) >= 8
    kept = [accepted_share(curve, max_error, cautious or 50_000, draws=4) for _, cautious in named]
    assert np.mean(kept) >= 0.5


def test_if_errors_are_as_frequent_as_here_every_second_case_is_promised():
    """The first number, where the rates that it takes for granted are the true ones, of ten refusals."""
    rng, values, shares = np.random.default_rng(5), np.arange(500.0), []
    while len(shares) < 10:
        wrong = rng.random(500) < 0.03
        try:
            fit(values, wrong, Risk(0.05))
        except ValueError as error:
            if not (named := needed_by(str(error))):
                continue
            [tested] = risks_at(calibration_of(values, wrong), [Risk(0.05)], limits_of(values, math.inf), 0.95)
            rates = np.diff(_smooth_errors(tested, None), prepend=0.0)
            shares.append(accepted_share(lambda u, r=rates: r[(u * 500).astype(int)], 0.05, named[0], draws=40))
    assert 0.35 <= np.mean(shares) <= 0.75


def test_what_more_inputs_can_promise_for_a_smaller_share_only_is_said_with_its_interval():
    with pytest.raises(
        ValueError,
        match=r"the 150 most certain .* 0\.1 \(15 errors, 95 % interval 0.0\d+ to 0.16\).*Allow more errors",
    ):
        fit(np.arange(1000.0), np.arange(1000) % 10 == 0, Risk(0.03))


def test_two_ways_to_promise_nothing_are_the_same():
    data = calibration_of(np.arange(100.0), np.zeros(100, bool))
    none, zero = (Guard.from_calibration(data, false_alarm_rate=rate, risks=(Risk(0.05),)) for rate in (None, 0))
    assert none.digest == zero.digest
    for rate in (None, 0, 0.0):
        with pytest.raises(ValueError, match="nothing to promise: give a false_alarm_rate"):
            Guard.from_calibration(data, false_alarm_rate=rate)


def test_p_values_and_choice_are_those_of_mapie():
    methods = pytest.importorskip("mapie.risk_control.methods")
    fwer = pytest.importorskip("mapie.risk_control.fwer_control")
    rng = np.random.default_rng(5)
    values = rng.random(3000)
    wrong = rng.random(3000) < 0.06 * values
    limits = limits_of(np.sort(values), math.inf)
    [tested] = risks_at(calibration_of(values, wrong), [Risk(0.03)], limits, 0.9)
    start = 750
    large = np.array([start - 1, *(h - 1 for h in np.linspace(0, 3000, 101).astype(int) if h > start)])
    rates, n = tested.errors[large] / tested.accepted[large], tested.accepted[large].astype(float)
    theirs = methods.compute_hoeffding_bentkus_p_value(rates - 1e-12 * (rates > 0), n, 0.03, binary=True)[:, 0]
    ours = [tested.p_value(place) for place in large.tolist()]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    chosen = fwer.FWERFixedSequenceTesting().run(theirs, 0.1)
    assert last_passed([tested], limits, Plan({start - 1: 1.0}, start - 1)) == large[chosen[-1]]
