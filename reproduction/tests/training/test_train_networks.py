"""Training as a whole: every method learns, and the same comes out however the work is cut up."""

import json
import math
from dataclasses import asdict, replace

import pytest
import torch

from credalens_paper.training.network_folder import predict_images
from credalens_paper.training.spec import TrainSpec, schedule_for
from reproduction.tests.training.tiny import (
    EVERY,
    METHODS,
    SPEC,
    STATISTICS,
    STUDENT,
    assert_equal_weights,
    blobs,
    build,
    files,
    load,
    member,
    train,
)


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: f"{spec.method}{spec.seed}")
def test_every_method_learns(trained, spec):
    folder, _ = trained
    test, model = blobs(seed=9), load(spec, folder)
    if spec.distilled:
        predicted = predict_images(model, test.images, **STATISTICS, device="cpu", concentrations=True)[0]
    else:
        samples = 5 if spec.bayesian else 1
        predicted = predict_images(model, test.images, **STATISTICS, samples=samples, device="cpu").mean(0)
    assert (predicted.argmax(-1) == test.labels).mean() > 0.9


def test_results_are_in_order_and_carry_their_epochs(trained):
    folder, results = trained
    assert [result.spec for result in results] == EVERY
    for result in results:
        assert result.trained
        assert result.folder == folder / result.spec.key
        assert [record.epoch for record in result.history] == list(range(1, 25))
        assert result.history[-1].loss < result.history[0].loss
        assert all(0 <= record.accuracy <= 1 and record.seconds > 0 for record in result.history)
        assert [asdict(record) for record in result.history] == json.loads((result.folder / "history.json").read_text())


def test_the_folder_says_what_was_trained_and_on_what(trained):
    folder, _ = trained
    assert files(folder, STUDENT) == {"spec.json", "history.json", "model.safetensors"}
    note = json.loads((folder / STUDENT.key / "spec.json").read_text())
    assert TrainSpec(**note["spec"]) == STUDENT
    assert note["schedule"] == schedule_for(STUDENT, epochs=24).as_dict()
    assert note["data"] == blobs().fingerprint()
    assert {"torch", "device", "seed", "precision", "time", "credalens"} <= note["provenance"].keys()
    assert note["provenance"]["seed"] == 5


def test_what_is_finished_is_kept(trained):
    folder, _ = trained
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    results = train(EVERY, folder, epochs=24, build=None)
    assert not any(result.trained for result in results)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.method)
def test_seeds_decide_everything(alone, tmp_path, spec):
    torch.manual_seed(123)
    state = torch.get_rng_state()
    specs = [*spec.teacher_specs(), spec, replace(spec, seed=spec.seed + 2)]
    train(specs, tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    assert_equal_weights(load(spec, tmp_path), load(spec, alone))
    with pytest.raises(AssertionError):
        assert_equal_weights(load(specs[-1], tmp_path), load(spec, alone))


@pytest.mark.parametrize("side_by_side", [2, 10])
def test_side_by_side_is_the_same_as_alone(alone, tmp_path, side_by_side):
    train([*METHODS, member(seed=1), SPEC], tmp_path, side_by_side=side_by_side)
    for spec in [*METHODS, SPEC]:
        assert_equal_weights(load(spec, tmp_path), load(spec, alone))


def test_bfloat16_trains(tmp_path):
    (result,) = train([member(method="bnnr")], tmp_path, precision="bfloat16", epochs=1)
    assert math.isfinite(result.history[0].loss)
    assert all(weight.dtype == torch.float32 for weight in load(member(method="bnnr"), tmp_path).parameters())


def test_images_are_resized_for_the_network(tmp_path):
    sizes = set()

    def watching(name, **options):
        network = build(name, **options)
        network.register_forward_pre_hook(lambda module, inputs: sizes.add(tuple(inputs[0].shape[1:])))
        return network

    train([member(image_size=16)], tmp_path, build=watching, epochs=1)
    assert sizes == {(3, 16, 16)}


def test_a_set_smaller_than_a_batch(tmp_path):
    (result,) = train([SPEC], tmp_path, data=blobs(10))
    assert [record.epoch for record in result.history] == [1, 2]
    assert {round(10 * record.accuracy, 6) % 1 for record in result.history} == {0}


def test_nothing_to_train(tmp_path):
    assert train([], tmp_path) == []


@pytest.mark.parametrize(
    ("spec", "graphs"),
    [(SPEC, [True]), (member(method="bnnr"), [False]), (STUDENT, [True, False, False])],
    ids=["standard", "bayesian", "student and two teachers"],
)
def test_compiling_is_asked_for_once_for_each_network(spec, graphs, tmp_path, monkeypatch):
    asked = []

    def compile(network, *, options, dynamic):  # noqa: A001
        asked.append(options["triton.cudagraphs"])
        assert ("deterministic" in options) == ("deterministic" in torch._inductor.list_options())
        return network

    folders = [tmp_path / name for name in ("plain", "fused")]
    for folder in folders:
        train(list(spec.teacher_specs()), folder)
    plain = train([spec], folders[0])
    monkeypatch.setattr(torch, "compile", compile)
    fused = train([spec], folders[1], compile=True)
    assert asked == graphs
    same = [record.loss for record in fused[0].history] == [record.loss for record in plain[0].history]
    assert same is not spec.bayesian  # whose noise then comes from torch's global generator


@pytest.mark.parametrize("side_by_side", [1, 2])
def test_networks_side_by_side_do_without_graphs_which_share_their_memory(side_by_side, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "compile", lambda network, **more: asked.append(more["options"]) or network)
    train([SPEC, member(seed=1)], tmp_path, compile=True, side_by_side=side_by_side)
    assert [options["triton.cudagraphs"] for options in asked] == [side_by_side == 1] * 2
