"""What recalibration would change is judged on inputs that no temperature saw, recommended where it helps, and true."""

from __future__ import annotations

import json

import numpy as np
import pytest

from credalens import Recalibration, evaluate, wrap_logits
from credalens.evaluation import calibration_metrics, ood_metrics
from credalens.evaluation.recalibrated import FOLDS
from credalens.prediction import wrap
from tests.core.test_recalibration import overconfident

ROWS = 1500


@pytest.fixture(scope="module")
def sure():
    """Members that are three times too sure, labels, and inputs that they do not know."""
    logits, labels = overconfident(ROWS, factor=3.0)
    unknown = 0.4 * np.random.default_rng(5).normal(size=(5, 700, 4)) * 3.0
    return logits, labels, unknown


@pytest.fixture(scope="module")
def evaluation(sure):
    logits, labels, unknown = sure
    return evaluate(logits, {"unknown": unknown}, labels=labels, logits=True, replicates=100)


def test_it_is_recommended_for_members_that_are_too_sure(evaluation):
    effect = evaluation.recalibration
    assert effect.recommended
    assert effect.low < effect.temperature < effect.high
    assert effect.nll.credal.verdict == effect.nll.averaged.verdict == "better"
    assert effect.ece.of(effect.through).verdict == "better"
    assert "Recalibrate the members" in evaluation.words.recalibration
    assert evaluation.words.recalibration in evaluation.words.lines()


def test_its_numbers_are_those_of_temperatures_that_other_folds_gave(sure, evaluation):
    """Said again from the start: fit on four fifths, judge the last one."""
    logits, labels, unknown = sure
    effect = evaluation.recalibration
    rng = np.random.default_rng(evaluation.settings.seed)
    assert np.array_equal(np.sort(rng.permutation(ROWS)), np.arange(ROWS))
    folds = rng.permutation(ROWS) % FOLDS
    surprise, totals = np.empty(ROWS), np.empty(ROWS)
    for k in range(FOLDS):
        judged = folds == k
        fitted = Recalibration.fit(logits[:, ~judged], labels[~judged], logits=True, through=effect.through)
        prediction = wrap_logits(logits[:, judged], recalibration=fitted)
        point = prediction.probability if effect.through == "credal" else prediction.mean
        surprise[judged] = -np.log(point[np.arange(judged.sum()), labels[judged]])
        totals[judged] = prediction.total
    assert effect.nll.of(effect.through).a == pytest.approx(surprise.mean(), abs=1e-12)
    plain = wrap_logits(logits)
    before = calibration_metrics(plain.probability if effect.through == "credal" else plain.mean, labels)
    assert effect.nll.of(effect.through).b == pytest.approx(before.nll, abs=1e-9)
    assert effect.ece.of(effect.through).b == pytest.approx(before.ece, abs=1e-9)
    whole = Recalibration.fit(logits, labels, logits=True, through=effect.through)
    of_unknown = wrap_logits(unknown, recalibration=whole)
    changed = effect.detection["unknown"]["total"]
    assert changed.a == pytest.approx(ood_metrics(totals, of_unknown.total).auroc, abs=1e-12)
    assert changed.b == pytest.approx(ood_metrics(plain.total, wrap_logits(unknown).total).auroc, abs=1e-12)


def test_members_that_are_as_sure_as_they_should_be_are_left_alone():
    logits, labels = overconfident(ROWS)
    fitted = Recalibration.fit(logits, labels, logits=True)
    evaluation = evaluate(fitted.apply(logits, logits=True), labels=labels, replicates=100)
    assert not evaluation.recalibration.recommended
    assert "not clearly worth it" in evaluation.words.recalibration


def test_a_recalibrated_evaluation_is_that_of_recalibrated_members(sure):
    logits, labels, unknown = sure
    fitted = Recalibration.fit(logits[:, :500], labels[:500], logits=True)
    options = {"labels": labels[500:], "replicates": 100}
    one = evaluate(logits[:, 500:], {"unknown": unknown}, logits=True, recalibration=fitted, **options)
    p, q = (fitted.apply(x, logits=True) for x in (logits[:, 500:], unknown))
    other = evaluate(p, {"unknown": q}, **options)
    for name, values in one.values["unknown"].items():
        np.testing.assert_allclose(values, other.values["unknown"][name], atol=1e-7, err_msg=name)
    assert one.calibration.credal.nll == pytest.approx(other.calibration.credal.nll, abs=1e-9)
    assert one.recalibration is None
    assert one.settings.temperatures == tuple(fitted.temperatures)
    assert "divided by the temperature" in one.words.recalibration
    new = wrap(p[:, :5]), wrap_logits(logits[:, 500:505], recalibration=fitted)
    assert one.guard.decide(new[1]).accepted.shape == (5,)
    with pytest.raises(ValueError, match="Use the same recalibration"):
        one.guard.decide(new[0])


def test_without_labels_and_with_few_of_them_nothing_is_said(sure):
    logits, labels, unknown = sure
    assert evaluate(logits, {"unknown": unknown}, logits=True, replicates=100).words.recalibration is None
    few = evaluate(logits[:, :100], labels=labels[:100], logits=True, replicates=100)
    assert few.recalibration is None
    assert few.words.recalibration is None


def test_one_hot_members_have_no_temperature():
    rng = np.random.default_rng(0)
    votes = np.eye(3)[rng.integers(0, 3, (5, 400))]
    with pytest.warns(UserWarning, match="one-hot"):
        assert evaluate(votes, labels=rng.integers(0, 3, 400), replicates=100).recalibration is None


def test_the_page_and_the_file_have_it(evaluation, tmp_path):
    evaluation.report(tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert page.count("Recalibrate the members. ") == 1
    assert 'data-series="recalibrated"' in page
    stored = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    effect = evaluation.recalibration
    assert stored["recalibration"]["temperature"] == effect.temperature
    assert stored["recalibration"]["nll"]["credal"]["a"] == effect.nll.credal.a


def test_open_rows_are_warned_of_once(monkeypatch):
    """Flat members of many classes leave rows open; subsets of members and recalibrated ones say nothing more."""
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(40), (6, 200)), rng.integers(0, 40, 200)
    monkeypatch.setattr(wrap, "__kwdefaults__", {**wrap.__kwdefaults__, "max_nodes": 1})
    with pytest.warns(RuntimeWarning, match="not certified") as caught:
        evaluation = evaluate(p, labels=labels, replicates=50)
    assert evaluation.recalibration is not None
    assert len([one for one in caught if "(aleatoric)" in str(one.message)]) == 1
