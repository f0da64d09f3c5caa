"""Checkpoints: whole or not there, readable back, and never those of another configuration."""

from contextlib import contextmanager

import pytest
import torch

from credalens_paper.training.network_folder import check_configuration, read_note, read_tensors, to_bytes
from credalens_paper.training.train_networks import train_models
from reproduction.tests.training.tiny import SPEC, blobs, build


@contextmanager
def little_room(size):
    """Files may not grow beyond so many bytes: what a full disk does to a write."""
    import resource  # POSIX only

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
    (tmp_path / "a.safetensors").write_bytes(to_bytes(tensors, {"step": 3, "loss": 0.1, "none": None}))
    back, note = read_tensors(tmp_path / "a.safetensors")
    assert note == {"step": 3, "loss": 0.1, "none": None}
    assert note == read_note(tmp_path / "a.safetensors")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


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


def test_only_the_parts_that_are_asked_for_are_compared(tmp_path):
    train_models([SPEC], blobs(), tmp_path, build=build, device="cpu", progress=False)
    path = tmp_path / SPEC.key / "model.safetensors"
    check_configuration(path, {"spec": SPEC.as_dict()})
    with pytest.raises(ValueError, match=r"data.digest was .*delete that of the network"):
        check_configuration(path, {"spec": SPEC.as_dict(), "data": blobs(seed=1).fingerprint()})
