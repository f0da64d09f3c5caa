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
from credalens.evaluation.members_needed import members_needed, subset_sizes, subsets
from credalens.evaluation.single_inputs.samples import MOST_CLASSES, view_members
from credalens.evaluation.sources import open_sources
from credalens.storage import open_predictions, save_predictions, source
from credalens.storage.source import Source
from tests.strategies import batch_of, make_members

CLASSES = 4
ROWS = 120


def softmax(logits):
    z = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    known = batch_of("peaked", 5, ROWS, CLASSES, seed=1)
    guess = known.mean(axis=0).argmax(axis=-1)
    labels = np.where(rng.random(ROWS) < 0.8, guess, rng.integers(0, CLASSES, ROWS))
    others = {"flat": batch_of("flat", 5, 90, CLASSES, seed=2), "mixed": batch_of("mixed", 5, 60, CLASSES, seed=3)}
    return known, labels, others


@pytest.fixture(scope="module")
def found(data):
    known, labels, others = data
    return evaluate(known, others, labels=labels, replicates=60)


def scores(probs, kind, measure):
    prediction = wrap(probs)
    return getattr(prediction if kind == "credal" else prediction.classical, measure)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("measure", ["epistemic", "total"])
@pytest.mark.parametrize("kind", ["credal", "classical"])
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
    for name, probs in (("intersection", prediction.probability), ("averaged", prediction.mean)):
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
    b = scores(known, "classical", "total"), scores(others["mixed"], "classical", "total")
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


@pytest.mark.parametrize("kind", ["credal", "classical"])
def test_selective_judges_each_uncertainty_with_its_own_prediction(data, found, kind):
    known, labels, _ = data
    prediction = wrap(known)
    guesses = {"credal": prediction.probability.argmax(axis=-1), "classical": prediction.mean.argmax(axis=-1)}
    right = guesses[kind] == labels
    doubt = scores(known, kind, "epistemic")
    order = np.argsort(doubt)
    area = np.mean([right[order[:k]].mean() for k in range(1, ROWS + 1)])
    assert len(np.unique(doubt)) == ROWS  # no ties in these data
    assert ((guesses["credal"] == labels) != (guesses["classical"] == labels)).any()
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


def test_all_members_give_the_numbers_of_the_tables(found):
    needed = found.members_needed
    assert needed.sizes == [1, 2, 3, 4, 5]
    assert needed.subsets == [5, 5, 5, 5, 1]
    for one in found.ood:
        for measure, detector in one.detectors():
            for kind, metrics in detector.items():
                curve = needed.auroc.of(measure).of(kind)[one.name]
                assert curve.mean[-1] == metrics.auroc
                assert curve.std[-1] == 0
    assert needed.accuracy.credal.mean[-1] == found.calibration.intersection.accuracy
    assert needed.nll.classical.mean[-1] == found.calibration.averaged.nll


def test_fewer_members_by_hand(data, found):
    known, _, others = data
    pairs = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    values = []
    for pair in pairs:
        inside, outside = (scores(x[pair], "credal", "epistemic") for x in (known, others["flat"]))
        truth = np.repeat([0, 1], [len(inside), len(outside)])
        values.append(sk.roc_auc_score(truth, np.concatenate([inside, outside])))
    curve = found.members_needed.auroc.epistemic.credal["flat"]
    assert curve.mean[1] == pytest.approx(np.mean(values), abs=1e-12)
    assert curve.std[1] == pytest.approx(np.std(values), abs=1e-12)
    assert curve.mean[0] == 0.5  # one member cannot disagree
    assert found.members_needed.epistemic_auroc()["flat"].credal.mean == curve.mean[1:]


@pytest.mark.parametrize("members", range(2, 60))
def test_subsets_use_every_size_once_and_members_evenly(members):
    sizes = subset_sizes(members)
    assert sizes[0] == 1
    assert sizes[-1] == members
    assert sorted(set(sizes)) == sizes
    assert len(sizes) <= 7
    for size in sizes:
        chosen = subsets(members, size)
        assert all(len(set(one)) == size for one in chosen)
        assert len({frozenset(one) for one in chosen}) == len(chosen) <= 5
    assert len(subsets(members, members)) == 1


def test_large_data_sets_are_represented_by_evenly_spaced_rows(monkeypatch, data):
    known, labels, others = data
    monkeypatch.setattr("credalens.evaluation.members_needed.VALUES_A_SET", 30 * CLASSES)
    monkeypatch.setattr("credalens.evaluation.members_needed.FEWEST_ROWS", 10)
    inside, outside = open_sources("ID", known, others, logits=False)
    found = members_needed(inside, outside, labels)
    assert found.rows == {"ID": 30, "flat": 30, "mixed": 30}
    fewer = {"flat": others["flat"][:, ::3], "mixed": others["mixed"][:, ::2]}
    expected = members_needed(*open_sources("ID", known[:, ::4], fewer, logits=False), labels[::4])
    assert found.auroc.as_dict() == expected.auroc.as_dict()
    assert found.ece.as_dict() == expected.ece.as_dict()


