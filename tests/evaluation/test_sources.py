"""What an evaluation reads: arrays, files, logits, and what it refuses or warns of."""

from __future__ import annotations

import numpy as np
import pytest

from credalens import wrap
from credalens.evaluation import evaluate
from credalens.storage import open_predictions, save_predictions, source
from credalens.storage.source import Source
from tests.evaluation.small_data import CLASSES, ROWS
from tests.strategies import batch_of


def softmax(logits):
    z = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def test_files_read_in_pieces_give_the_same_as_arrays(monkeypatch, tmp_path, data, found):
    known, labels, others = data
    save_predictions(tmp_path / "id.npz", known)
    files = {name: tmp_path / f"{name}.parquet" for name in others}
    for name, probs in others.items():
        save_predictions(files[name], probs)
    monkeypatch.setattr(source, "rows_at_a_time", lambda *_: 7)
    opened = {name: open_predictions(path) for name, path in files.items()}
    again = evaluate(open_predictions(tmp_path / "id.npz"), opened, labels=labels, replicates=60)
    assert again.data.id.file == "id.npz"
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ood": {}, "labels": None}, r"nothing to evaluate: give labels.*--labels.*--ood.*or both"),
        ({"ood": {"in-distribution": np.full((5, 3, CLASSES), 0.25)}}, "names both"),
        ({"ood": {"o": np.full((5, 3, 5), 0.2)}}, "o has 5 classes and in-distribution has 4"),
        ({"ood": {"o": np.full((4, 3, CLASSES), 0.25)}}, "o has 4 members and in-distribution has 5"),
        ({"ood": {"o": np.full((5, CLASSES), 0.25)}}, r"\(members, rows, classes\); got \(5, 4\)"),
        ({"ood": {"o": np.full((5, 1, CLASSES), 0.25)}}, "o: 1 row of predictions; an evaluation needs at least 2"),
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
    monkeypatch.setattr(source, "rows_at_a_time", lambda *_: 10)
    with pytest.raises(ValueError, match=r"id\.npy: row 77, member 3: class 2 is nan"):
        evaluate(open_predictions(tmp_path / "id.npy"), others)


def test_take_reads_rows_across_chunks(monkeypatch, data):
    known, _, _ = data
    monkeypatch.setattr(source, "rows_at_a_time", lambda *_: 9)
    rows = np.array([0, 8, 9, 44, 119])
    assert (Source("x", known, False).take(rows) == known[:, rows]).all()


def test_what_is_in_the_wrong_place_is_named():
    members = batch_of("peaked", 3, 30, 4)
    with pytest.raises(TypeError, match=r"\{'noise': probs\}; got ndarray\. Labels"):
        evaluate(members, np.zeros(30, int))
    with pytest.raises(TypeError, match=r"in-distribution: .* got a CredalPrediction"):
        evaluate(wrap(members), labels=np.zeros(30, int))
