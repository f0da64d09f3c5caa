"""From predictions to numbers, against slow formulas, scikit-learn and laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from credalens import MemberSummary, approximate_intervals, generalized_hartley, lower_entropy, upper_entropy, wrap
from credalens.core.scores import SCORES
from credalens_paper.measures import assessment
from credalens_paper.measures.assessment import (
    Assessment,
    Extras,
    assess_concentrations,
    assess_members,
    assess_summary,
    detection_numbers,
    mean_numbers,
    number_name,
    overconfident,
    prediction_numbers,
)
from credalens_paper.measures.exactness import compare_solvers, slsqp_entropies

GH = Extras(frozenset({"GH"}))


def ensemble(members=4, inputs=30, classes=5, seed=0, sharpness=0.4):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, sharpness), (members, inputs))


def entropy(p):
    return -np.sum(np.where(p > 0, p * np.log2(np.maximum(p, 1e-300)), 0), axis=-1)


def test_scores_are_the_papers_formulas():
    members = ensemble()
    scores = assess_members(members, extras=GH).scores
    mean, lower, upper = members.mean(0), members.min(0), members.max(0)
    np.testing.assert_allclose(scores["classical.TU"], entropy(mean), atol=1e-9)
    np.testing.assert_allclose(scores["classical.EU"], entropy(mean) - entropy(members).mean(0), atol=1e-9)
    np.testing.assert_allclose(scores["credal.TU"], upper_entropy(lower, upper), atol=1e-9)
    expected = upper_entropy(lower, upper) - lower_entropy(lower, upper)
    np.testing.assert_allclose(scores["credal.EU"], expected, atol=1e-9)
    np.testing.assert_allclose(scores["credal.GH"], generalized_hartley(lower, upper), atol=1e-9)


def test_point_predictions_are_the_mean_and_the_intersection_probability():
    members = ensemble()
    points = assess_members(members).points
    lower, upper = members.min(0), members.max(0)
    alpha = (1 - lower.sum(-1)) / (upper - lower).sum(-1)
    np.testing.assert_allclose(points["classical"], members.mean(0), atol=1e-12)
    np.testing.assert_allclose(points["credal"], lower + alpha[:, None] * (upper - lower), atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(2, 8), st.integers(0, 1000), st.sampled_from(["float64", "float32", "float16"]))
def test_the_credal_set_holds_the_mean_and_every_member(members, classes, seed, dtype):
    scores = assess_members(ensemble(members, 10, classes, seed).astype(dtype), extras=GH).scores
    slack = 1e-5
    assert (scores["credal.TU"] >= scores["classical.TU"] - slack).all()
    assert (scores["credal.EU"] >= scores["classical.EU"] - slack).all()
    assert (scores["credal.EU"] >= 0).all()
    assert (scores["credal.TU"] <= np.log2(classes) + slack).all()
    if members == 1:
        assert max(np.abs(scores[name]).max() for name in ("classical.EU", "credal.EU", "credal.GH")) < slack


def test_keeping_all_classes_reduces_nothing_and_keeping_few_changes_credal_scores_alone():
    members = ensemble(classes=6)
    whole, same, few = (assess_members(members, J=J).scores for J in (None, 6, 3))
    for name, values in whole.items():
        np.testing.assert_array_equal(values, same[name])
    assert not np.allclose(whole["credal.TU"], few["credal.TU"])
    np.testing.assert_allclose(whole["classical.EU"], few["classical.EU"], atol=1e-12)
    assert (few["credal.TU"] <= np.log2(3) + 1e-9).all()
    points, reduced = (assess_members(members, J=J).points for J in (None, 3))
    for variant, values in points.items():
        np.testing.assert_allclose(reduced[variant], values, atol=1e-12)


def test_the_point_predictions_of_narrow_floats_are_distributions_also_with_reduced_classes():
    members = ensemble(5, 200, 100, sharpness=0.05).astype(np.float16)
    for J in (None, 20):
        assessment = assess_members(members, J=J)
        for points in assessment.points.values():
            np.testing.assert_allclose(points.sum(-1), 1, atol=1e-6)
        assert prediction_numbers(assessment, np.zeros(200, np.int64))


def test_mean_uncertainties_add_up():
    numbers = mean_numbers(assess_members(ensemble()))
    for variant in ("classical", "credal"):
        total, aleatoric, epistemic = (numbers[f"{variant}.{name}.mean"] for name in ("TU", "AU", "EU"))
        assert total == pytest.approx(aleatoric + epistemic)
    assert numbers["credal.TU.mean"] > numbers["classical.TU.mean"]


def test_reduced_scores_are_those_of_the_reduced_intervals():
    members = ensemble(classes=8)
    lower, upper = approximate_intervals(members.min(0), members.max(0), 4)
    scores = assess_members(members, J=4, extras=GH).scores
    np.testing.assert_allclose(scores["credal.TU"], upper_entropy(lower, upper), atol=1e-9)
    expected = upper_entropy(lower, upper) - lower_entropy(lower, upper)
    np.testing.assert_allclose(scores["credal.EU"], expected, atol=1e-9)
    np.testing.assert_allclose(scores["credal.GH"], generalized_hartley(lower, upper), atol=1e-9)


def test_the_sums_over_members_give_what_the_members_give():
    members = ensemble(7)
    summary = MemberSummary().update(members)
    expected, found = assess_members(members, extras=GH), assess_summary(summary, extras=GH)
    for name, values in expected.scores.items():
        np.testing.assert_allclose(found.scores[name], values, atol=1e-9)
    for variant, values in expected.points.items():
        np.testing.assert_allclose(found.points[variant], values, atol=1e-12)


def test_a_sharper_dirichlet_is_less_epistemic_at_the_same_mean():
    assessment = assess_concentrations(np.array([[1.0, 1.0], [100.0, 100.0]]))
    assert assessment.scores["single.TU"] == pytest.approx([1, 1])
    assert assessment.scores["single.EU"][0] > assessment.scores["single.EU"][1] > 0
    np.testing.assert_allclose(assessment.points["single"], 0.5)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(0, 1000))
def test_overconfidence_makes_exactly_one_member_of_each_input_one_hot_where_it_was_highest(count, seed):
    members = ensemble(count, 12, 4, seed)
    kept = members.copy()
    changed = overconfident(members, np.random.default_rng(seed))
    np.testing.assert_array_equal(members, kept)
    differs = (changed != members).any(axis=-1)
    assert (differs.sum(axis=0) == 1).all()
    np.testing.assert_array_equal(changed[differs].max(axis=-1), 1)
    np.testing.assert_array_equal(changed[differs].sum(axis=-1), 1)
    np.testing.assert_array_equal(changed.argmax(-1), members.argmax(-1))


def test_the_overconfident_member_is_chosen_at_random_by_the_generator():
    members = ensemble(5, 200)
    draws = [overconfident(members, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    counts = (draws[0] != members).any(axis=-1).sum(axis=1)
    assert counts.min() > 20


def test_prediction_numbers_agree_with_scikit_learn():
    members = ensemble(3, 200, 4)
    labels = np.random.default_rng(1).integers(0, 4, 200)
    assessment = assess_members(members)
    numbers = prediction_numbers(assessment, labels)
    for variant, p in assessment.points.items():
        assert numbers[f"{variant}.ACC"] == pytest.approx(100 * (p.argmax(-1) == labels).mean())
        assert numbers[f"{variant}.NLL"] == pytest.approx(log_loss(labels, p, labels=range(4)))
        assert 0 <= numbers[f"{variant}.ECE"] <= 1


def test_detection_numbers_agree_with_scikit_learn_and_count_ood_as_positive():
    inside, outside = (assess_members(ensemble(3, n, 4, n)) for n in (100, 60))
    numbers = detection_numbers(inside, outside)
    truth = np.repeat([0, 1], [100, 60])
    for name, scores in inside.scores.items():
        both = np.concatenate([scores, outside.scores[name]])
        assert numbers[f"{name}.AUROC"] == pytest.approx(100 * roc_auc_score(truth, both))
        assert numbers[f"{name}.AUPRC"] == pytest.approx(100 * average_precision_score(truth, both))


def test_a_perfect_score_detects_everything():
    inside, outside = Assessment({"credal.EU": np.zeros(3)}, {}), Assessment({"credal.EU": np.ones(2)}, {})
    assert detection_numbers(inside, outside) == {"credal.EU.AUPRC": 100.0, "credal.EU.AUROC": 100.0}


def test_numbers_have_names():
    assert number_name("classical", "TU", "AUPRC") == "classical.TU.AUPRC"
    assert number_name(None, "EU", "AUROC") == "single.EU.AUROC"
    assert number_name("credal", None, "time_ms") == "credal.time_ms"


def test_the_local_solver_never_beats_the_exact_measures():
    for members in ensemble(3, 25, 6).swapaxes(0, 1):
        lower, upper = members.min(0), members.max(0)
        highest, lowest = slsqp_entropies(lower, upper)
        assert highest <= upper_entropy(lower, upper) + 1e-3
        assert lowest >= lower_entropy(lower, upper) - 1e-3


def test_comparing_solvers_tells_errors_time_and_detection():
    intervals = [(p.min(0), p.max(0)) for p in (ensemble(3, 40, 6, 0), ensemble(3, 40, 6, 1, 2.0))]
    errors, effect = compare_solvers(*intervals, samples=20)
    assert errors.samples == 40
    assert 1 >= errors.wrong[0] >= errors.wrong[1] >= errors.wrong[2] >= 0
    assert errors.wrong[0] > 0
    assert errors.largest_error > 1e-3
    assert errors.ms_per_input > 0
    assert effect.low <= effect.difference <= effect.high
    again = compare_solvers(*intervals, samples=20)
    assert (replace(errors, ms_per_input=0.0), effect) == (replace(again[0], ms_per_input=0.0), again[1])


def test_every_score_of_the_catalogue_and_trimmed_sets_on_request():
    members = ensemble(10)
    names = [f"{'classical' if score.averaged else 'credal'}.{name}.AUROC" for name, score in SCORES.items()]
    assessment = assess_members(members, extras=Extras.of([*names, "trim10.ECE", "trim20.TU.AUROC"]))
    for name, score in SCORES.items():
        expected = wrap(members).score(name)
        assert np.array_equal(assessment.scores[f"{'classical' if score.averaged else 'credal'}.{name}"], expected)
    for share in (10, 20):
        trimmed = wrap(members, trim=share / 100)
        assert np.array_equal(assessment.points[f"trim{share}"], trimmed.probability)
        assert np.array_equal(assessment.scores[f"trim{share}.EU"], trimmed.epistemic)
    assert set(assess_members(members).points) == {"classical", "credal"}


def test_large_predictions_are_assessed_in_parts_with_the_same_numbers(monkeypatch):
    members = np.random.default_rng(0).dirichlet(np.ones(4), (10, 7))
    extras = Extras.of(["trim10.ECE", "classical.mean_pairwise_kl.AUROC"])
    whole = assess_members(members, extras=extras)
    monkeypatch.setattr(assessment, "MOST_VALUES", 100)
    parts = assess_members(members, extras=extras)
    for name, values in (*whole.scores.items(), *whole.points.items()):
        np.testing.assert_array_equal(values, (parts.scores | parts.points)[name])
