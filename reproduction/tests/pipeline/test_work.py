"""The work of a reproduction: nothing is made twice, entries share it, and numbers are those of what is stored."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import DE, make_predictions, run, workbench
from reproduction.tests.tiny_preset import TINY

pytestmark = pytest.mark.usefixtures("hurry")


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}


def test_a_second_run_trains_and_predicts_nothing_and_gives_the_same_numbers(tmp_path):
    first, second = FakeEngine(), FakeEngine()
    made = run(tmp_path, "OODMain", engine=first).results[0]
    again = run(tmp_path, "OODMain", engine=second).results[0]
    assert first.trainings
    assert (second.trainings, second.predictions) == ([], [])
    assert made.cells == again.cells
    assert made.improvements == again.improvements


def test_entries_share_what_others_have_made(tmp_path):
    run(tmp_path, "OODMain", engine=FakeEngine())
    other = FakeEngine()
    run(tmp_path, "OODMainTU", "ece_cifar10_full", "ProbabilityPlot", engine=other)
    assert (other.trainings, other.predictions) == ([], [])


def test_every_network_is_trained_once_and_teachers_before_students(tmp_path):
    engine = FakeEngine()
    run(tmp_path, "OODMain", "UndiserableEDDfair", engine=engine)  # the fake refuses to train twice or too early
    methods = [spec.method for spec in engine.trainings]
    assert methods.count("snn") == 2 * TINY.members
    assert methods.count("edd") == methods.count("edd_fair") == 2 * TINY.edd_runs


def test_numbers_of_other_predictions_are_made_again(tmp_path):
    run(tmp_path, "AblationNEUAPP", engine=FakeEngine())
    before = run(tmp_path, "AblationNEUAPP", engine=FakeEngine()).results[0]
    for path in (tmp_path / "smoke" / "predictions").rglob("textures.npy"):
        path.unlink()

    class Other(FakeEngine):
        def predict(self, network, spec, images, **options):
            return super().predict(network, spec, 255 - images, **options)

    after = run(tmp_path, "AblationNEUAPP", engine=Other()).results[0]
    # The numbers are there, so nothing is predicted; but once other predictions are stored, the numbers are theirs.
    assert after.cells == before.cells
    work = workbench(tmp_path / "smoke", engine=Other())
    plan = work.plan(replace(DE, backbone="resnet50"), many=True)
    for one in plan.runs:
        make_predictions(work, one.ensemble, *plan.sets)
    renewed = run(tmp_path, "AblationNEUAPP", engine=FakeEngine()).results[0]
    changed = [
        old.keys.ood_set
        for old, new in zip(before.cells, renewed.cells, strict=True)
        if old.keys.N == 5 and old.ours.runs != new.ours.runs
    ]
    assert set(changed) == {"svhn"}


def test_evaluations_are_enough_where_the_predictions_were_not_kept(tmp_path):
    before = run(tmp_path, "OODMainTU", engine=FakeEngine()).results[0]
    for part in ("predictions", "models", "images"):
        shutil.rmtree(tmp_path / "smoke" / part, ignore_errors=True)
    engine = FakeEngine()
    after = run(tmp_path, "OODMainTU", engine=engine).results[0]
    assert (engine.trainings, engine.predictions) == ([], [])
    assert (after.cells, after.models) == (before.cells, before.models)


def test_predictions_stay_untouched_by_a_second_run(tmp_path):
    run(tmp_path, "OODMain", engine=FakeEngine())
    before = files(tmp_path)
    run(tmp_path, "OODMain", "AblationBNNs", engine=FakeEngine())
    after = files(tmp_path)
    one_sample = [name for name in before if "-snn-" in str(name) or "labels" in str(name)]
    assert one_sample
    assert all(before[name] == after[name] for name in one_sample)


def test_evaluation_files_say_what_they_are_of(tmp_path):
    run(tmp_path, "OODMainTU", engine=FakeEngine())
    paths = sorted((tmp_path / "smoke" / "evaluations").glob("*-de-*.json"))
    record = json.loads(paths[0].read_text())
    assert len(record["ensemble"]["seeds"]) == record["ensemble"]["N"] == TINY.substitute("N", 5)
    assert record["training"][0]["provenance"] == {"device": "abacus"}
    assert record["hardware"]["cores"] >= 1


def test_a_run_may_leave_out_what_was_measured_elsewhere(tmp_path):
    whole = run(tmp_path / "whole", "ablation BNNsVGG16EU", "1000samplesBNNREU", engine=FakeEngine())
    engine = FakeEngine()
    later = run(
        tmp_path / "later",
        "ablation BNNsVGG16EU",
        "1000samplesBNNREU",
        engine=engine,
        preset=replace(TINY, first_run=1),
    )
    assert {spec.seed for spec in engine.trainings} == set(range(1, TINY.bnn_runs))
    for ours, theirs in zip(whole.results[0].cells, later.results[0].cells, strict=True):
        assert ours.ours.runs[1:] == theirs.ours.runs
    assert {cell.reason for cell in later.results[1].cells} == {"there are no runs from number 1 on, counted from 0"}
