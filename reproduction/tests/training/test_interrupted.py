"""Trainings that stop, by an error, a kill or a full disk: they go on exactly, and nothing is lost."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import pytest

from credalens_paper.training import train_networks
from credalens_paper.training.devices import INITIAL, derived_seed
from credalens_paper.training.learner import DivergedError
from credalens_paper.training.network_folder import read_note
from reproduction.tests.training.test_network_folder import little_room
from reproduction.tests.training.tiny import (
    METHODS,
    SPEC,
    Stop,
    assert_equal_weights,
    build,
    files,
    load,
    member,
    same_threads,
    stop_at,
    train,
)


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
    with pytest.raises(DivergedError, match=r"seed1-\w+ diverged: .* step 5 of 8.*seed") as error:
        train([SPEC, bad], tmp_path, build=explosive, side_by_side=2, checkpoint_every=0)
    assert f"While training {bad.key}" in error.value.__notes__[0]
    assert read_note(tmp_path / bad.key / "checkpoint.safetensors")["state"]["step"] == 5
    train([SPEC, bad], tmp_path)
    for spec in (SPEC, bad):
        assert_equal_weights(load(spec, tmp_path), load(spec, alone))


def test_a_failing_member_leaves_the_others_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(
        train_networks, "SHOW_EVERY", math.inf
    )  # a bar that is moved on a slow machine would find it earlier
    with pytest.raises(DivergedError, match="at step 5 of 20"):
        train([SPEC, member(seed=1)], tmp_path, build=explosive, side_by_side=2, epochs=5)
    # Found at the end of the epoch. No checkpoint was due yet: this one was made because the neighbour failed.
    assert read_note(tmp_path / SPEC.key / "checkpoint.safetensors")["state"]["step"] == 8


def test_weights_that_are_no_numbers_are_not_stored(tmp_path):
    def infinite(name, **options):
        network = build(name, **options)
        network[-1].bias.register_hook(lambda gradient: gradient * math.inf)
        return network

    with pytest.raises(DivergedError, match=r"'8.bias' .* after step 1"):
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
