"""What cannot be trained or loaded is refused before any work, and says why."""

import json

import numpy as np
import pytest

from credalens_paper.training.network_folder import read_tensors, to_bytes
from reproduction.tests.training.tiny import (
    SPEC,
    STUDENT,
    Stop,
    blobs,
    files,
    load,
    member,
    stop_at,
    train,
)


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


def test_a_network_does_not_start_at_random_in_place_of_its_weights(tmp_path):
    with pytest.raises(ValueError, match=r"starts from weights sha256-12; name their folder"):
        train([member(pretrained="sha256-12")], tmp_path)


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


def test_an_old_note_without_history_is_not_needed_to_begin(tmp_path):
    (tmp_path / SPEC.key).mkdir()
    (tmp_path / SPEC.key / "spec.json").write_text('{"from": "a run that was killed before its first checkpoint"}')
    assert train([SPEC], tmp_path, epochs=1)[0].trained
    assert np.isfinite(json.loads((tmp_path / SPEC.key / "history.json").read_text())[0]["loss"])
