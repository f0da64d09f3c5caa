"""A seed fixes everything: two trainings of one kind of network on one kind of device end in the same weights."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from credalens_paper.training.network_folder import load_model
from credalens_paper.training.train_networks import train_models
from reproduction.tests.training.tiny import SPEC, assert_equal_weights, blobs, build, member, same_threads

STUDENT = member(method="edd", seed=5, teachers=(0, 1))
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
AGAIN = """
import sys
from reproduction.tests.training.test_repeated import train_all
train_all(*sys.argv[1:3], side_by_side=1)
"""


def train_all(folder, device, *, side_by_side):
    """Every method, on images that are large enough for several kinds of convolution."""
    specs = [SPEC, member(seed=1), member(method="bnnr"), member(method="bnnf"), STUDENT]
    large = [member(method=spec.method, seed=spec.seed, teachers=spec.teachers, image_size=32) for spec in specs]
    data = blobs(count=192, size=32)
    train_models(large, data, folder, build=build, device=device, side_by_side=side_by_side, progress=False)
    return large


@pytest.mark.parametrize("device", DEVICES)
def test_another_process_trains_the_same_networks(device, tmp_path):
    specs = train_all(tmp_path / "here", device, side_by_side=3)
    there = [sys.executable, "-c", AGAIN, str(tmp_path / "there"), device]
    subprocess.run(there, cwd=Path(__file__).parents[3], env=same_threads(), check=True, timeout=300)
    for spec in specs:
        here, there = (load_model(spec, tmp_path / name, build=build, device="cpu") for name in ("here", "there"))
        assert_equal_weights(here, there)


@needs_gpu
@pytest.mark.filterwarnings(  # of torch itself: as it loads its compiler, and as it tries its first graph
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning", "ignore:The CUDA Graph is empty:UserWarning"
)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("backbone", ["convnet", "dropout", "depthwise"])
def test_networks_on_a_gpu_become_the_same_alone_and_side_by_side(backbone, compiled, tmp_path):
    specs = [member(backbone=backbone, seed=seed, image_size=32) for seed in range(3)]
    options = {"build": build, "device": "cuda", "compile": compiled, "progress": False}
    for side_by_side in (1, 3):
        train_models(
            specs, blobs(count=192, size=32), tmp_path / str(side_by_side), side_by_side=side_by_side, **options
        )
    for spec in specs:
        assert_equal_weights(*(load_model(spec, tmp_path / name, build=build, device="cpu") for name in ("1", "3")))
