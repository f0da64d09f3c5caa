"""Words: a loss is said as a loss, and what a reader must know before believing is said."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from credalens.evaluation import Comparison, Interval, evaluate, sentences, words
from credalens.evaluation.intervals import Resampling
from credalens.evaluation.members_needed import Trend
from credalens.evaluation.prediction_quality import Calibration, JudgedRows, choose_point
from credalens.evaluation.results import ByMethod
from credalens.report.charts.evaluation import ranking_chart
from credalens.report.page import glossary, render_html
from tests.strategies import batch_of

STRANGE = "another data set"


@pytest.fixture(scope="module")
def result():
    known = batch_of("peaked", 4, 60, 3, seed=5)
    others = {"flat": batch_of("flat", 4, 40, 3, seed=2), STRANGE: batch_of("mixed", 4, 40, 3, seed=3)}
    labels = np.arange(60) % 3
    return evaluate(known, others, labels=labels, replicates=60)


def changed(result, path, value):
    """A copy with another value at a path such as "ood.0.epistemic"."""
    name, _, rest = path.partition(".")
    if isinstance(result, tuple):
        place = int(name)
        return (*result[:place], changed(result[place], rest, value) if rest else value, *result[place + 1 :])
    return replace(result, **{name: changed(getattr(result, name), rest, value) if rest else value})


def comparison(low, difference, high):
    return Comparison("auroc", 0.5, 0.5, difference, low, high, 0.95, 0.5, "delong", 60, 40)


def with_gain(result, *numbers, place=0):
    return changed(result, f"ood.{place}.total.difference.auroc", comparison(*numbers))


def recommending(result, score, *numbers, p_value=0.001):
    """The result with a recommendation, in whose ranking every score differs from the default by ``numbers``."""
    difference = comparison(*numbers)
    ranking = tuple(
        replace(
            one,
            difference=None if one.name == "total" else difference,
            p_value=p_value,
            auroc=0.7 + 0.1 * (one.name == score),
        )
        for one in result.recommended.ranking
    )
    return replace(result, recommended=replace(result.recommended, score=score, ranking=ranking))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.01, 0.02, 0.03), "better"),
        ((-0.03, -0.02, -0.01), "worse"),
        ((-0.01, 0.02, 0.03), "undecided"),
        ((0.0, 0.0, 0.0), "undecided"),
        ((0.0, 0.02, 0.03), "undecided"),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_zero(numbers, expected):
    assert comparison(*numbers).verdict == expected


def test_a_loss_is_said_as_a_loss(result):
    said = sentences.summary(with_gain(with_gain(result, -0.03, -0.02, -0.01), 0.01, 0.02, 0.03, place=1))
    lost, won = said.detection
    assert (lost.verdict, won.verdict) == ("worse", "better")
    assert lost.total.endswith("2.00 points worse than the averaged prediction (−3.00 to −1.00).")
    assert won.total.endswith("2.00 points better than the averaged prediction (+1.00 to +3.00).")


def test_no_clear_difference_is_said_as_such(result):
    said = sentences.summary(with_gain(result, -0.01, 0.02, 0.05))
    assert said.detection[0].total.endswith("no clear difference from the averaged prediction (−1.00 to +5.00).")
    same = sentences.summary(with_gain(result, 0.0, 0.0, 0.0))
    assert same.detection[0].total.endswith("the same as for the averaged prediction.")


def test_the_headline_names_the_recommended_score_and_says_where_averaging_is_better(result):
    said = sentences.summary(recommending(result, "mean_total", 0.01, 0.02, 0.03)).headline
    assert said.startswith("Use entropy of the mean to find")
    assert "clearly better than credal total (+10.00 points of AUROC)" in said
    assert "here credal sets do not find more" in said
    stays = sentences.summary(recommending(result, "total", 0.01, 0.02, 0.03)).headline
    assert "Credal total is 2.00 points worse than the entropy of the averaged prediction" in stays
    wins = sentences.summary(recommending(result, "total", -0.03, -0.02, -0.01)).headline
    assert "2.00 points better than the entropy of the averaged prediction" in wins
    unclear = sentences.summary(recommending(result, "total", -0.03, -0.02, -0.01, p_value=0.4)).headline
    assert unclear.endswith("The entropy of the averaged prediction is not clearly different.")


@pytest.mark.parametrize(
    ("gain", "reason"),
    [
        (-0.0056, "a score that is chosen on some data finds no more on other data (−0.56 points)"),
        (0.01, "not by mean rank"),
        (None, "there are too few inputs to choose by"),
    ],
)
def test_the_headline_says_why_a_score_that_is_ahead_is_not_recommended(result, gain, reason):
    stays = recommending(result, "total", 0.01, 0.02, 0.03)
    said = sentences.summary(changed(stays, "recommended.gain", gain)).headline
    assert re.search(r"By mean AUROC [a-z0-9 *-]+ is 2\.00 points ahead of it, but " + re.escape(reason), said)
    within_chance = recommending(result, "total", 0.01, 0.02, 0.03, p_value=0.4)
    assert "No score is clearly better over all data sets. " in sentences.summary(within_chance).headline


def test_the_headline_says_what_choosing_was_worth_elsewhere(result):
    chosen = recommending(result, "mean_total", 0.01, 0.02, 0.03)
    said = sentences.summary(changed(chosen, "recommended.gain", 0.0123)).headline
    assert "measured on other data sets, the gain is +1.23 points. It is a score of" in said
    assert "the gain is" not in sentences.summary(changed(chosen, "recommended.gain", None)).headline


@pytest.mark.parametrize(
    ("score", "reason"),
    [("total", "credal total is used, which was never far from"), ("mean_total", "entropy of the mean is used. Pass")],
)
def test_without_ood_data_the_default_has_its_reason(result, score, reason):
    without = replace(result, ood=(), recommended=replace(result.recommended, score=score))
    assert reason in sentences.summary(without).remarks[-1]


def test_the_threshold_is_that_of_the_recommended_score(result):
    said = sentences.summary(recommending(result, "mean_least_confidence", 0.01, 0.02, 0.03)).threshold
    assert "flag 1 - max of the mean above" in said
    assert "bits" not in said
    assert "bits" in sentences.summary(recommending(result, "epistemic", 0.01, 0.02, 0.03)).threshold


def test_worse_than_chance_is_said(result):
    assert sentences.summary(result).detection[0].remark == ""
    below = Interval(0.25, 0.2, 0.3, 0.95, "delong", 60, 40)
    worse = changed(result, "ood.0.epistemic.credal.auroc_interval", below)
    assert (
        sentences.summary(worse)
        .detection[0]
        .remark.startswith("Credal epistemic uncertainty is worse than chance here")
    )


def test_the_headline_gives_the_mean_auroc_of_data_not_used_to_choose(result):
    mean = np.mean([one.auroc for one in result.recommended.held_out])
    said = sentences.summary(recommending(result, "mean_total", 0.01, 0.02, 0.03))
    assert f"AUROC {words.percent(mean)} (mean of 2 data sets), measured on data" in said.headline
    assert "measured on data" not in sentences.summary(recommending(result, "total", 0.01, 0.02, 0.03)).headline
    assert f"in {100 * mean:.0f} of 100 cases" in said.plainly


def test_who_is_ahead_in_what(result):
    ours = replace(result.calibration.credal, accuracy=0.9, ece=0.03, nll=0.5)
    theirs = replace(result.calibration.averaged, accuracy=0.8, ece=0.02, nll=0.5)
    said = sentences.summary(replace(result, calibration=Calibration(ours, theirs))).prediction
    assert (
        "The credal prediction is ahead in accuracy; the averaged prediction is ahead in ECE; they are equal in NLL."
        in said
    )
    ours = replace(ours, accuracy=0.7, nll=0.6)
    said = sentences.summary(replace(result, calibration=Calibration(ours, theirs))).prediction
    assert "The averaged prediction is ahead in accuracy, ECE and NLL." in said
    for prediction, advice in (("mean", "use it as"), ("intersection", "use the intersection probability as")):
        assert advice in sentences.summary(changed(result, "point.prediction", prediction)).prediction


def test_clearly_is_said_of_what_the_intervals_and_the_size_of_a_difference_say(result):
    def said(nll, ece):
        """Differences of the intersection probability to the mean with their p-values."""
        point = result.point
        parts = {
            metric: replace(getattr(point, metric), difference=difference, p_value=p_value)
            for metric, (difference, p_value) in {"nll": nll, "ece": ece}.items()
        }
        return sentences.summary(changed(result, "point", replace(point, prediction="mean", **parts))).prediction

    assert "The averaged probability is clearly better in NLL: use it" in said((0.01, 0.001), (0.0004, 0.001))
    assert "The averaged probability is clearly better in ECE: use it" in said((0.01, 0.2), (0.004, 0.001))
    assert "The averaged probability is clearly better in NLL and ECE: use it" in said((0.01, 0.001), (0.004, 0.001))


def test_a_difference_of_half_a_thousandth_changes_no_advice():
    """On 16,000 inputs it can be beyond chance: 0.51 against 0.55 % of calibration error."""
    rng = np.random.default_rng(0)
    first = rng.beta(8, 2, 16_000)
    labels = (rng.random(16_000) >= first).astype(int)
    mean = np.stack([first, 1 - first], axis=-1)
    judged = ByMethod.make(
        lambda method: JudgedRows.of(p := np.clip(mean + 4e-4 * (method == "credal"), 0, 1), labels, p.argmax(axis=-1))
    )
    choice = choose_point(judged, bins=15, resampling=Resampling(0.95, 100, 0))
    assert abs(choice.ece.difference) < 1e-3
    assert choice.prediction == "intersection"


def test_one_member_has_one_prediction():
    probs = batch_of("peaked", 1, 60, 3, seed=5)
    said = sentences.summary(evaluate(probs, labels=np.arange(60) % 3, replicates=60)).prediction
    assert "the right class is named for" in said
    assert not re.search("intersection|averaged|mean", said)


def test_the_head_of_a_page_names_data_that_have_a_name(undrawn):
    known, noise = batch_of("peaked", 3, 60, 3), batch_of("flat", 3, 40, 3)
    unnamed, named = (evaluate(known, {"noise": noise}, replicates=60, **name) for name in ({}, {"id_name": "digits"}))
    assert "In distribution: 60 inputs (without labels)." in render_html(unnamed)
    assert "In distribution: 60 inputs of digits (without labels)." in render_html(named)


def with_auroc_by_size(result, mean):
    path = "members_needed.auroc.epistemic.credal"
    return changed(result, path, {"flat": Trend(mean, [0.0] * 4), STRANGE: Trend(mean, [0.0] * 4)})


def test_enough_members_are_named(result):
    said = sentences.summary(with_auroc_by_size(result, [0.5, 0.8, 0.896, 0.9])).members
    assert "From 3 to 4 members" in said
    assert "changes by +0.40 points" in said
    assert "With 3 of 4 members it is within 0.5 points" in said
    said = sentences.summary(with_auroc_by_size(result, [0.5, 0.7, 0.8, 0.9])).members
    assert said.endswith("More members may well help.")


@pytest.mark.parametrize(
    ("curve", "end"),
    [
        ([0.5, 0.2, 0.1, 0.01], "It has not settled yet."),
        ([0.5, 0.9, 0.8, 0.901], "More members may well help."),
        ([0.9, 0.9, 0.9, 0.9], "With 1 of 4 members it is within 0.5 points of the full ensemble."),
        ([0.5, 0.95, 0.902, 0.9], "With 3 of 4 members it is within 0.5 points of the full ensemble."),
    ],
)
def test_members_are_enough_only_where_it_stays_close(result, curve, end):
    assert sentences.summary(with_auroc_by_size(result, curve)).members.endswith(end)


def test_remarks_say_what_to_know_before_believing(result):
    assert sentences.summary(result).remarks == []
    doubtful = changed(
        changed(replace(result, calibration=None), "data.members", 1), "ood.1.epistemic.difference.auroc.n_ood", 29
    )
    one, many = (
        sentences.ONE_MEMBER,
        f"{STRANGE}: with only 29 OOD inputs credal and averaged predictions are not compared by their AUROC (that needs 30), "
        "and the intervals of AUPRC and FPR95 may well be wrong.",
    )
    assert doubtful.words.remarks == [many, one, sentences.NO_LABELS]
    assert doubtful.words.detection[1].remark.startswith("With only 29 OOD inputs")


def test_too_few_inputs_are_not_compared_anywhere(result):
    gain = replace(comparison(-1.0, 0.2, 1.0), method="too few samples", n_ood=12)
    few = changed(result, "ood.0.epistemic.difference.auroc", gain)
    finding = few.words.detection[0]
    assert finding.verdict == "undecided"
    assert finding.epistemic.endswith("not compared with the averaged prediction, for too few inputs.")
    ranked = [replace(one, difference=gain) if one.difference else one for one in result.recommended.ranking]
    assert "points (too few samples): undecided" in ranking_chart(replace(result.recommended, ranking=ranked)).label
    assert few.words.remarks[0].startswith("flat: with only 12 OOD inputs")


def test_numbers_in_words():
    assert words.percent(0.12345, 2).split() == ["12.35", "%"]
    assert words.percent(-0.5)[0] == "−"
    assert words.number(math.nan) == "–"
    assert words.joined(["one"]) == "one"
    assert words.unit(10.0) == "units of log 10"


def test_every_word_is_explained_in_one_sentence():
    for text in glossary().values():
        assert text.endswith(".")
        assert text.count(". ") == 0
