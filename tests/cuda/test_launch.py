"""Compiled kernels are launched as Triton would launch them, or by Triton; results that share memory share nothing else."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

from credalens.cuda import launch

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed; CUDA torch brings it")


class Jit:
    """What Triton makes of a kernel with an array, a number and a constant."""

    arg_names = ("to", "n", "SIZE")

    def __init__(self, error=None, names=arg_names):
        self.ordinary, self.direct, self.error = [], [], error
        source = SimpleNamespace(signature=dict.fromkeys(names))
        self.made = type("Made", (), {"__getitem__": lambda _, grid: self._kept(grid), "src": source})()
        self.arg_names = [*self.arg_names]

    def __getitem__(self, grid):
        def run(*arguments, **constants):
            self.ordinary.append((grid, arguments, constants))
            return self.made

        return run

    def _kept(self, grid):
        def run(*arguments):
            if self.error:
                raise self.error
            self.direct.append((grid, arguments))

        return run


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setattr(launch, "KEPT", "cpu")
    return (torch.device("cpu"), 3)


def test_a_compiled_kernel_is_kept_and_launched_with_addresses(kept):
    jit, x = Jit(), torch.zeros(8)
    kernel = launch.Kernel(jit)
    for n in (5, 6):
        kernel(kept, 2, [x], [n], {"SIZE": 4}, num_warps=1)
    assert jit.ordinary == [((2,), (x, 5), {"SIZE": 4, "num_warps": 1})]
    assert jit.direct == [((2, 1, 1), (x.data_ptr(), 6, 4))]


def test_places_become_tensors_where_triton_launches(kept):
    jit, (place,) = Jit(), launch.scratch_arrays(torch.device("cpu"), (torch.float64, 5))
    launch.Kernel(jit)(kept, 2, [place], [5], {"SIZE": 4})
    assert jit.ordinary[0][1][0].data_ptr() == place.data_ptr()
    assert jit.ordinary[0][1][0].dtype == torch.float64


@pytest.mark.parametrize(
    "change",
    [
        {"at": (torch.device("cpu"), 4)},
        {"at": (torch.device("cpu", 0), 3)},
        {"x": torch.zeros(8, dtype=torch.float64)},
        {"constants": {"SIZE": 8}},
        {"num_warps": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_triton_compiles_anew_for_is_not_launched_with_the_old_one(kept, change):
    def go(at=kept, x=None, constants=None, num_warps=1):
        kernel(at, 2, [zeros if x is None else x], [5], constants or {"SIZE": 4}, num_warps=num_warps)

    jit, zeros = Jit(), torch.zeros(8)
    kernel = launch.Kernel(jit)
    go()
    go(**change)
    assert (len(jit.ordinary), len(jit.direct)) == (2, 0)
    go()
    go(**change)
    assert (len(jit.ordinary), len(jit.direct)) == (2, 2)


def test_arrays_that_are_not_aligned_are_left_to_triton(kept):
    jit, x = Jit(), torch.zeros(8)
    kernel = launch.Kernel(jit)
    for array in (x[1:], x[1:], x, x[1:], x):
        kernel(kept, 2, [array], [5], {"SIZE": 4})
    assert (len(jit.ordinary), len(jit.direct)) == (4, 1)


@pytest.mark.parametrize("jit", [Jit(TypeError("wrong number")), Jit(AttributeError("launch")), Jit(names=("to", "n"))])
def test_another_triton_launches_as_it_does(kept, jit):
    kernel = launch.Kernel(jit)
    for _ in range(3):
        kernel(kept, 2, [torch.zeros(8)], [5], {"SIZE": 4})
    assert (len(jit.ordinary), len(jit.direct)) == (3, 0)


def test_errors_of_the_device_are_not_hidden(kept):
    kernel = launch.Kernel(Jit(RuntimeError("Triton Error [CUDA]: an illegal memory access")))
    kernel(kept, 2, [torch.zeros(8)], [5], {"SIZE": 4})
    with pytest.raises(RuntimeError, match="illegal memory access"):
        kernel(kept, 2, [torch.zeros(8)], [5], {"SIZE": 4})


def test_an_error_after_a_launch_does_not_launch_again(kept):
    """Of a profiler's hook, say; Triton had been launching so before."""
    jit = Jit()
    kernel = launch.Kernel(jit)
    for _ in range(2):
        kernel(kept, 2, [torch.zeros(8)], [5], {"SIZE": 4})
    jit.error = TypeError("a hook")
    with pytest.raises(TypeError, match="a hook"):
        kernel(kept, 2, [torch.zeros(8)], [5], {"SIZE": 4})
    assert (len(jit.ordinary), len(jit.direct)) == (1, 1)


