"""Advice: the rule does what it says, invents no winners, and what it promises holds on new data."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import datasets, wrap
from credalens.evaluation import compare_auroc, evaluate, ood_metrics, select_threshold, selective_metrics
from credalens.evaluation.intervals import Resampling, holm
from credalens.evaluation.ood import compare_wins, wins
from credalens.evaluation.prediction_quality import JudgedRows, choose_point
from credalens.evaluation.results import ByMethod
from credalens.evaluation.which_score import mean_ranks, recommend
from credalens.guard.binomial import binomial_interval
from tests.strategies import batch_of

NAMES = ("total", "a", "b", "c", "d", "e")


def draw(rng, n, shift, effects):
    """Scores that share most of their noise; ``effects`` say how much each moves with ``shift``."""
    noise = 0.8 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=(n, len(effects)))
    return dict(zip(NAMES, (noise + shift * np.array(effects)).T, strict=True))


def simulate(trials, sets, effects, n=80, rate=0.1):
    """Recommendations on new data each time, with the true share that the recommended score catches."""
    rng = np.random.default_rng(0)
    for trial in range(trials):
        id_scores = draw(rng, n, 0.0, effects)
        ood_scores = {f"set {k}": draw(rng, n, 1.2, effects) for k in range(sets)}
        advice = recommend(id_scores, ood_scores, false_alarm_rate=rate, seed=trial)
        threshold = select_threshold(id_scores[advice.score], false_alarm_rate=rate, guarantee="new").value
        yield advice, 1 - NormalDist().cdf(threshold - 1.2 * effects[NAMES.index(advice.score)])


@pytest.mark.parametrize("sets", [1, 3])
def test_equal_scores_have_no_winner_and_the_reported_gain_is_unbiased(sets):
    advices = [advice for advice, _ in simulate(60, sets, [1.0] * len(NAMES))]
    gains = np.array([advice.gain for advice in advices])
    assert abs(gains.mean()) <= 3 * gains.std(ddof=1) / np.sqrt(len(gains))
    switched = sum(advice.score != "total" for advice in advices)
    assert binomial_interval(switched, len(advices), level=0.998)[0] <= 0.05


@pytest.mark.parametrize("sets", [1, 3])
@pytest.mark.parametrize("better", [1.0, 1.3])
def test_the_reported_catch_holds_on_new_data(sets, better):
    held = [
        one.low <= truth <= one.high
        for advice, truth in simulate(40, sets, [1.0] * (len(NAMES) - 1) + [better])
        for one in advice.held_out
    ]
    assert np.mean(held) >= 0.95


def test_a_clear_winner_is_found_and_its_gain_reported():
    advices = [advice for advice, _ in simulate(10, 2, [1.0] * (len(NAMES) - 1) + [2.0], n=300)]
    assert all(advice.score == "e" and advice.rule == "leave one set out" for advice in advices)
    assert all(advice.gain > 0.05 for advice in advices)


def test_the_choice_follows_the_other_sets():
    rng = np.random.default_rng(1)
    near, far = [1.0, 1.0, 2.0], [1.0, 2.0, 1.0]
    names = NAMES[:3]
    id_scores = dict(zip(names, rng.normal(size=(3, 400)), strict=True))
    ood = {
        name: dict(zip(names, (rng.normal(size=(400, 3)) + effects).T, strict=True))
        for name, effects in (("near", near), ("too", near), ("three", near), ("far", far))
    }
    advice = recommend(id_scores, ood)
    by_name = {one.name: one.score for one in advice.held_out}
    assert by_name["far"] == "b"
    assert advice.score == "b"


def test_the_default_stays_where_choosing_gains_nothing_elsewhere():
    """Each score is far the best on two sets and the worst on the third, so that a choice on the others is wrong."""
    rng = np.random.default_rng(5)
    names = NAMES[:3]
    id_scores = dict(zip(names, rng.normal(size=(3, 600)), strict=True))
    ood = {
        name: dict(zip(names, (rng.normal(size=(600, 3)) + effects).T, strict=True))
        for name, effects in (("x", [1.0, 2.5, 0.0]), ("y", [1.0, 0.0, 2.5]))
    }
    advice = recommend(id_scores, ood)
    assert advice.gain < 0
    assert advice.score == "total"
    assert all(one.score == "total" and one.auroc == one.default_auroc for one in advice.held_out)


def test_too_few_inputs_and_no_ood_data_leave_the_default():
    few = {name: np.arange(5.0) for name in NAMES}
    assert recommend(few, {}).rule == "default"
    advice = recommend(few, {"few": {name: x + 9 for name, x in few.items()}})
    assert (advice.score, advice.rule, advice.held_out) == ("total", "default", ())


@given(st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1), min_size=1))
def test_holm_keeps_the_order_and_never_lowers(p_values):
    adjusted = holm(p_values)
    assert list(adjusted) == list(p_values)
    assert all(p <= adjusted[name] <= min(1, len(p_values) * p) + 1e-15 or p == 0 for name, p in p_values.items())
    for a, b in itertools.permutations(p_values, 2):
        assert p_values[a] > p_values[b] or adjusted[a] <= adjusted[b]


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.95]))
def test_the_exact_interval_of_a_share(pair, level):
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(*pair).proportion_ci(level, method="exact")
    assert binomial_interval(*pair, level=level) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_ranks_share_ties():
    assert mean_ranks({"a": np.array([0.5]), "b": np.array([0.5]), "c": np.array([0.9])}) == {
        "a": 2.5,
        "b": 2.5,
        "c": 1.0,
    }


def test_one_data_set_is_compared_as_by_delong():
    rng = np.random.default_rng(2)
    id_a, id_b, ood_a, ood_b = rng.normal(size=(4, 50)) + np.array([[0], [0], [1], [0.7]])
    expected = compare_auroc(id_a, ood_a, id_b, ood_b)
    comparison = compare_wins([wins(id_a, ood_a)], [wins(id_b, ood_b)], level=0.95)
    assert comparison.difference == pytest.approx(expected.difference, abs=1e-15)
    assert comparison.p_value == pytest.approx(expected.p_value, rel=1e-9)


def test_several_data_sets_share_their_id_inputs():
    """The deviation of the mean over two sets, against a simulation of new data."""
    rng = np.random.default_rng(3)

    def one():
        base = rng.normal(size=(2, 60))
        ood = [rng.normal(size=(2, 60)) + 1 for _ in range(2)]
        a, b = ([wins(base[k], x[k]) for x in ood] for k in (0, 1))
        return compare_wins(a, b, level=0.95)

    comparisons = [one() for _ in range(400)]
    covered = sum(x.low <= 0 <= x.high for x in comparisons)
    low, high = binomial_interval(covered, len(comparisons), level=0.998)
    assert low <= 0.95 <= high


@given(st.integers(0, 2**32 - 1))
def test_augrc_orders_uncertainties_as_the_auroc_of_mistakes_does(seed):
    rng = np.random.default_rng(seed)
    uncertainty, correct = rng.integers(0, 6, 40).astype(float), rng.random(40) < 0.7
    if correct.all() or not correct.any():
        return
    error, auroc = 1 - correct.mean(), ood_metrics(uncertainty[correct], uncertainty[~correct]).auroc
    expected = error * (1 - error) * (1 - auroc) + error**2 / 2
    assert selective_metrics(uncertainty, correct).augrc == pytest.approx(expected, abs=1e-12)


def point_choice(intersection, mean, labels):
    judged = ByMethod(*(JudgedRows.of(probs, labels, probs.argmax(axis=-1)) for probs in (intersection, mean)))
    return choose_point(judged, bins=15, resampling=Resampling(0.95, 100, 0))


def test_the_better_point_prediction_is_chosen_and_the_default_stays_where_none_is():
    rng = np.random.default_rng(4)
    truth = rng.dirichlet(np.ones(3), 800)
    labels = np.array([rng.choice(3, p=p) for p in truth])
    flat = 0.5 * truth + 0.5 / 3
    assert point_choice(flat, truth, labels).prediction == "mean"
    assert point_choice(truth, flat, labels).prediction == "intersection"
    same = point_choice(truth, truth, labels)
    assert (same.prediction, same.nll.difference, same.ece.difference) == ("intersection", 0.0, 0.0)


def test_an_evaluation_recommends_what_its_own_table_shows_best():
    real = datasets.cifar10_ensemble()
    svhn = evaluate(real.cifar10[:, :3000], {"SVHN": real.svhn[:, :3000]}, replicates=60)
    assert svhn.recommended.score != "epistemic"
    assert svhn.alarm.score == svhn.recommended.score == svhn.threshold.name
    best = max(svhn.scores, key=lambda score: score.ood["SVHN"].auroc)
    assert best.name == svhn.recommended.ranking[0].name
    caught = {
        alarm.score: alarm.caught["SVHN"] for alarm in svhn.thresholds if alarm.threshold.false_alarm_rate == 0.05
    }
    assert caught[svhn.recommended.score] > caught["epistemic"]


def test_every_score_is_measured_and_rejection_has_its_own_recommendation():
    members, labels = batch_of("peaked", 4, 400, 4), np.arange(400) % 4
    result = evaluate(members, labels=labels, replicates=60)
    assert result.recommended.rule == "default"
    assert result.recommended.score == "mean_total"
    assert result.rejection.rule == "halves"
    predicted = wrap(members).predict() if result.point.prediction == "intersection" else members.mean(0).argmax(-1)
    for quality in result.scores:
        assert quality.selective == selective_metrics(wrap(members).score(quality.name), predicted == labels)


def test_a_threshold_asks_the_prediction_for_its_own_score_and_base():
    members = batch_of("peaked", 4, 50, 4)
    prediction = wrap(members)
    threshold = select_threshold(prediction.total, name="total", base=2.0)
    assert np.array_equal(threshold.flags(prediction), threshold.flags(prediction.total))
    with pytest.raises(ValueError, match="base 2"):
        threshold.flags(wrap(members, base=np.e))
    with pytest.raises(ValueError, match="not a score of the catalogue"):
        select_threshold(prediction.total, name="mine").flags(prediction)
    with pytest.raises(ValueError, match="does not know the base"):
        select_threshold(prediction.total, name="total").flags(prediction)
    assert not select_threshold(prediction.score("imprecision"), name="imprecision").flags(prediction).all()


def test_members_that_agree_have_no_better_point_prediction():
    """p* and the mean then differ by rounding alone, which a paired test finds in every row."""
    mean = np.full((300, 3), [0.5, 0.3, 0.2])
    choice = point_choice(mean - [1e-9, 0, 0], mean, np.zeros(300, int))
    assert choice.nll.p_value < 0.001
    assert choice.prediction == "intersection"
