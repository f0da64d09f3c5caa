"""The stages of a reproduction: nothing is made twice, stopping loses nothing, what is missing is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tests.paper.fake_engine import FakeEngine

from credalens.paper import reproduce_models
from credalens.paper.experiments import CellKey, EvaluationSet, ensembles
from credalens.paper.presets import get_preset
from credalens.paper.reproduce import reproduce
from credalens.paper.reproduce_evaluate import Evaluation, Evaluator
from credalens.paper.reproduce_images import Images
from credalens.paper.reproduce_models import Deadline, Models, TimeIsUp
from credalens.paper.reproduce_work import NOT_STORED, Need, Workbench
from credalens.paper.store import Store

SMOKE = replace(get_preset("smoke"), test_images=40)
DE = CellKey(
    metric="AUROC",
    backbone="resnet18",
    method="DE",
    N=5,
    id_set="cifar10",
    variant="credal",
    measure="EU",
    ood_set="svhn",
)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    """Waiting for the disk after each of many small files would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def workbench(folder, *, preset=SMOKE, engine=None, data=None, seconds=None, stop_after=None):
    store = Store(folder)
    models = Models(
        store, preset, Images(store, preset, data), engine or FakeEngine(), Deadline(seconds), lambda line: None
    )
    return Workbench(models, Evaluator(models), stop_after=stop_after)


def run(folder, *labels, engine, preset=SMOKE, **options):
    return reproduce(labels, preset=preset, out=folder, engine=engine, **options)


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.npy")}


def test_a_second_run_trains_and_predicts_nothing_and_gives_the_same_numbers(tmp_path):
    first, second = FakeEngine(), FakeEngine()
    made = run(tmp_path, "OODMain", engine=first).results[0]
    again = run(tmp_path, "OODMain", engine=second).results[0]
    assert first.trainings
    assert (second.trainings, second.predictions) == ([], [])
    assert made["cells"] == again["cells"]
    assert made["improvements"] == again["improvements"]


def test_entries_share_what_others_have_made(tmp_path):
    run(tmp_path, "OODMain", engine=FakeEngine())
    other = FakeEngine()
    run(tmp_path, "OODMainTU", "ece_cifar10_full", "ProbabilityPlot", engine=other)
    assert (other.trainings, other.predictions) == ([], [])


def test_every_network_is_trained_once_and_teachers_before_students(tmp_path):
    engine = FakeEngine()
    run(tmp_path, "OODMain", "UndiserableEDDfair", engine=engine)  # the fake refuses to train twice or too early
    methods = [spec.method for spec in engine.trainings]
    assert methods.count("snn") == 2 * SMOKE.members
    assert methods.count("edd") == methods.count("edd_fair") == 2 * SMOKE.edd_runs


def test_the_stages_can_be_run_one_by_one(tmp_path):
    engine = FakeEngine()
    trained = run(tmp_path, "OODMainTU", engine=engine, stop_after="train")
    assert engine.trainings
    assert not engine.predictions
    assert "stopped after the stage 'train'" in trained.unfinished["OODMainTU"]
    predicted = run(tmp_path, "OODMainTU", engine=(second := FakeEngine()), stop_after="predict")
    assert not second.trainings
    assert second.predictions
    assert predicted.results == []
    finished = run(tmp_path, "OODMainTU", engine=(third := FakeEngine()))
    assert (third.trainings, third.predictions) == ([], [])
    assert finished.results[0]["status"] == "measured"


