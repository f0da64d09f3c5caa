"""What a reproduction cannot measure is named with its reason, and what it does not know is refused at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from credalens_paper.experiments.ensembles import EvaluationSet
from credalens_paper.experiments.presets import get_preset
from credalens_paper.pipeline.plan import NOT_STORED, Plan
from credalens_paper.pipeline.runs import Run, stored_members
from reproduction.tests.data.image_files import draw_images
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import DE, first_ensemble, run, workbench
from reproduction.tests.tiny_preset import TINY

pytestmark = pytest.mark.usefixtures("hurry")


def test_a_run_about_one_method_leaves_the_others_for_later_and_shows_what_is_there(tmp_path):
    engine = FakeEngine()
    result = run(tmp_path, "OODMainTU", engine=engine, preset=TINY.only(["DE", "resnet18"])).results[0]
    assert {(spec.method, spec.backbone) for spec in engine.trainings} == {("snn", "resnet18")}
    assert result.status == "partly measured"
    reasons = {(cell.keys.method, cell.keys.backbone): cell.reason for cell in result.cells}
    assert reasons["DE", "resnet18"] is None
    assert reasons["BNNR", "resnet18"] == "BNNR is left out of this run, which is about DE"
    assert reasons["DE", "vgg16"] == "VGG16 is left out of this run, which is about ResNet-18"
    later = run(tmp_path, "OODMainTU", engine=FakeEngine(), preset=TINY.only(["BNNR"])).results[0]
    measured = {(cell.keys.method, cell.keys.backbone) for cell in later.cells if cell.ours is not None}
    assert measured == {("DE", "resnet18"), ("BNNR", "resnet18"), ("BNNR", "vgg16")}


def test_a_panel_shows_the_lines_it_has_and_names_the_others(tmp_path):
    result = run(tmp_path, "OODEUTUVggRes", engine=FakeEngine(), preset=TINY.only(["DE"])).results[0]
    panels = {panel.title: panel for panel in result.panels}
    assert [line.name for line in panels["VGG16, DE"].series] == ["Classical", "Credal"]
    assert panels["VGG16, DE"].missing == {"EDD": "EDD is left out of this run, which is about DE"}
    assert panels["VGG16, BNNR"].reason == "BNNR is left out of this run, which is about DE"
    assert result.status == "partly measured"
    assert result.files


def test_the_line_of_another_method_waits_in_its_panels_for_their_own(tmp_path):
    result = run(tmp_path, "OODEUTUVggRes", engine=FakeEngine(), preset=TINY.only(["EDD"])).results[0]
    assert result.status == "partly measured"
    for panel in result.panels:
        assert [line.name for line in panel.series] == ["EDD"]
        assert panel.missing.keys() == {"Classical", "Credal"}
    later = run(tmp_path, "OODEUTUVggRes", engine=FakeEngine(), preset=TINY.only(["BNNF"])).results[0]
    whole = {
        panel.title for panel in later.panels if [line.name for line in panel.series] == ["Classical", "Credal", "EDD"]
    }
    assert whole == {"VGG16, BNNF", "ResNet-18, BNNF"}


def test_sets_of_cifar100_are_used_the_day_they_are_there(tmp_path):
    """Image folders with every class, two images of each to train and one to test."""
    data = tmp_path / "data"
    draw_images(data / "cifar100" / "train", classes=100, count=2)
    draw_images(data / "cifar100" / "test", classes=100)
    draw_images(data / "svhn" / "test", classes=10, count=5)
    preset = replace(get_preset("fast"), members=6, runs=2, repeats=2)
    result = run(tmp_path / "out", "AblationPIA", engine=FakeEngine(), preset=preset, data_folder=data).results[0]
    for cell in result.cells:
        if cell.keys.ood_set == "tiny-imagenet":
            assert cell.reason.startswith("Tiny ImageNet not found; download tiny-imagenet-200.zip")
        else:
            assert cell.ours.n == 2
            assert cell.substitutes == {"backbone": "resnet18"}
    assert result.models[0].data == "cifar100"
    others = replace(preset, members=9)
    later = run(tmp_path / "out", "AblationPIA", engine=FakeEngine(), preset=others).results[0]
    assert {cell.reason for cell in later.cells} == {NOT_STORED}


def test_missing_data_are_named_with_what_to_download(tmp_path):
    (tmp_path / "data").mkdir()
    result = run(
        tmp_path, "AblationPreTrain", engine=FakeEngine(), preset="fast", data_folder=tmp_path / "data"
    ).results[0]
    assert result.status == "not measured"
    reasons = {cell.keys.id_set: cell.reason for cell in result.cells}
    assert reasons["cifar100"].startswith("CIFAR-100 not found; download 'CIFAR-100 python version'")
    assert reasons["imagenet"] == "ImageNet is left to the full preset"


def test_what_can_be_measured_is_measured_when_one_set_is_missing(tmp_path):
    preset = replace(TINY, substitutes={**TINY.substitutes, "ood_set": {**TINY.substitutes["ood_set"], "svhn": "svhn"}})
    engine = FakeEngine()
    result = run(tmp_path, "OODMainTU", engine=engine, preset=preset).results[0]
    assert result.status == "partly measured"
    for cell in result.cells:
        assert (cell.reason is not None) == (cell.keys.ood_set == "svhn")
    assert engine.trainings


def test_imagenet_needs_pretrained_weights(tmp_path):
    result = run(tmp_path, "AblationPreTrainTU", engine=FakeEngine(), preset="full").results[0]
    reasons = {cell.reason for cell in result.cells if cell.keys.id_set == "imagenet"}
    assert reasons == {"ResNet-50 starts from weights of ImageNet; pass their folder as --pretrained FOLDER"}


def test_fine_tuning_needs_the_weights_of_its_own_network(tmp_path):
    reason = "EffLite0 starts from weights of ImageNet; pass their folder as --pretrained FOLDER"
    preset = replace(TINY, substitutes={**TINY.substitutes, "backbone": {}})
    lite, resnet = tmp_path / "lite", tmp_path / "resnet"
    for folder, files in (
        (lite, {"a.pth": ""}),
        (resnet, {"config.json": '{"model_type": "resnet"}', "model.safetensors": ""}),
    ):
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    for options in ({}, {"pretrained": str(resnet)}):
        result = run(tmp_path / "store", "FineTuned", engine=FakeEngine(), preset=preset, **options).results[0]
        assert {cell.reason for cell in result.cells} == {reason}
    engine = FakeEngine()
    result = run(tmp_path / "store", "FineTuned", engine=engine, preset=preset, pretrained=str(lite)).results[0]
    assert result.status == "measured"
    assert {(spec.backbone, spec.weights) for spec in engine.trainings} == {("efficientnet_lite0", str(lite))}
    written = "".join(path.read_text() for path in (tmp_path / "store").rglob("*.json"))
    assert str(lite) not in written


def test_too_few_members_for_an_ensemble_are_a_reason_and_not_an_error(tmp_path):
    preset = TINY.changed(many_members=2)
    result = run(tmp_path, "AblationNTU", engine=FakeEngine(), preset=preset).results[0]
    for cell in result.cells:
        expected = cell.keys.N in (20, 25)
        assert (cell.reason is not None) == expected
        if expected:
            assert cell.reason == "ensembles of N = 3 need as many trained members, this run trains 2"


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
        ({"threads": 0}, "threads must be at least 1"),
        ({"pretrained": "nowhere"}, "no config.json in nowhere"),
    ],
)
def test_options_are_checked_before_anything_is_trained(tmp_path, options, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(tmp_path, "OODMain", engine=FakeEngine(), **options)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_cannot_be_loaded_are_refused_before_anything_is_trained(tmp_path):
    weights, store = tmp_path / "weights", tmp_path / "store"
    weights.mkdir()
    with pytest.raises(FileNotFoundError, match=f"no config.json in {weights}"):
        run(store, "OODMain", engine=FakeEngine(), pretrained=str(weights))
    (weights / "config.json").write_text('{"model_type": "vit"}')
    with pytest.raises(FileNotFoundError, match=f"no model.safetensors in {weights}"):
        run(store, "OODMain", engine=FakeEngine(), pretrained=str(weights))
    (weights / "model.safetensors").touch()
    with pytest.raises(ValueError, match=f"{weights} holds a 'vit' network; resnet50 is a ResNet"):
        run(store, "OODMain", engine=FakeEngine(), pretrained=str(weights))
    assert not store.exists()


def test_unknown_labels_are_refused_with_the_closest_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"no table or figure 'OODmain' \(did you mean 'OODMain'"):
        run(tmp_path, "OODmain", engine=FakeEngine())
    with pytest.raises(ValueError, match="name at least one table or figure"):
        run(tmp_path, engine=FakeEngine())


def test_need_of_unknown_predictions_is_an_error_that_names_them(tmp_path):
    work = workbench(tmp_path)
    ensemble = first_ensemble(DE)
    with pytest.raises(FileNotFoundError, match=f"^1 prediction of {ensemble.specs[0].key} on digits: not stored"):
        stored_members(work.job, ensemble, EvaluationSet("digits"))
    runs = (Run(ensemble, "digits"),)
    assert work.values(Plan(runs, (EvaluationSet("digits"),), "credal.ACC", available=runs)) == {}
