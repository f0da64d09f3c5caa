"""A score whose highest value many inputs share flags nothing: it is not recommended, and the words say why."""

from __future__ import annotations

import numpy as np
import pytest

from credalens.core.scores import DEFAULT, FALLBACK_SCORES
from credalens.evaluation import evaluate
from credalens.evaluation.sentences import alarm_sentence, summary
from credalens.evaluation.which_score import recommend
from tests.strategies import batch_of


def binary(rows, spread, scale, seed):
    """Five members on two classes, and labels that they guess at."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, scale, rows)
    first = 1 / (1 + np.exp(-logits - rng.normal(0, spread, (5, rows))))
    return np.stack([1 - first, first], axis=-1), (rng.random(rows) < 1 / (1 + np.exp(-logits))).astype(int)


@pytest.fixture(scope="module")
def two_classes():
    known, labels = binary(600, 1.0, 3.0, seed=1)
    unknown, _ = binary(600, 0.3, 0.5, seed=2)
    return evaluate(known, {"near the border": unknown}, labels=labels, replicates=60)


def test_with_two_classes_another_score_takes_the_place_of_total(two_classes):
    advice = two_classes.recommended
    values = two_classes.values["in-distribution"]["total"]
    assert advice.tied["total"] == (values >= values.max() - 2e-5).mean() > 0.05
    assert advice.default == "mean_total"
    assert advice.score not in advice.tied
    assert not two_classes.guard.blindness
    on_known, on_unknown = next(one.data for one in two_classes.outcomes if one.false_alarm_rate == 0.05)
    assert 0 < on_known.abstained < on_unknown.abstained
    assert two_classes.rejection.held_out[0].caught > 0.05  # and more of the wrong predictions than of the right ones


def test_the_words_say_what_is_used_instead_and_why(two_classes):
    said = summary(two_classes)
    (remark,) = (text for text in said.remarks if "the highest credal total there can be" in text)
    assert "so that at 5\u00a0% of false alarms it flags nothing: entropy of the mean takes its place." in remark
    assert "averaged prediction" not in said.headline  # is not compared with itself
    by_total = next(
        one for one in two_classes.thresholds if (one.score, one.threshold.false_alarm_rate) == ("total", 0.05)
    )
    sentence = alarm_sentence(two_classes, by_total)
    assert "catches 0\u00a0% of near the border" in sentence
    assert "No input can lie above it: " in sentence
    assert "No input can lie" not in said.threshold


def test_without_ood_data_the_same_score_is_used():
    known, labels = binary(600, 1.0, 3.0, seed=1)
    result = evaluate(known, labels=labels, replicates=60)
    assert result.recommended.score == result.guard.score == "mean_total"
    assert "entropy of the mean is used. Pass such inputs" in summary(result).remarks[-1]


def test_a_score_that_ties_is_ranked_and_not_chosen():
    rng = np.random.default_rng(0)
    known, unknown = rng.random((2, 200)), 0.1 + rng.random((2, 200))
    tied, also = np.minimum(known[0], 0.6), np.full(200, 0.6)  # the best AUROC, and nothing above it
    names = ("mean_total", "mean_least_confidence")
    id_scores = {"total": tied, **dict(zip(names, known, strict=True))}
    ood_scores = {"ood": {"total": also, **dict(zip(names, unknown, strict=True))}}
    advice = recommend(id_scores, ood_scores, highest={"total": 0.6})
    assert advice.ranking[0].name == "total"
    assert advice.score == advice.default == "mean_total"
    assert list(advice.tied) == ["total"]
    assert recommend(id_scores, ood_scores, highest={"total": 0.7}).score == "total"  # it can be higher


def test_where_all_scores_tie_the_one_that_ties_least_is_used_and_the_words_say_so():
    rng = np.random.default_rng(0)
    members, labels = np.full((4, 200, 2), 0.5), rng.integers(0, 2, 200)
    members[:, :10] = [0.9, 0.1]
    members[0, :20] = [0.9, 0.1]
    result = evaluate(members, labels=labels, replicates=60)
    assert result.recommended.score in result.recommended.tied
    shares = result.recommended.tied
    assert shares[result.recommended.score] == min(shares[name] for name in (DEFAULT, *FALLBACK_SCORES))
    said = summary(result)
    assert any("nor do the scores that could take its place" in text for text in said.remarks)
    assert "none tells which predictions to hand to a person" in said.rejection
    assert "never far from" not in said.remarks[-1]


def test_a_score_that_ties_and_ranks_well_is_not_called_hopeless():
    known, unknown = np.full((4, 100, 2), 0.5), np.full((4, 100, 2), 0.5)
    known[:, :80] = [0.95, 0.05]
    result = evaluate(known + 1e-3 * np.array([1, -1]) * np.arange(4)[:, None, None], {"ood": unknown}, replicates=60)
    assert "No score tells" not in summary(result).headline


def test_no_score_that_guesses_is_called_one_to_use():
    known, more, flat = (
        batch_of("peaked", 4, 200, 5, seed=1),
        batch_of("peaked", 4, 200, 5, seed=2),
        batch_of("flat", 4, 200, 5),
    )
    same = summary(evaluate(known, {"same": more}, replicates=60)).headline
    assert same.startswith("No score tells the OOD inputs from the in-distribution ones. ")
    swapped = summary(
        evaluate(flat, {"sure": np.eye(5)[[0] * 200] * np.full((4, 1, 1), 0.9) + 0.02}, replicates=60)
    ).headline
    assert swapped.startswith("The OOD inputs look more certain than the in-distribution ones: were the two swapped? ")
    assert summary(evaluate(known, {"flat": flat}, replicates=60)).headline.startswith("Use ")
