"""Training as a whole: every method learns, and the same comes out however the work is cut up."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from credalens_paper.training import jobs
from credalens_paper.training.epoch_counts import DivergedError
from credalens_paper.training.network_folder import read_note, read_tensors, to_bytes
from credalens_paper.training.networks import load_model
from credalens_paper.training.predict_images import predict_concentrations, predict_members
from credalens_paper.training.randomness import INITIAL, derived_seed
from credalens_paper.training.recipes.schedules import schedule_for
from credalens_paper.training.spec import TrainSpec
from credalens_paper.training.train_networks import train_models
from reproduction.tests.training.test_network_folder import little_room
from reproduction.tests.training.tiny import SPEC, STATISTICS, assert_equal_weights, blobs, build, member, same_threads

STUDENT = member(method="edd", seed=5, teachers=(0, 1))
EVERY = [
    SPEC,
    member(seed=1),
    member(method="bnnr"),
    member(method="bnnf"),
    STUDENT,
    replace(STUDENT, method="edd_fair"),
]
METHODS = [member(backbone="dropout"), member(method="bnnr"), member(method="bnnf"), STUDENT]


def train(specs, folder, *, data=None, build=build, **options):
    return train_models(specs, data or blobs(), folder, build=build, device="cpu", progress=False, **options)


def load(spec, folder):
    return load_model(spec, folder, build=build, device="cpu")


def files(folder, spec):
    return {path.name for path in (Path(folder) / spec.key).iterdir()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return folder, train(EVERY, folder, epochs=24)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Each of the methods trained by itself, and the teachers of the student."""
    folder = tmp_path_factory.mktemp("alone")
    for spec in [SPEC, member(seed=1), *METHODS]:
        train([spec], folder)
    return folder


class Stop(Exception):  # noqa: N818  (a signal of these tests)
    """Raised in the middle of a training."""


def stop_at(line):
    """A log that interrupts the training at its n-th line."""
    lines = []

    def log(text):
        lines.append(text)
        if len(lines) == line:
            raise Stop

    return log


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: f"{spec.method}{spec.seed}")
def test_every_method_learns(trained, spec):
    folder, _ = trained
    test, model = blobs(seed=9), load(spec, folder)
    if spec.distilled:
        predicted = predict_concentrations(model, test.images, **STATISTICS, device="cpu")
    else:
        samples = 5 if spec.bayesian else 1
        predicted = predict_members(model, test.images, **STATISTICS, samples=samples, device="cpu").mean(0)
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


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.method)
def test_an_interrupted_training_goes_on_exactly(alone, tmp_path, spec):
    train(spec.teacher_specs(), tmp_path)
    with pytest.raises(Stop):
        train([spec], tmp_path, log=stop_at(1), checkpoint_every=0)
    assert files(tmp_path, spec) == {"spec.json", "checkpoint.safetensors"}
    # The log comes after the last step of the epoch and before its checkpoint.
    assert read_note(tmp_path / spec.key / "checkpoint.safetensors")["state"]["step"] == 3
    (result,) = train([spec], tmp_path)
    assert_equal_weights(load(spec, tmp_path), load(spec, alone))
    complete = json.loads((alone / spec.key / "history.json").read_text())
    for record, expected in zip(result.history, complete, strict=True):
        assert {**asdict(record), "seconds": 0} == {**expected, "seconds": 0}
    note = json.loads((tmp_path / spec.key / "spec.json").read_text())
    assert [start["step"] for start in (*note["earlier"], note["provenance"])] == [0, 3]


def test_a_checkpoint_after_every_single_step_changes_nothing(alone, tmp_path):
    spec = METHODS[0]
    with pytest.raises(Stop):
        train([spec], tmp_path, log=stop_at(2), checkpoint_every=0)
    assert read_note(tmp_path / spec.key / "checkpoint.safetensors")["state"]["step"] == 7
    train([spec], tmp_path, checkpoint_every=0)
    assert_equal_weights(load(spec, tmp_path), load(spec, alone))


KILLED = """
import sys, time
from credalens_paper.training.train_networks import train_models
from reproduction.tests.training.tiny import blobs, build, member

def slowly(*arguments, **options):
    network = build(*arguments, **options)
    network.register_forward_pre_hook(lambda *_: time.sleep(0.05))
    return network

train_models([member(backbone="dropout")], blobs(), sys.argv[1], build=slowly, device="cpu", progress=False,
             checkpoint_every=0, epochs=50)
"""


