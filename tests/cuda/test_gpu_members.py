"""Equality with the CPU path: on a GPU wherever there is one, and in Triton's interpreter wherever Triton is installed."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from credalens import prediction, wrap, wrap_logits
from credalens.arrays import gpu_tensor
from credalens.core.decomposition import CredalArrays
from credalens.cuda import as_gpu_members, gpu_members, self_check
from tests.cuda import agreement
from tests.strategies import OPEN_ROWS

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed; CUDA torch brings it")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@needs_triton
def test_kernels_agree_with_the_cpu_path_in_the_interpreter():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cuda.agreement"],
        env={
            **os.environ,
            "TRITON_INTERPRET": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
        },
        cwd=root,
        capture_output=True,
        text=True,
    )
    if done.returncode == agreement.UNABLE:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(check.__name__ in done.stderr for check in agreement.CHECKS)


@needs_triton
@needs_gpu
@pytest.mark.filterwarnings(OPEN_ROWS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("classes", [2, 3, 10, 33, 100, 257, 1000])
def test_kernels_agree_with_the_cpu_path_on_the_gpu(classes, dtype):
    kinds = ("flat", "peaked", "sparse", "one_hot", "agreeing", "tiny", "shared", "near")
    p = agreement.tensors(kinds, (5, 20, classes), torch.float64)
    if dtype in (torch.float16, torch.bfloat16):  # a row must sum to one as far as its dtype allows
        p = p[:, (p.to(dtype).double().sum(-1) - 1).abs().amax(0) < 1e-2]
    p = p.to(dtype).cuda()
    ours = wrap(p, max_nodes=500)
    assert ours.total.is_cuda
    agreement.assert_agrees(ours, wrap(p.cpu(), max_nodes=500))


@needs_triton
@needs_gpu
@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("rows", [1, 20, 333])
def test_members_anywhere_in_memory_and_any_number_of_rows_agree_on_the_gpu(classes, rows):
    p = agreement.tensors(("peaked",), (5, rows, classes), torch.float32)
    room = torch.empty(p.numel() + 1, device="cuda")
    for offset in (0, 1, 0):  # Triton launches where members are not aligned
        x = room[offset : offset + p.numel()].view_as(p).copy_(p)
        agreement.assert_agrees(wrap(x), wrap(p))


@pytest.fixture
def kernels_run(monkeypatch):
    monkeypatch.setattr(gpu_members, "agrees_with_cpu", lambda *_: True)


@pytest.fixture
def gpu(monkeypatch):
    """CPU tensors stand for the ones of a GPU, whose kernels are asked anew."""
    monkeypatch.setattr(self_check, "find_spec", lambda name: name)
    monkeypatch.setattr(prediction, "gpu_tensor", lambda x: x)
    self_check.agrees_with_cpu.cache_clear()
    yield monkeypatch
    self_check.agrees_with_cpu.cache_clear()


@pytest.mark.usefixtures("kernels_run")
def test_members_are_taken_where_they_are():
    x = torch.rand(4, 2, 3, 5)
    taken = as_gpu_members(x, "probs", member_axis=1)
    assert taken.tensor.shape == (2, 12, 5)
    assert taken.batch == (4, 3)
    assert torch.equal(taken.tensor[1], x[:, 1].reshape(12, 5))
    assert as_gpu_members(x[0], "probs", member_axis=0).tensor.data_ptr() == x.data_ptr()


@pytest.mark.usefixtures("kernels_run")
@pytest.mark.parametrize(
    ("x", "axis"),
    [
        (torch.ones(2, 3, dtype=torch.int64), 0),
        (torch.rand(3), 0),
        (torch.rand(2, 3), 1),
        (torch.rand(2, 3), -1),
        (torch.rand(2, 3), 2),
        (torch.rand(2, 3), "0"),
        (torch.rand(2, 1), 0),
        (torch.rand(0, 3), 0),
        (torch.rand(2, 0, 3), 0),
        (torch.rand(2, 5000), 0),
    ],
)
def test_anything_unusual_is_left_to_the_cpu_path(x, axis):
    assert as_gpu_members(x, "probs", member_axis=axis) is None


def test_arrays_elsewhere_are_not_for_the_gpu():
    tensor = torch.rand(2, 3)
    assert gpu_tensor(tensor) is None
    assert gpu_tensor([tensor, tensor]) is None
    assert gpu_tensor(tensor.numpy()) is None
    assert gpu_tensor([[0.5, 0.5]]) is None
    assert gpu_tensor([]) is None


def test_without_a_compiler_the_cpu_path_answers_and_says_why(gpu):
    def decompose(*_args, **_options):
        raise RuntimeError("Failed to find C compiler")

    gpu.setattr(self_check, "decompose", decompose)
    p = torch.tensor([[[0.2, 0.8]], [[0.5, 0.5]]])
    with pytest.warns(UserWarning, match="on the CPU, because Triton cannot compile for it"):
        found = wrap(p)
    assert found.total.item() == 1.0


def test_without_triton_the_cpu_path_answers_silently(gpu):
    gpu.setattr(self_check, "find_spec", lambda _name: None)
    assert wrap(torch.tensor([[[0.2, 0.8]], [[0.5, 0.5]]])).total.item() == 1.0


NAMES = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")


def as_the_cpu_does(**wrong):
    """What the kernels should give, with some results off by so much in one row."""

    def decompose(probe, kind, *, row_tolerance, unit, max_nodes, tolerance):
        found = (wrap if kind == "probs" else wrap_logits)(probe.numpy(), max_nodes=max_nodes, tolerance=tolerance)
        results = {name: torch.from_numpy(getattr(found, name).copy()) for name in NAMES}
        for name, error in wrong.items():
            results[name][7] += error
        return CredalArrays(**results)

    return decompose


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [2, 10, 40])
def test_kernels_that_agree_are_trusted(gpu, classes, dtype, kind):
    gpu.setattr(prediction, "gpu_tensor", lambda _: None)
    gpu.setattr(self_check, "decompose", as_the_cpu_does())
    assert self_check.agrees_with_cpu(torch.device("cpu"), dtype, kind, classes)


@pytest.mark.parametrize("name", ["lower", "upper", "probability", "mean", "total", "aleatoric_bound"])
def test_kernels_that_are_wrong_in_one_row_are_not(gpu, name):
    gpu.setattr(prediction, "gpu_tensor", lambda _: None)
    gpu.setattr(self_check, "decompose", as_the_cpu_does(**{name: 1e-3}))
    with pytest.warns(UserWarning, match="its kernels disagree with the CPU for 10 classes"):
        assert not self_check.agrees_with_cpu(torch.device("cpu"), torch.float64, "probs", 10)


def test_a_lowest_entropy_below_its_certificate_is_not_trusted(gpu):
    gpu.setattr(prediction, "gpu_tensor", lambda _: None)
    gpu.setattr(self_check, "decompose", as_the_cpu_does(aleatoric=-1e-3))
    with pytest.warns(UserWarning, match="disagree"):
        assert not self_check.agrees_with_cpu(torch.device("cpu"), torch.float64, "probs", 10)


@pytest.mark.usefixtures("kernels_run")
@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_members_can_be_fetched_for_what_the_cpu_computes(kind):
    p = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(4), (3, 5)))
    taken = as_gpu_members(p if kind == "probs" else p.log() + 1, kind, member_axis=0)
    np.testing.assert_allclose(taken.to_cpu().array, p, rtol=1e-12)
