"""How the host waits for the device, and what it hands to kernels."""

from importlib import import_module
from importlib.util import find_spec

import pytest
import torch

from credalens import prediction, wrap, wrap_logits
from credalens.cuda import decomposition, gpu_members
from tests.torch_calls import TorchCalls

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed; CUDA torch brings it")


class Silent:
    """A kernel that does nothing but leave no mark."""

    def __init__(self, name, names):
        self.name, self.names = name, names

    def __call__(self, at, programs, arrays, numbers, constants, **options):
        self.names.append(self.name)
        if self.name == "write_results":
            with torch.utils._python_dispatch._disable_current_modes():
                arrays[-1].tensor().zero_()


@pytest.fixture
def events(monkeypatch):
    found = TorchCalls()
    monkeypatch.setattr(gpu_members, "agrees_with_cpu", lambda *_: True)
    monkeypatch.setattr(prediction, "gpu_tensor", lambda x: x)
    monkeypatch.setattr(decomposition, "kernel", lambda _file, name: Silent(name, found.names))
    return found


@pytest.mark.parametrize("function", [wrap, wrap_logits])
@pytest.mark.parametrize("shape", [(5, 256, 10), (5, 255, 10), (5, 1, 2), (3, 20, 100), (5, 64, 1000)])
def test_the_host_waits_for_the_device_once(events, shape, function):
    """After the last kernel; nothing looks at more than a few rows but kernels."""
    x = torch.full(shape, 1.5 if function is wrap_logits else 1 / shape[-1])
    with events:
        function(x)
    wait = events.names.index("_local_scalar_dense")
    assert events.names.count("_local_scalar_dense") == 1
    assert events.names.index("write_results") < wait


def test_the_first_kernel_waits_for_its_own_memory_only(events):
    x = torch.full((5, 256, 10), 0.1)
    with events:
        wrap(x)
    before = events.names[: events.names.index("decompose_float32")]
    assert set(before) <= {"empty", "unbind", "detach", "slice", "view", "zero_"}


@needs_triton
@pytest.mark.parametrize(("dtype", "classes"), [(torch.float32, 10), (torch.float32, 1000), (torch.float64, 100)])
def test_kernels_take_arrays_numbers_and_constants_and_only_the_classes_make_another(monkeypatch, dtype, classes):
    seen = set()

    def spy(file, name):
        jit = getattr(import_module(f"credalens.cuda.{file}"), name)

        def launched(at, programs, arrays, numbers, constants, **options):
            seen.add(name)
            names = [p.name for p in jit.params]
            assert names[len(arrays) + len(numbers) :] == [*constants]
            assert all(p.is_constexpr == (p.name in constants) for p in jit.params)
            among = jit.params[len(arrays) : len(arrays) + len(numbers)]
            assert {p.name for p in among if not p.do_not_specialize} <= {"classes"}
            assert at[1] == classes
            assert all(type(x) in (int, float) and abs(x) < 2**31 for x in numbers)
            Silent(name, [])(at, programs, arrays, numbers, constants)

        return launched

    monkeypatch.setattr(decomposition, "kernel", spy)
    x = torch.full((5, 3, classes), 1 / classes, dtype=dtype)
    assert decomposition.decompose(x, "probs", row_tolerance=1e-5, unit=1.0, max_nodes=50, tolerance=0) is not None
    assert len(seen) == 4