def test_two_runs_do_not_train_one_network(tmp_path):
    """The second, from within the first, is told so; both networks are free when the first has failed."""
    errors = []

    def second(line):
        with pytest.raises(ValueError, match="another run is writing into") as caught:
            train([SPEC], tmp_path)
        errors.append(caught.value)
        raise KeyError(line)

    with pytest.raises(KeyError):
        train([SPEC, member(seed=1)], tmp_path, side_by_side=2, log=second)
    assert len(errors) == 1
    train([SPEC, member(seed=1)], tmp_path)
    assert files(tmp_path, SPEC) == {"spec.json", "history.json", "model.safetensors"}


def test_a_killed_training_goes_on_exactly(tmp_path):
    spec = member(backbone="dropout")
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "killed")], env=same_threads())
    checkpoint = tmp_path / "killed" / spec.key / "checkpoint.safetensors"
    try:
        while not (checkpoint.is_file() and read_note(checkpoint)["state"]["step"] >= 6):
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert 6 <= read_note(checkpoint)["state"]["step"] < 200
    (checkpoint.parent / f".model.safetensors.{'0' * 32}.partial").write_bytes(b"half")
    for folder in ("killed", "whole"):
        train([spec], tmp_path / folder, epochs=50)
    assert_equal_weights(load(spec, tmp_path / "killed"), load(spec, tmp_path / "whole"))
    assert files(tmp_path / "killed", spec) == {"spec.json", "history.json", "model.safetensors"}


def explosive(name, **options):
    """The network of seed 1 answers NaN at its sixth step."""
    network = build(name, **options)
    calls = []

    def poison(module, inputs, output):
        calls.append(1)
        return output * math.nan if len(calls) == 6 else output

    if options["seed"] == derived_seed(1, INITIAL):
        network.register_forward_hook(poison)
    return network


def test_nan_names_the_member_and_the_step_and_nothing_is_lost(alone, tmp_path):
    bad = member(seed=1)
    with pytest.raises(
        DivergedError, match=r"seed1-\w+ diverged: the loss is not a number at step 5 of 8.*seed"
    ) as error:
        train([SPEC, bad], tmp_path, build=explosive, side_by_side=2, checkpoint_every=0)
    assert f"While training {bad.key}" in error.value.__notes__[0]
    assert read_note(tmp_path / bad.key / "checkpoint.safetensors")["state"]["step"] == 5
    train([SPEC, bad], tmp_path)
    for spec in (SPEC, bad):
        assert_equal_weights(load(spec, tmp_path), load(spec, alone))


def test_a_failing_member_leaves_the_others_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "SHOW_EVERY", math.inf)  # a bar that is moved on a slow machine would find it earlier
    with pytest.raises(DivergedError, match="at step 5 of 20"):
        train([SPEC, member(seed=1)], tmp_path, build=explosive, side_by_side=2, epochs=5)
    # Found at the end of the epoch. No checkpoint was due yet: this one was made because the neighbour failed.
    assert read_note(tmp_path / SPEC.key / "checkpoint.safetensors")["state"]["step"] == 8


def test_weights_that_are_no_numbers_are_not_stored(tmp_path):
    def infinite(name, **options):
        network = build(name, **options)
        network[-1].bias.register_hook(lambda gradient: gradient * math.inf)
        return network

    with pytest.raises(DivergedError, match=r"the weights '8.bias' are no longer numbers after step 1"):
        train([SPEC], tmp_path, build=infinite, checkpoint_every=0)
    assert files(tmp_path, SPEC) == {"spec.json"}


def test_a_full_disk_stops_and_the_training_goes_on_later(alone, tmp_path):
    with pytest.raises(Stop):
        train([SPEC], tmp_path, log=stop_at(1), checkpoint_every=0)
    with little_room(5000), pytest.raises(OSError, match="make room"):
        train([SPEC], tmp_path)
    assert files(tmp_path, SPEC) == {"spec.json", "checkpoint.safetensors", "history.json"}
    train([SPEC], tmp_path)
    assert_equal_weights(load(SPEC, tmp_path), load(SPEC, alone))