def test_samples_are_the_extreme_ones(data, found):
    known, labels, others = data
    for name, probs in {"in-distribution": known, **others}.items():
        chosen = [sample for sample in found.samples if sample.set == name]
        prediction = wrap(probs)
        for group, key in (("uncertain", -prediction.total), ("contradictory", prediction.lower.sum(axis=-1))):
            rows = {sample.row for sample in chosen if group in sample.groups}
            assert rows == set(np.argsort(key, kind="stable")[: len(rows)].tolist())
            assert len(rows) == 5
        missed = {sample.row for sample in chosen if "missed" in sample.groups}
        assert missed == (set() if name == "in-distribution" else set(np.argsort(prediction.epistemic)[:5].tolist()))
        for sample in chosen:
            assert sample.predicted == prediction.probability[sample.row].argmax()
            assert sample.scores.credal.epistemic == prediction.epistemic[sample.row]
            assert sample.label == (labels[sample.row] if name == "in-distribution" else None)
            np.testing.assert_allclose(sample.members, probs[:, sample.row], atol=1e-5)


def test_wrong_samples_are_wrong_and_the_most_certain_of_those(data, found):
    known, labels, _ = data
    prediction = wrap(known)
    wrong = np.flatnonzero(prediction.probability.argmax(axis=-1) != labels)
    rows = {sample.row for sample in found.samples if "wrong" in sample.groups}
    assert len(wrong) > 5
    assert rows == set(wrong[np.argsort(prediction.total[wrong])][:5].tolist())


@pytest.mark.parametrize("kind", ["flat", "one_hot", "sparse", "agreeing"])
@pytest.mark.parametrize("classes", [2, 3, 10, 11, 40])
def test_a_described_sample_adds_up(kind, classes):
    members = make_members(kind, 4, classes, np.random.default_rng(classes))
    true_class = int(members.mean(axis=0).argmin())
    view = view_members(members, true_class)
    shown = np.array(view.members)
    assert len(view.classes) + bool(view.others) <= MOST_CLASSES
    assert len(view.classes) + view.others == classes
    assert {true_class, view.predicted, view.averaged} <= set(view.classes)
    assert (view.predicted, view.averaged) == (wrap(members).probability.argmax(), members.mean(axis=0).argmax())
    for rows in (*view.members, view.mean, view.probability):
        assert sum(rows) == pytest.approx(1, abs=2e-4)
    assert (shown >= np.array(view.lower) - 2e-5).all()
    assert (shown <= np.array(view.upper) + 2e-5).all()
    assert (view.simplex is None) == (classes == 2)


def test_the_rest_has_the_bounds_of_an_event():
    """Nine classes at most 8/75 each leave at least 0.04 to the rest, which no bound of a single class says."""
    rest = np.array([[0.04, 0.0, 0.0], [0.0, 0.04, 0.0]])
    view = view_members(np.hstack([np.full((2, 9), 0.96 / 9), rest]), None)
    assert (view.classes, view.others) == (list(range(9)), 3)
    assert (view.lower[-1], view.upper[-1]) == (0.04, 0.04)
    rest = np.array([[0.01, 0.01, 0.01], [0.03, 0.03, 0.03]])
    known = np.hstack([np.full((2, 8), 0.1), 1 - 0.8 - rest.sum(axis=1, keepdims=True)])
    view = view_members(np.hstack([known, rest]), None)
    assert (view.lower[-1], view.upper[-1]) == (0.03, 0.09)


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
        assert detection.epistemic.credal.auroc == detection.epistemic.classical.auroc == 0.5
        assert detection.epistemic.credal.fpr95 == 1


def test_the_result_is_plain_and_the_same_each_time(data, found):
    known, labels, others = data
    assert found.to_json() == evaluate(known, ood=others, labels=labels, replicates=60).to_json()
    assert json.loads(found.to_json()) == found.as_dict()
    assert found.as_dict()["format"] == "credalens-report-2"
    assert found.headline() == {k: v for k, v in found.as_dict().items() if k not in ("curves", "samples")}
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.calibration = None


def test_files_read_in_pieces_give_the_same_as_arrays(monkeypatch, tmp_path, data, found):
    known, labels, others = data
    save_predictions(tmp_path / "id.npz", known)
    files = {name: tmp_path / f"{name}.parquet" for name in others}
    for name, probs in others.items():
        save_predictions(files[name], probs)
    monkeypatch.setattr(source, "VALUES_A_CHUNK", 5 * CLASSES * 7)
    opened = {name: open_predictions(path) for name, path in files.items()}
    again = evaluate(open_predictions(tmp_path / "id.npz"), opened, labels=labels, replicates=60)
    assert again.data.id.file == str(tmp_path / "id.npz")
    assert again.as_dict() | {"data": None} == found.as_dict() | {"data": None}


