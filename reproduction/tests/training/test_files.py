"""Checkpoints: whole or not there, readable back, and never those of another configuration."""

import json
import resource
from contextlib import contextmanager

import pytest
import torch

from credalens_paper.training.checkpoints import (
    check_same,
    differences,
    read_note,
    read_tensors,
    remove_scratch,
    write_bytes,
    write_json,
    write_tensors,
)


@contextmanager
def little_room(size):
    """Files may not grow beyond so many bytes: what a full disk does to a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_tensors_and_note_come_back(tmp_path):
    filters = torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    tensors = {
        "filters": filters.to(memory_format=torch.channels_last),
        "view": filters[1:3, :, 0],
        "same memory": filters[1:3, :, 0],
        "count": torch.tensor(7),
        "state": torch.arange(5, dtype=torch.uint8),
        "wide": torch.tensor([1 / 3], dtype=torch.float64),
    }
    write_tensors(tmp_path / "a.safetensors", tensors, {"step": 3, "loss": 0.1, "none": None})
    back, note = read_tensors(tmp_path / "a.safetensors")
    assert note == {"step": 3, "loss": 0.1, "none": None}
    assert note == read_note(tmp_path / "a.safetensors")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, {"x": torch.zeros(3)}, {"step": 1})
    with (
        little_room(20_000),
        pytest.raises(OSError, match=r"could not write 0\.4 MB.*older file.*untouched.*Make room"),
    ):
        write_tensors(path, {"x": torch.ones(100_000)}, {"step": 2})
    assert read_note(path) == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_full_disk_says_which_file(tmp_path):
    with little_room(100), pytest.raises(OSError, match="could not write") as caught:
        write_bytes(tmp_path / "new" / "model", bytes(1000))
    assert caught.value.filename == str(tmp_path / "new" / "model")
    assert caught.value.errno is not None
    assert not list((tmp_path / "new").iterdir())


def test_json_is_for_reading(tmp_path):
    write_json(tmp_path / "deep" / "a.json", {"a": [1, 2]})
    text = (tmp_path / "deep" / "a.json").read_text()
    assert json.loads(text) == {"a": [1, 2]}
    assert text.endswith("}\n")


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".model.safetensors.0123.partial").write_bytes(b"half")
    (tmp_path / "model.safetensors").write_bytes(b"whole")
    remove_scratch(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("content", [b"", b"nonsense" * 10, b"\xff" * 8])
def test_broken_files_say_what_to_do(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    for read in (read_tensors, read_note):
        with pytest.raises(ValueError, match=r"a\.safetensors cannot be read.*Delete it"):
            read(tmp_path / "a.safetensors")


def test_files_of_others_are_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="not written by credalens"):
        read_tensors(tmp_path / "a.safetensors")


def test_differences_name_the_place():
    one = {"spec": {"seed": 0, "width": 1.0}, "n": 5, "old": 1}
    other = {"spec": {"seed": 0, "width": 0.5}, "n": 5, "new": None}
    assert differences(one, other) == [
        "old: stored 1, asked for None",
        "spec.width: stored 1.0, asked for 0.5",
    ]
    assert differences(one, one) == []


def test_another_configuration_is_refused(tmp_path):
    check_same({"a": 1}, {"a": 1}, tmp_path / "x")
    with pytest.raises(ValueError, match=r"another configuration \(a: stored 1, asked for 2\).*delete .*begin again"):
        check_same({"a": 1}, {"a": 2}, tmp_path / "x")
