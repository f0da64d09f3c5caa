"""What ``CredalWrapper`` adds to the forward passes of five ResNet-18."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.predictions import MEMBERS
from benchmarks.timing import best_seconds

__all__ = ["measure_wrapper"]

BATCH: Final = 256
CLASSES: Final = 10


def measure_wrapper(device: str = "cpu", *, batch: int = BATCH, width: float = 1.0) -> dict[str, Any]:
    """Seconds of the members' own passes and of what the wrapper adds, and their ratio.

    On the CPU the passes take seconds and vary by more than the wrapper costs, so its part is timed alone, on members
    that hold their layers but return what they returned before. On a GPU, where work overlaps, both are timed whole.
    """
    if find_spec("torch") is None:
        return {"skipped": "PyTorch is not installed"}
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        return {"skipped": "no CUDA device"}
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        timed = _on_gpu(batch, width) if device == "cuda" else _on_cpu(batch, width)
    return {
        "device": device,
        "batch": batch,
        "members": MEMBERS,
        **timed,
        "overhead": timed["own_seconds"] / timed["members_seconds"],
    }


def _on_cpu(batch: int, width: float) -> dict[str, float]:
    import torch

    from credalens.torch import CredalWrapper

    members = _members(width)
    x = torch.randn(batch, 3, 32, 32)
    start = time.perf_counter()
    outputs = [member(x) for member in members]
    forward = time.perf_counter() - start
    wrapper = CredalWrapper([_replay(member, out) for member, out in zip(members, outputs, strict=True)])
    return {"members_seconds": forward, "own_seconds": best_seconds({"own": lambda: wrapper(x)})["own"]}


def _on_gpu(batch: int, width: float) -> dict[str, float]:
    import torch

    from credalens.torch import CredalWrapper

    members = [member.to("cuda") for member in _members(width)]
    x = torch.randn(batch, 3, 32, 32, device="cuda")
    wrapper = CredalWrapper(members)

    def forward() -> None:
        for member in members:
            member(x)
        torch.cuda.synchronize()

    def whole() -> None:
        wrapper(x)
        torch.cuda.synchronize()

    seconds = best_seconds({"forward": forward, "whole": whole}, repeats=30)
    return {"members_seconds": seconds["forward"], "own_seconds": seconds["whole"] - seconds["forward"]}


def _members(width: float) -> list[Any]:
    from credalens_paper.backbones.small import resnet18

    return [resnet18(CLASSES, width=width).eval() for _ in range(MEMBERS)]


def _replay(member: Any, output: Any) -> Any:
    """A module with the layers of ``member``, which answers every call with ``output``."""
    import torch

    class Replay(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.member = member

        def forward(self, x: Any) -> Any:
            return output

    return Replay().eval()