def interrupted(folder):
    with pytest.raises(Stop):
        train([SPEC], folder, log=stop_at(1), checkpoint_every=0)


@pytest.mark.parametrize("prepare", [interrupted, lambda folder: train([SPEC], folder)], ids=["half", "finished"])
@pytest.mark.parametrize(
    ("change", "message"),
    [({"epochs": 5}, r"schedule\.epochs was 2 and is now 5"), ({"data": blobs(seed=1)}, r"data\.digest was")],
)
def test_another_configuration_is_refused(tmp_path, prepare, change, message):
    prepare(tmp_path)
    before = files(tmp_path, SPEC)
    with pytest.raises(ValueError, match=f"other settings: .*{message}.*begin again"):
        train([SPEC], tmp_path, **change)
    assert files(tmp_path, SPEC) == before


def test_a_network_from_before_a_schedule_had_all_its_fields_is_kept(tmp_path):
    train([SPEC], tmp_path)
    path = tmp_path / SPEC.key / "model.safetensors"
    tensors, note = read_tensors(path)
    for later in ("views", "cooled", "limit"):
        del note["configuration"]["schedule"][later]
    path.write_bytes(to_bytes(tensors, note))
    assert not train([SPEC], tmp_path)[0].trained
    note["configuration"]["schedule"]["cooled"] = 0.5
    path.write_bytes(to_bytes(tensors, note))
    with pytest.raises(ValueError, match=r"schedule\.cooled was 0\.5"):
        train([SPEC], tmp_path)


def test_another_precision_cannot_go_on_but_finds_what_is_finished(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(ValueError, match="precision was 'float32' and is now 'bfloat16'"):
        train([SPEC], tmp_path, precision="bfloat16")
    train([SPEC], tmp_path)
    assert not train([SPEC], tmp_path, precision="bfloat16")[0].trained


def test_bfloat16_trains(tmp_path):
    (result,) = train([member(method="bnnr")], tmp_path, precision="bfloat16", epochs=1)
    assert math.isfinite(result.history[0].loss)
    assert all(weight.dtype == torch.float32 for weight in load(member(method="bnnr"), tmp_path).parameters())


def test_a_missing_teacher_is_found_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"learns from {member(seed=1).key}.*train its teachers first"):
        train([SPEC, STUDENT], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_network_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="train blobs-convnet-snn-smoke-seed0-"):
        load(SPEC, tmp_path)


def test_a_network_in_the_wrong_folder_is_refused(trained, tmp_path):
    folder, _ = trained
    (folder / member(seed=1).key).rename(tmp_path / "moved")
    (tmp_path / SPEC.key).symlink_to(tmp_path / "moved")
    try:
        with pytest.raises(ValueError, match=r"other settings: spec\.seed was 1 and is now 0"):
            load(SPEC, tmp_path)
    finally:
        (tmp_path / "moved").rename(folder / member(seed=1).key)


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


@pytest.mark.parametrize(
    ("specs", "options", "message"),
    [
        ([SPEC, SPEC], {}, "asked for 2 times"),
        ([SPEC], {"side_by_side": 0}, "side_by_side must be at least 1"),
        ([SPEC], {"epochs": 0}, "epochs must be at least 1"),
        ([SPEC], {"precision": "half"}, "precision must be one of"),
        ([member(classes=2)], {}, "labels must be below classes=2; label 2 is at index"),
    ],
)
def test_bad_calls_are_refused(tmp_path, specs, options, message):
    with pytest.raises(ValueError, match=message):
        train(specs, tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_nothing_to_train(tmp_path):
    assert train([], tmp_path) == []


def test_an_old_note_without_history_is_not_needed_to_begin(tmp_path):
    (tmp_path / SPEC.key).mkdir()
    (tmp_path / SPEC.key / "spec.json").write_text('{"from": "a run that was killed before its first checkpoint"}')
    assert train([SPEC], tmp_path, epochs=1)[0].trained
    assert np.isfinite(json.loads((tmp_path / SPEC.key / "history.json").read_text())[0]["loss"])


@pytest.mark.parametrize(
    ("spec", "graphs"),
    [(SPEC, [True]), (member(method="bnnr"), []), (STUDENT, [True, False, False])],
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
    assert [record.loss for record in fused[0].history] == [record.loss for record in plain[0].history]