def test_kernels_of_amd_are_left_to_triton(kept, monkeypatch):
    """They are compiled anew for large allocations too, which nothing here tells."""
    monkeypatch.setattr(torch.version, "hip", "6.4")
    jit = Jit()
    kernel = launch.Kernel(jit)
    for _ in range(2):
        kernel(kept, 2, [torch.zeros(8)], [5], {"SIZE": 4})
    assert (len(jit.ordinary), len(jit.direct)) == (2, 0)


def test_only_kernels_of_a_gpu_are_kept():
    jit = Jit()
    kernel = launch.Kernel(jit)
    for _ in range(2):
        kernel((torch.device("cpu"), 3), 2, [torch.zeros(8)], [5], {"SIZE": 4})
    assert (len(jit.ordinary), len(jit.direct)) == (2, 0)


class Driver:
    """As much of a GPU's driver as Triton needs to compile a kernel and to believe that it was launched."""

    def __init__(self):
        from triton.backends.compiler import GPUTarget

        self.launches = []
        self.get_current_device = lambda: 99  # under which the kernel stays in Triton's own memory
        self.get_current_stream = lambda device: 17
        self.get_current_target = lambda: GPUTarget("cuda", 90, 32)
        self.utils = SimpleNamespace(
            load_binary=lambda name, binary, shared, device: (None, "function", 32, 0, 1024),
            get_device_properties=lambda device: {"max_shared_mem": 2**17},
        )
        self.launcher_cls = lambda source, metadata: lambda *arguments: self.launches.append(arguments)


@needs_triton
def test_triton_itself_would_launch_the_kept_kernel_with_the_same_arguments(kept, monkeypatch, tmp_path):
    from triton.runtime import driver

    from credalens.cuda.counters import write_results

    fake = Driver()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns of another default to come
    monkeypatch.setattr(type(driver), "active", property(lambda _: fake))
    places = launch.scratch_arrays(torch.device("cpu"), *3 * [(torch.float64, 7)], (torch.int32, 32))
    arrays = [*places[:3], *launch.result_arrays(torch.empty(2, 7, 3)), places[3]]
    kernel = launch.Kernel(write_results)
    for _ in range(2):
        kernel(kept, 1, arrays, (1e-9, 0.3, 7), {"BLOCK": 1024}, num_warps=4)
    ordinary, direct = fake.launches
    assert len(ordinary) == len(direct)
    assert direct[-12:] == (*(x.data_ptr() for x in arrays), 1e-9, 0.3, 7, 1024)
    assert direct[-12:-4] == tuple(x.data_ptr() for x in ordinary[-12:-4])
    assert (direct[:6], direct[7:-12], direct[-4:]) == (
        ordinary[:6],
        ordinary[7:-12],
        ordinary[-4:],
    )  # but for metadata
    (compiled,) = kernel.compiled.values()
    assert compiled.src.signature["unit"] == "fp64"


def test_large_results_do_not_keep_each_other_in_memory(monkeypatch):
    monkeypatch.setattr(launch, "SHARED", 40)
    for count, classes in ((10, ()), (11, ()), (5, (2,)), (1, (11,))):
        found = launch.result_arrays(torch.empty(3, count, 2), *classes)
        shared = count * (classes[0] if classes else 1) * 4 <= 40
        assert len({x.untyped_storage().data_ptr() for x in found}) == (1 if shared else 4)
        assert {(*x.shape,) for x in found} == {(count, *classes)}
        assert all(x.is_contiguous() and x.data_ptr() % 16 == 0 for x in found)


@pytest.mark.parametrize("count", [8, 7])
def test_what_is_done_to_one_result_in_place_does_not_concern_the_others(count):
    weight = torch.ones(count, 3, requires_grad=True)
    lower, upper, mean, _ = launch.result_arrays(torch.ones(2, count, 3), 3)
    for x in (lower, upper, mean):
        x.fill_(2.0)
    loss = (weight * upper).sum()
    lower.add_(1)
    mean.mul_(weight)
    loss.backward()
    assert (weight.grad == 2).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_results_have_the_precision_of_predictions(dtype):
    found = launch.result_arrays(torch.empty(3, 7, 5, dtype=dtype), 5)
    assert {x.dtype for x in found} == {torch.float64 if dtype == torch.float64 else torch.float32}


def test_scratch_memory_is_one_allocation_of_arrays_that_do_not_meet():
    kinds = [(torch.int32, 3), (torch.float64, 65), (torch.float32, 2), (torch.float32, 64), (torch.float64, 1)]
    places = launch.scratch_arrays(torch.device("cpu"), *kinds)
    tensors = [place.tensor() for place in places]
    assert [(x.dtype, len(x)) for x in tensors] == kinds
    assert len({x.untyped_storage().data_ptr() for x in tensors}) == 1
    assert [x.data_ptr() for x in tensors] == [place.data_ptr() for place in places]
    assert all(place.data_ptr() % 16 == 0 for place in places)
    for i, x in enumerate(tensors):
        x.fill_(i)
    assert all((x == i).all() for i, x in enumerate(tensors))