def test_a_run_of_many_short_ones_ends_with_the_numbers_of_one_long_run(tmp_path, monkeypatch):
    """Time passes by one second at every look at the clock, so each run does a few units of work."""
    ticks = iter(range(100_000))
    monkeypatch.setattr(reproduce_models, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    whole = run(tmp_path / "long", "GHComparison", engine=FakeEngine()).results[0]
    engine, attempts = FakeEngine(), 0
    while True:
        attempts += 1
        outcome = run(tmp_path / "short", "GHComparison", engine=engine, time_limit=4)
        if not outcome.unfinished:
            break
        assert "time limit of 4 s has passed" in outcome.unfinished["GHComparison"]
    assert attempts > 5
    assert outcome.results[0]["cells"] == whole["cells"]


def test_labels_after_the_time_limit_are_named_unfinished(tmp_path, monkeypatch):
    ticks = iter(range(100_000))
    monkeypatch.setattr(reproduce_models, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    outcome = run(tmp_path, "ACreNNStructure", "OODMain", "PIA", engine=FakeEngine(), time_limit=2)
    assert [result["label"] for result in outcome.results] == ["ACreNNStructure"]
    assert list(outcome.unfinished) == ["OODMain", "PIA"]


def test_more_samples_leave_the_first_ones_as_they_are(tmp_path):
    cell = CellKey(metric="ACC", backbone="vgg16", method="BNNR", N=5, id_set="cifar10")
    few, many = (ensembles(replace(cell, N=N), SMOKE)[0] for N in (5, 50))
    assert few.samples < many.samples
    work, one = workbench(tmp_path), EvaluationSet("digits")
    work.predict([(few, [one])])
    before = work.models.members(few, one).copy()
    work.predict([(many, [one])])
    after = work.models.members(many, one)
    np.testing.assert_array_equal(after[: few.N], before)
    assert len(np.unique(after[:, 0, 0])) == many.N


def test_a_thousand_samples_are_stored_as_sums_and_equal_the_samples(tmp_path):
    cell = CellKey(metric="ACC", backbone="resnet18", method="BNNR", N=1000, id_set="cifar10")
    thousand = ensembles(cell, SMOKE)[0]
    assert SMOKE.keep < thousand.N
    kept = workbench(tmp_path / "kept", preset=replace(SMOKE, keep=100))
    summed = workbench(tmp_path / "summed")
    one, scores = EvaluationSet("digits"), []
    for work in (kept, summed):
        work.predict([(thousand, [one])])
        scores.append(work.evaluator.assess(Evaluation(thousand, "digits"), one, hartley=True).scores)
    assert not (tmp_path / "summed" / "predictions" / thousand.specs[0].key / "digits.npy").exists()
    for name, values in scores[0].items():
        np.testing.assert_allclose(scores[1][name], values, atol=1e-5)


def test_a_killed_summary_goes_on_where_it_was(tmp_path):
    cell = CellKey(metric="ACC", backbone="resnet18", method="BNNR", N=1000, id_set="cifar10")
    thousand, one = ensembles(cell, SMOKE)[0], EvaluationSet("digits")
    whole = workbench(tmp_path / "whole")
    whole.predict([(thousand, [one])])

    class Killed(FakeEngine):
        def predict(self, *args, **options):
            if len(self.predictions) == 2:
                raise KeyboardInterrupt
            return super().predict(*args, **options)

    with pytest.raises(KeyboardInterrupt):
        workbench(tmp_path / "killed", engine=Killed()).predict([(thousand, [one])])
    rest = FakeEngine()
    workbench(tmp_path / "killed", engine=rest).predict([(thousand, [one])])
    assert len(rest.predictions) == thousand.N // SMOKE.draws - 2
    found = Store(tmp_path / "killed").summary(thousand.specs[0].key, "digits")
    for name, part in Store(tmp_path / "whole").summary(thousand.specs[0].key, "digits").items():
        np.testing.assert_array_equal(found[name], part)


KILLED = """
import os, sys
from tests.paper.fake_engine import FakeEngine
from credalens.paper.reproduce import reproduce

class Killed(FakeEngine):
    def predict(self, *args, **options):
        if len(self.predictions) == 9:
            os.kill(os.getpid(), 9)
        return super().predict(*args, **options)

reproduce(["GHComparison"], preset="smoke", out=sys.argv[1], engine=Killed())
"""


def test_a_run_killed_without_warning_goes_on_and_ends_with_the_same_numbers(tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed")]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert done.returncode == -9
    rest = FakeEngine()
    resumed = run(tmp_path / "killed", "GHComparison", engine=rest, preset="smoke").results[0]
    assert rest.trainings == []
    whole = run(tmp_path / "whole", "GHComparison", engine=FakeEngine(), preset="smoke").results[0]
    assert resumed["cells"] == whole["cells"]


def test_diverged_networks_are_marked_left_out_and_not_tried_again(tmp_path):
    engine = FakeEngine(diverging={("bnnr", 0)})
    result = run(tmp_path, "ablation BNNsVGG16EU", engine=engine).results[0]
    counts = {cell["keys"]["method"]: cell["n"] for cell in result["cells"]}
    assert counts == {"BNNR": SMOKE.bnn_runs - 1, "BNNF": SMOKE.bnn_runs}
    assert {kind["method"]: kind["diverged"] for kind in result["models"]} == {"BNNR": 1, "BNNF": 0}
    assert len(list((tmp_path / "smoke" / "diverged").iterdir())) == 1
    again = FakeEngine()
    run(tmp_path, "ablation BNNsVGG16EU", engine=again)
    assert again.trainings == []


def test_a_table_whose_runs_all_diverged_says_so(tmp_path):
    engine = FakeEngine(diverging={("bnnr", seed) for seed in range(SMOKE.bnn_runs)})
    result = run(tmp_path, "1000samplesBNNREU", engine=engine).results[0]
    assert result["status"] == "not measured"
    assert {cell["reason"] for cell in result["cells"]} == {f"all {SMOKE.long_runs} runs diverged"}


def test_students_of_a_diverged_teacher_are_left_out_too(tmp_path):
    engine = FakeEngine(diverging={("snn", seed) for seed in range(SMOKE.members)})
    result = run(tmp_path, "UndiserableEDDfair", engine=engine).results[0]
    assert result["status"] == "not measured"


def test_errors_of_other_kinds_stop_the_run(tmp_path):
    class Broken(FakeEngine):
        def train(self, specs, data, folder):
            raise FloatingPointError("something else")

    with pytest.raises(FloatingPointError, match="something else"):
        run(tmp_path, "OODMainTU", engine=Broken())


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
    assert after["cells"] == before["cells"]
    work = workbench(tmp_path / "smoke", engine=Other())
    needs = work.needs(replace(DE, backbone="resnet50"), many=True)
    work.predict([(need.evaluation.ensemble, need.sets) for need in needs])
    renewed = run(tmp_path, "AblationNEUAPP", engine=FakeEngine()).results[0]
    changed = [
        old["keys"]["ood_set"]
        for old, new in zip(before["cells"], renewed["cells"], strict=True)
        if old["keys"]["N"] == 5 and old["runs"] != new["runs"]
    ]
    assert set(changed) == {"svhn"}


def test_evaluations_are_enough_where_the_predictions_were_not_kept(tmp_path):
    before = run(tmp_path, "OODMainTU", engine=FakeEngine()).results[0]
    for part in ("predictions", "models", "images"):
        shutil.rmtree(tmp_path / "smoke" / part, ignore_errors=True)
    engine = FakeEngine()
    after = run(tmp_path, "OODMainTU", engine=engine).results[0]
    assert (engine.trainings, engine.predictions) == ([], [])
    assert (after["cells"], after["models"]) == (before["cells"], before["models"])


def test_predictions_stay_untouched_by_a_second_run(tmp_path):
    run(tmp_path, "OODMain", engine=FakeEngine())
    before = files(tmp_path)
    run(tmp_path, "OODMain", "AblationBNNs", engine=FakeEngine())
    after = files(tmp_path)
    one_sample = [name for name in before if "-snn-" in str(name) or "labels" in str(name)]
    assert one_sample
    assert all(before[name] == after[name] for name in one_sample)


def test_a_figure_stopped_after_training_has_trained_everything_it_needs(tmp_path):
    for label in ("OODEUTUVggRes", "entropy_plots_cifar10", "OODEUTUBNNFullRebuttal", "PIA"):
        first, second = FakeEngine(), FakeEngine()
        run(tmp_path / label, label, engine=first, stop_after="train")
        assert first.trainings
        run(tmp_path / label, label, engine=second, stop_after="predict")
        assert (second.trainings, bool(second.predictions)) == ([], True)
        third = FakeEngine()
        assert run(tmp_path / label, label, engine=third).results[0]["status"] == "measured"
        assert (third.trainings, third.predictions) == ([], [])


def test_a_run_about_one_method_leaves_the_others_for_later_and_shows_what_is_there(tmp_path):
    engine = FakeEngine()
    result = run(tmp_path, "OODMainTU", engine=engine, preset=SMOKE.only(["DE", "resnet18"])).results[0]
    assert {(spec.method, spec.backbone) for spec in engine.trainings} == {("snn", "resnet18")}
    assert result["status"] == "partly measured"
    reasons = {(cell["keys"]["method"], cell["keys"]["backbone"]): cell.get("reason") for cell in result["cells"]}
    assert reasons["DE", "resnet18"] is None
    assert reasons["BNNR", "resnet18"] == "BNNR is left out of this run, which is about DE"
    assert reasons["DE", "vgg16"] == "VGG16 is left out of this run, which is about ResNet-18"
    later = run(tmp_path, "OODMainTU", engine=FakeEngine(), preset=SMOKE.only(["BNNR"])).results[0]
    measured = {(cell["keys"]["method"], cell["keys"]["backbone"]) for cell in later["cells"] if "mean" in cell}
    assert measured == {("DE", "resnet18"), ("BNNR", "resnet18"), ("BNNR", "vgg16")}


def test_a_panel_shows_the_lines_it_has_and_names_the_others(tmp_path):
    result = run(tmp_path, "OODEUTUVggRes", engine=FakeEngine(), preset=SMOKE.only(["DE"])).results[0]
    panels = {panel["title"]: panel for panel in result["panels"]}
    assert [line["name"] for line in panels["VGG16, DE"]["series"]] == ["Classical", "Credal"]
    assert panels["VGG16, DE"]["missing"] == {"EDD": "EDD is left out of this run, which is about DE"}
    assert panels["VGG16, BNNR"]["reason"] == "BNNR is left out of this run, which is about DE"
    assert result["status"] == "partly measured"
    assert result["files"]


def test_a_panel_without_a_line_of_its_own_method_is_not_drawn(tmp_path):
    result = run(tmp_path, "OODEUTUVggRes", engine=FakeEngine(), preset=SMOKE.only(["EDD"])).results[0]
    assert {panel["title"]: "reason" in panel for panel in result["panels"]} == {
        f"{backbone}, {method}": True for backbone in ("VGG16", "ResNet-18") for method in ("BNNR", "BNNF", "DE")
    }
    later = run(tmp_path, "OODEUTUVggRes", engine=FakeEngine(), preset=SMOKE.only(["BNNF"])).results[0]
    drawn = {
        panel["title"]: [line["name"] for line in panel["series"]] for panel in later["panels"] if "series" in panel
    }
    assert drawn == {title: ["Classical", "Credal", "EDD"] for title in ("VGG16, BNNF", "ResNet-18, BNNF")}


def test_sets_of_cifar100_are_used_the_day_they_are_there(tmp_path):
    """Image folders with every class, two images of each to train and one to test."""
    data = tmp_path / "data"
    draw_images(data / "cifar100" / "train", classes=100, count=2)
    draw_images(data / "cifar100" / "test", classes=100)
    draw_images(data / "svhn" / "test", classes=10, count=5)
    preset = replace(get_preset("fast"), members=6, runs=2, repeats=2)
    result = run(tmp_path / "out", "AblationPIA", engine=FakeEngine(), preset=preset, data_folder=data).results[0]
    for cell in result["cells"]:
        if cell["keys"].get("ood_set") == "tiny-imagenet":
            assert cell["reason"].startswith("Tiny ImageNet not found; download tiny-imagenet-200.zip")
        else:
            assert cell["n"] == 2
            assert cell["measured"] == {"backbone": "resnet18"}
    assert result["models"][0]["data"] == "cifar100"
    others = replace(preset, members=9)
    later = run(tmp_path / "out", "AblationPIA", engine=FakeEngine(), preset=others).results[0]
    assert {cell["reason"] for cell in later["cells"]} == {NOT_STORED}


def draw_images(folder, *, classes, count=1):
    rng = np.random.default_rng(classes)
    for label in range(classes):
        place = folder / f"class{label:04d}"
        place.mkdir(parents=True)
        for index in range(count):
            pixels = rng.integers(0, 255, (32, 32, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(place / f"{index}.png")


def test_missing_data_are_named_with_what_to_download(tmp_path):
    (tmp_path / "data").mkdir()
    result = run(
        tmp_path, "AblationPreTrain", engine=FakeEngine(), preset="fast", data_folder=tmp_path / "data"
    ).results[0]
    assert result["status"] == "not measured"
    reasons = {cell["keys"]["id_set"]: cell["reason"] for cell in result["cells"]}
    assert reasons["cifar100"].startswith("CIFAR-100 not found; download 'CIFAR-100 python version'")
    assert reasons["imagenet"] == "ImageNet is left to the full preset"


def test_what_can_be_measured_is_measured_when_one_set_is_missing(tmp_path):
    preset = replace(
        SMOKE, substitutes={**SMOKE.substitutes, "ood_set": {**SMOKE.substitutes["ood_set"], "svhn": "svhn"}}
    )
    engine = FakeEngine()
    result = run(tmp_path, "OODMainTU", engine=engine, preset=preset).results[0]
    assert result["status"] == "partly measured"
    for cell in result["cells"]:
        assert ("reason" in cell) == (cell["keys"]["ood_set"] == "svhn")
    assert engine.trainings


def test_imagenet_needs_pretrained_weights(tmp_path):
    result = run(tmp_path, "AblationPreTrainTU", engine=FakeEngine(), preset="full").results[0]
    reasons = {cell["reason"] for cell in result["cells"] if cell["keys"]["id_set"] == "imagenet"}
    assert reasons == {"ImageNet needs the folder of a pretrained ResNet-50; pass --pretrained FOLDER"}


def test_too_few_members_for_an_ensemble_are_a_reason_and_not_an_error(tmp_path):
    preset = SMOKE.changed(many_members=3)
    result = run(tmp_path, "AblationNTU", engine=FakeEngine(), preset=preset).results[0]
    for cell in result["cells"]:
        expected = cell["keys"]["N"] in (20, 25)
        assert ("reason" in cell) == expected
        if expected:
            assert cell["reason"] == "ensembles of N = 4 need as many trained members, this run trains 3"


def test_a_missing_data_folder_is_refused_at_once(tmp_path):
    with pytest.raises(NotADirectoryError, match=r"the data folder .*nowhere does not exist"):
        run(tmp_path, "OODMain", engine=FakeEngine(), data_folder=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 0}, "positive number of seconds, got 0"),
        ({"stop_after": "lunch"}, "one can stop after train or predict, got 'lunch'"),
        ({"measures": ["XY"]}, "no other measure 'XY'; there is GH"),
        ({"dtype": "int8"}, "stored as float32 or float16"),
    ],
)
def test_options_are_checked(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path, "OODMain", engine=FakeEngine(), **options)


def test_unknown_labels_are_refused_with_the_closest_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"no table or figure 'OODmain' \(did you mean 'OODMain'"):
        run(tmp_path, "OODmain", engine=FakeEngine())
    with pytest.raises(ValueError, match="name at least one table or figure"):
        run(tmp_path, engine=FakeEngine())


def test_deadlines_without_a_limit_never_pass():
    Deadline().check()
    with pytest.raises(TimeIsUp, match="run the same command again"):
        Deadline(1, begun=-1e9).check()


def test_need_of_unknown_predictions_is_an_error_that_names_them(tmp_path):
    work = workbench(tmp_path)
    ensemble = ensembles(DE, SMOKE)[0]
    with pytest.raises(FileNotFoundError, match=f"no 1 predictions of {ensemble.specs[0].key} on digits"):
        work.models.members(ensemble, EvaluationSet("digits"))
    assert work.value(Need(Evaluation(ensemble, "digits"), (EvaluationSet("digits"),), "credal.ACC")) is None


def test_evaluation_files_say_what_they_are_of(tmp_path):
    run(tmp_path, "OODMainTU", engine=FakeEngine())
    paths = sorted((tmp_path / "smoke" / "evaluations").glob("*-de-*.json"))
    record = json.loads(paths[0].read_text())
    assert len(record["ensemble"]["seeds"]) == record["ensemble"]["N"] == SMOKE.substitute("N", 5)
    assert record["training"][0]["provenance"] == {"device": "abacus"}
    assert record["hardware"]["cores"] >= 1
