"""Samples of Bayesian networks: more of them leave the first as they are, and very many are stored as sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.ensembles import EvaluationSet
from credalens_paper.measures.assessment import Extras
from credalens_paper.pipeline.engines import missing_predictions, predict, stored_summary, train
from credalens_paper.pipeline.runs import Run, assess, stored_members
from credalens_paper.results.store import Store
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import first_ensemble, make_predictions, workbench
from reproduction.tests.tiny_preset import TINY

pytestmark = pytest.mark.usefixtures("hurry")
BNN = CellKey(metric="ACC", backbone="vgg16", method="BNNR", id_set="cifar10")


def test_more_samples_leave_the_first_ones_as_they_are(tmp_path):
    cell = CellKey(metric="ACC", backbone="vgg16", method="BNNR", N=5, id_set="cifar10")
    few, many = (first_ensemble(replace(cell, N=N)) for N in (5, 50))
    assert few.samples < many.samples
    work, one = workbench(tmp_path), EvaluationSet("digits")
    make_predictions(work, few, one)
    before = stored_members(work.job, few, one).copy()
    make_predictions(work, many, one)
    after = stored_members(work.job, many, one)
    np.testing.assert_array_equal(after[: few.N], before)
    assert len(np.unique(after[:, 0, 0])) == many.N


def test_a_thousand_samples_are_stored_as_sums_and_equal_the_samples(tmp_path):
    cell = CellKey(metric="ACC", backbone="resnet18", method="BNNR", N=1000, id_set="cifar10")
    thousand = first_ensemble(cell)
    assert TINY.keep < thousand.N
    kept = workbench(tmp_path / "kept", preset=replace(TINY, keep=100))
    summed = workbench(tmp_path / "summed")
    one, scores = EvaluationSet("digits"), []
    for work in (kept, summed):
        make_predictions(work, thousand, one)
        scores.append(assess(work.job, Run(thousand, "digits"), one, extras=Extras(frozenset({"GH"}))).scores)
    assert not (tmp_path / "summed" / "predictions" / thousand.specs[0].key / "digits.npy").exists()
    for name, values in scores[0].items():
        np.testing.assert_allclose(scores[1][name], values, atol=1e-5)


def test_a_killed_summary_goes_on_where_it_was(tmp_path):
    cell = CellKey(metric="ACC", backbone="resnet18", method="BNNR", N=1000, id_set="cifar10")
    thousand, one = first_ensemble(cell), EvaluationSet("digits")
    whole = workbench(tmp_path / "whole")
    make_predictions(whole, thousand, one)

    class Killed(FakeEngine):
        def predict(self, *args, **options):
            if len(self.predictions) == 2:
                raise KeyboardInterrupt
            return super().predict(*args, **options)

    with pytest.raises(KeyboardInterrupt):
        make_predictions(workbench(tmp_path / "killed", engine=Killed()), thousand, one)
    rest = FakeEngine()
    make_predictions(workbench(tmp_path / "killed", engine=rest), thousand, one)
    assert len(rest.predictions) == thousand.N // TINY.draws - 2
    found = Store(tmp_path / "killed").summary(thousand.specs[0].key, "digits")
    for name, part in Store(tmp_path / "whole").summary(thousand.specs[0].key, "digits").items():
        np.testing.assert_array_equal(found[name], part)


def test_numbers_of_other_sums_are_not_taken_for_those_of_today(tmp_path):
    cell = CellKey(metric="ACC", backbone="resnet18", method="BNNR", N=1000, id_set="cifar10")
    thousand, one, names = first_ensemble(cell), EvaluationSet("digits"), frozenset({"credal.ACC"})
    run, key = Run(thousand, "digits"), thousand.specs[0].key
    work = workbench(tmp_path)
    make_predictions(work, thousand, one)
    work.evaluator.evaluate(run, [one], names)
    assert workbench(tmp_path).evaluator.numbers(run, one, names) is not None
    store = Store(tmp_path)
    parts = store.summary(key, "digits")
    store.save_summary(key, "digits", {**parts, "upper": np.minimum(parts["upper"] + 1e-3, 1)})
    assert workbench(tmp_path).evaluator.numbers(run, one, names) is None


def test_few_samples_are_stored_beside_the_sums_of_many_of_the_same_network(tmp_path):
    work = workbench(tmp_path)
    few, many = (first_ensemble(replace(BNN, N=N)) for N in (10, 1000))
    inside = EvaluationSet("digits")
    missing = missing_predictions(work.job, [(few, [inside]), (many, [inside])])
    assert missing == {few.specs[0]: {inside: [few.samples, many.samples]}}
    train(work.job, missing)
    predict(work.job, missing)
    assert stored_members(work.job, few, inside).shape[0] == few.samples
    assert stored_summary(work.job, many.specs[0], inside).count == many.samples


def test_samples_of_which_sums_are_kept_cannot_be_trimmed(tmp_path):
    cell = replace(BNN, N=1000, variant="trim10", metric="ECE", measure=None, ood_set=None)
    assert "needs all of them, this run keeps sums beyond 6" in workbench(tmp_path).plan(cell).reason