def test_logits_give_what_their_softmax_gives():
    rng = np.random.default_rng(4)
    known, other = 3 * rng.normal(size=(3, 40, 3)), rng.normal(size=(3, 30, 3))
    labels = rng.integers(0, 3, 40)
    one = evaluate(known, {"o": other}, labels=labels, logits=True, replicates=60)
    two = evaluate(softmax(known), {"o": softmax(other)}, labels=labels, replicates=60)
    assert one.ood[0].as_dict() == two.ood[0].as_dict()
    assert one.calibration.averaged.nll == pytest.approx(two.calibration.averaged.nll)
    assert [s.row for s in one.samples] == [s.row for s in two.samples]
    np.testing.assert_allclose(one.samples[0].members, two.samples[0].members, atol=1e-5)


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ood": {}, "labels": None}, r"nothing to evaluate: give labels.*--labels.*--ood.*or both"),
        ({"ood": {"in-distribution": np.full((5, 3, CLASSES), 0.25)}}, "names both"),
        ({"ood": {"o": np.full((5, 3, 5), 0.2)}}, "o has 5 classes and in-distribution has 4"),
        ({"ood": {"o": np.full((4, 3, CLASSES), 0.25)}}, "o has 4 members and in-distribution has 5"),
        ({"ood": {"o": np.full((5, CLASSES), 0.25)}}, r"\(members, rows, classes\); got \(5, 4\)"),
        ({"ood": {"o": np.full((5, 1, CLASSES), 0.25)}}, "o: 1 rows of predictions; an evaluation needs at least 2"),
        ({"ood": {"o": np.full((5, 3, CLASSES), 0.3)}}, "o: row 0, member 0: it sums to"),
        ({"labels": np.zeros(3, int)}, "labels must have shape"),
        ({"labels": np.full(ROWS, CLASSES)}, "out of range"),
        ({"false_alarm_rate": 1.5}, "false_alarm_rate must lie strictly between 0 and 1"),
        ({"replicates": 10}, "replicates must be at least 40"),
        ({"class_names": ["a"]}, "class_names must be 4 names"),
        ({"bins": 0}, "bins must be at least 1"),
        ({"base": 1}, "base must be finite and above 1"),
    ],
)
def test_bad_input_is_named(data, change, message):
    known, labels, others = data
    options = {"labels": labels, "replicates": 60, **change}
    ood = options.pop("ood", others)
    with pytest.raises(ValueError, match=message):
        evaluate(known, ood, **options)


@pytest.mark.parametrize("logits", [False, True])
def test_logits_of_one_data_set_and_probabilities_of_another(data, logits):
    probs, labels, _ = data
    words = "{} holds logits, and {} probabilities; all data sets must hold the same"
    with pytest.raises(ValueError, match=words.format("o", "in-distribution")):
        evaluate(probs, {"o": np.log(probs + 1e-3)}, labels=labels, logits=logits)
    with pytest.raises(ValueError, match=words.format("in-distribution", "o")):
        evaluate(np.log(probs + 1e-3), {"o": probs}, labels=labels, logits=logits)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            lambda probs: np.eye(CLASSES)[(probs + np.random.default_rng(0).random(probs.shape)).argmax(-1)],
            "nearly one-hot",
        ),
        (lambda probs: probs[[0, 0]], "all members predict the same"),
    ],
)
def test_members_that_say_little_cause_one_warning(data, members, words):
    probs, labels, _ = data
    with pytest.warns(UserWarning, match=words) as caught:
        evaluate(members(probs), labels=labels, replicates=40)
    assert len(caught) == 1


def test_a_bad_row_in_a_file_is_named_by_its_place(monkeypatch, tmp_path, data):
    known, _, others = data
    spoilt = known.copy()
    spoilt[3, 77, 2] = np.nan
    np.save(tmp_path / "id.npy", spoilt)
    monkeypatch.setattr(source, "VALUES_A_CHUNK", 5 * CLASSES * 10)
    with pytest.raises(ValueError, match=r"id\.npy: row 77, member 3: class 2 is nan"):
        evaluate(open_predictions(tmp_path / "id.npy"), others)


def test_take_reads_rows_across_chunks(monkeypatch, data):
    known, _, _ = data
    monkeypatch.setattr(source, "VALUES_A_CHUNK", 5 * CLASSES * 9)
    rows = np.array([0, 8, 9, 44, 119])
    assert (Source("x", known, False).take(rows) == known[:, rows]).all()
