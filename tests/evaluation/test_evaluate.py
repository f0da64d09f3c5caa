"""From member predictions to one result: every number against an independent computation of it."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from sklearn import metrics as sk

from credalens import wrap
from credalens.core.decisions import credal_decision
from credalens.evaluation import (
    bootstrap_difference,
    bootstrap_interval,
    compare_auroc,
    evaluate,
    select_threshold,
)
from tests.evaluation.small_data import CLASSES, ROWS, scores


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("measure", ["epistemic", "total"])
@pytest.mark.parametrize("kind", ["credal", "averaged"])
def test_detection_equals_scikit_learn(data, found, place, measure, kind):
    known, _, others = data
    name = list(others)[place]
    inside, outside = scores(known, kind, measure), scores(others[name], kind, measure)
    truth, values = np.repeat([0, 1], [len(inside), len(outside)]), np.concatenate([inside, outside])
    fpr, tpr, _ = sk.roc_curve(truth, values, drop_intermediate=False)
    part = getattr(getattr(found.ood[place], measure), kind)
    assert found.ood[place].name == name
    assert part.auroc == pytest.approx(sk.roc_auc_score(truth, values), abs=1e-12)
    assert part.auprc == pytest.approx(sk.average_precision_score(truth, values), abs=1e-12)
    assert part.auprc_id == pytest.approx(sk.average_precision_score(1 - truth, -values), abs=1e-12)
    assert part.fpr95 == pytest.approx(fpr[tpr >= 0.95].min(), abs=1e-12)


def test_prediction_equals_scikit_learn(data, found):
    known, labels, _ = data
    prediction = wrap(known)
    for name, probs in (("credal", prediction.probability), ("averaged", prediction.mean)):
        part = getattr(found.calibration, name)
        assert part.accuracy == sk.accuracy_score(labels, probs.argmax(axis=-1))
        assert part.nll == pytest.approx(sk.log_loss(labels, probs, labels=range(CLASSES)), abs=1e-12)
        assert part.brier == pytest.approx(((probs - np.eye(CLASSES)[labels]) ** 2).sum(axis=1).mean(), abs=1e-12)
        assert part.ece == pytest.approx(slow_ece(probs, labels, 15), abs=1e-12)


def slow_ece(probs, labels, bins):
    error = 0.0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        inside = [i for i, p in enumerate(probs) if low <= p.max() < high or (b == bins - 1 and p.max() >= high)]
        if inside:
            right = np.mean([probs[i].argmax() == labels[i] for i in inside])
            error += len(inside) / len(probs) * abs(right - np.mean([probs[i].max() for i in inside]))
    return error


def test_intervals_are_those_of_the_evaluation_package(data, found):
    known, _, others = data
    a = scores(known, "credal", "total"), scores(others["mixed"], "credal", "total")
    b = scores(known, "averaged", "total"), scores(others["mixed"], "averaged", "total")
    part = found.ood[1].total
    for metric in ("auprc", "fpr95"):
        assert getattr(part.credal, f"{metric}_interval") == bootstrap_interval(metric, *a, replicates=60)
        assert getattr(part.difference, metric) == bootstrap_difference(metric, *a, *b, replicates=60)
    assert part.difference.auroc == compare_auroc(*a, *b)


def test_sets_by_hand(data, found):
    known, labels, _ = data
    prediction = wrap(known)
    for rule, part in found.sets.items():
        sets = credal_decision(prediction.lower, prediction.upper, rule)
        assert part.coverage == np.mean([sets[i, label] for i, label in enumerate(labels)])
        assert part.determinacy == np.mean([row.sum() == 1 for row in sets])
        assert found.mean_set_size[rule] == pytest.approx(sets.sum() / len(sets))


@pytest.mark.parametrize("kind", ["credal", "averaged"])
def test_selective_judges_each_uncertainty_with_its_own_prediction(data, found, kind):
    known, labels, _ = data
    prediction = wrap(known)
    guesses = {"credal": prediction.probability.argmax(axis=-1), "averaged": prediction.mean.argmax(axis=-1)}
    right = guesses[kind] == labels
    doubt = scores(known, kind, "epistemic")
    order = np.argsort(doubt)
    area = np.mean([right[order[:k]].mean() for k in range(1, ROWS + 1)])
    assert len(np.unique(doubt)) == ROWS  # no ties in these data
    assert ((guesses["credal"] == labels) != (guesses["averaged"] == labels)).any()
    assert found.selective.epistemic.of(kind).area == pytest.approx(area, abs=1e-12)


def test_thresholds_flag_no_more_than_wanted_and_catch_what_they_say(data, found):
    known, _, others = data
    for alarm in found.thresholds:
        inside, threshold = wrap(known).score(alarm.score), alarm.threshold
        assert (inside > threshold.value).mean() == threshold.achieved_rate <= threshold.false_alarm_rate
        for name, share in alarm.caught.items():
            assert share == (wrap(others[name]).score(alarm.score) > threshold.value).mean()
    guarantees = {alarm.threshold.false_alarm_rate: alarm.threshold.guarantee for alarm in found.thresholds}
    assert guarantees[0.005] == "sample"  # 120 inputs cannot promise one false alarm in 200
    assert guarantees[0.01] == "new"


def test_the_threshold_to_keep(data, found):
    known, _, _ = data
    score = found.recommended.score
    wanted = select_threshold(wrap(known).score(score), guarantee="new", name=score, base=2.0)
    assert found.threshold == wanted


def test_without_labels_what_needs_them_is_missing(data):
    known, _, others = data
    found = evaluate(known, others, replicates=60)
    assert found.calibration is found.selective is found.sets is None
    assert found.words.prediction is None
    assert found.members_needed.accuracy is None
    assert "accuracy" not in found.as_dict()["members_needed"]
    assert all(sample.label is None for sample in found.samples)


def test_without_ood_data_detection_is_missing_and_the_rest_the_same(data, found):
    known, labels, _ = data
    seen = set()
    alone = evaluate(known, {}, labels=labels, replicates=60, progress=lambda what, done, of: seen.add(what))
    assert (alone.ood, alone.data.ood, list(alone.values)) == ((), (), ["in-distribution"])
    plain, expected = alone.as_dict(), found.as_dict()
    assert plain["curves"] == {"detection": {}, "histograms": {}}
    for part in ("calibration", "selective", "sets", "mean_set_size"):
        assert plain[part] == expected[part]
    assert set(plain["members_needed"]) == {"sizes", "subsets", "rows", "accuracy", "ece", "nll"}
    assert alone.words.prediction == found.words.prediction
    assert {alone.words.headline, alone.words.plainly, alone.words.members} == {None}
    assert alone.words.threshold.endswith(f"{alone.threshold.value:.3f} bits.")
    assert seen == {"scoring", "members"}
    assert json.loads(alone.to_json()) == plain


def test_a_single_member_knows_no_epistemic_uncertainty(data):
    known, labels, others = data
    one = {name: probs[:1] for name, probs in others.items()}
    found = evaluate(known[:1], one, labels=labels, replicates=60)
    assert found.members_needed is None
    assert found.words.members is None
    for detection in found.ood:
        assert detection.epistemic.credal.auroc == detection.epistemic.averaged.auroc == 0.5
        assert detection.epistemic.credal.fpr95 == 1


def test_the_result_is_plain_and_the_same_each_time(data, found):
    known, labels, others = data
    assert found.to_json() == evaluate(known, ood=others, labels=labels, replicates=60).to_json()
    assert json.loads(found.to_json()) == found.as_dict()
    assert found.as_dict()["format"] == "credalens-report-3"
    assert found.headline() == {k: v for k, v in found.as_dict().items() if k not in ("curves", "samples")}
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.calibration = None


def test_earlier_names_still_read_with_a_warning(found):
    with pytest.warns(DeprecationWarning, match="Detector.classical is now .averaged") as caught:
        assert found.ood[0].total.classical is found.ood[0].total.averaged
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="Calibration.intersection is now .credal"):
        assert found.calibration.intersection is found.calibration.credal
    with pytest.warns(DeprecationWarning, match="ByMethod.classical is now .averaged"):
        assert found.selective.total.of("classical") is found.selective.total.averaged
    with pytest.warns(DeprecationWarning, match="ScoreQuality.averaging is now .averaged"):
        assert found.scores[0].averaging is found.scores[0].averaged


def test_nats_scale_uncertainty_and_leave_ranks(data, found):
    known, labels, others = data
    nats = evaluate(known, others, labels=labels, base=math.e, replicates=60)
    assert nats.ood[0].epistemic.credal.auroc == found.ood[0].epistemic.credal.auroc
    assert nats.threshold.value == pytest.approx(found.threshold.value * math.log(2))
    assert "nats" in nats.words.threshold


def test_progress_runs_to_the_end_of_every_step(data):
    known, labels, others = data
    seen: dict[str, list[tuple[int, int]]] = {}
    evaluate(
        known,
        others,
        labels=labels,
        replicates=60,
        progress=lambda what, done, of: seen.setdefault(what, []).append((done, of)),
    )
    assert list(seen) == ["scoring", "intervals", "members"]
    for steps in seen.values():
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1][0] == steps[-1][1]


def test_labels_that_seem_to_begin_at_1_cause_a_warning(data):
    known = data[0]
    predicted = wrap(known).predict()
    like = predicted < CLASSES - 1
    with pytest.warns(UserWarning, match="do the labels begin at 1") as caught:
        evaluate(known[:, like], labels=predicted[like] + 1, replicates=40)
    assert caught[0].filename == __file__
    like = predicted > 0
    evaluate(known[:, like], labels=predicted[like], replicates=40)  # no row of class 0, and right
