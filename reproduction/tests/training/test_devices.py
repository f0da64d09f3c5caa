"""Devices and precisions: which are accepted, and what they change."""

import pytest
import torch
from torch import nn

from credalens_paper.training.devices import fast_math, find_device, find_precision, mixed, named_device

CPU = torch.device("cpu")


def test_devices_and_precisions():
    assert find_device("cpu") == CPU
    assert find_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert find_precision("auto", CPU) == "float32"
    assert find_precision("bfloat16", CPU) == "bfloat16"
    with pytest.raises(ValueError, match="precision must be one of"):
        find_precision("float16", CPU)
    with pytest.raises(ValueError, match=r"cuda:99.*device='cpu'"):
        find_device("cuda:99")
    for name in ("foo", "", "cuda:-1"):
        with pytest.raises(ValueError, match=f"device must be 'cpu', 'cuda', .* got '{name}'"):
            find_device(name)
    with pytest.raises(ValueError, match=r"device='meta' was asked for"):
        find_device("meta")


def test_a_device_can_be_named_that_only_other_machines_have():
    assert named_device("cuda:99") == torch.device("cuda", 99)
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
        named_device("foo")


def test_mixed_precision_is_bfloat16_where_asked_for():
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    with mixed("bfloat16", CPU):
        assert layer(x).dtype == torch.bfloat16
    with mixed("float32", CPU):
        assert layer(x).dtype == torch.float32


def test_fast_math_changes_nothing_on_the_cpu():
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    with fast_math(CPU):
        assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == before
