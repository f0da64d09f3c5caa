"""``wrap`` of CUDA tensors beside torch's classical decomposition on the same device."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.predictions import MEMBERS
from benchmarks.timing import best_seconds
from credalens.checks.arrays import row_tolerance
from credalens.prediction import wrap

__all__ = ["ROWS", "bandwidth", "classical_torch", "measure_device"]

ROWS: Final = {10: 1_000_000, 100: 1_000_000, 1000: 100_000}


def measure_device(classes: int, /, *, device: str = "cuda", rows: int | None = None) -> dict[str, Any]:
    """Milliseconds a call for float32 members on the device, or why it was skipped."""
    if find_spec("torch") is None:
        return {"classes": classes, "skipped": "PyTorch is not installed"}
    import torch

    from credalens.cuda import as_gpu_members

    if device == "cuda" and not torch.cuda.is_available():
        return {"classes": classes, "skipped": "no CUDA device"}
    rows = rows or ROWS[classes]
    try:
        probs = _realistic(rows, classes, device)
        seconds = best_seconds(
            {
                "classical": lambda: _finished(classical_torch(probs), device),
                "ours": lambda: _finished(wrap(probs), device),
            },
            repeats=5,
        )
        on_gpu = device == "cuda" and as_gpu_members(probs, "probs", member_axis=0) is not None
        moved = bandwidth(probs) if on_gpu else {}
    except torch.cuda.OutOfMemoryError:
        return {"classes": classes, "skipped": "not enough memory on the device"}
    return {
        "classes": classes,
        "rows": rows,
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
        **{f"{name}_ms": 1e3 * value for name, value in seconds.items()},
        "ours_over_classical": seconds["ours"] / seconds["classical"],
        **moved,
    }


def bandwidth(probs: Any) -> dict[str, float]:
    """TB/s that the kernel of bounds, point predictions and upper entropy reads and writes, beside those of a copy."""
    import torch

    from credalens.cuda.decomposition import Chunk
    from credalens.cuda.launch import result_arrays

    chunk, copy = Chunk(probs, "probs", row_tolerance("float32")), torch.empty_like(probs)
    out = result_arrays(probs, probs.shape[-1])

    def kernel() -> None:
        chunk.decompose(out)
        _finished(out, probs.device.type)

    seconds = best_seconds(
        {"kernel": kernel, "copy": lambda: _finished(copy.copy_(probs), probs.device.type)}, repeats=5
    )
    written = sum(x.nbytes for x in out)
    kernel_rate, copy_rate = (probs.nbytes + written) / seconds["kernel"], 2 * probs.nbytes / seconds["copy"]
    return {
        "kernel_ms": 1e3 * seconds["kernel"],
        "kernel_tb_s": 1e-12 * kernel_rate,
        "copy_tb_s": 1e-12 * copy_rate,
        "kernel_over_copy": kernel_rate / copy_rate,
    }


def classical_torch(probs: Any) -> tuple[Any, Any, Any]:
    """The averaged prediction's decomposition in torch, in the tensor's precision, its input validated as ours is."""
    import torch

    good = (probs >= 0).all() & ((probs.sum(-1) - 1).abs() <= 1e-5).all()
    if not bool(good):
        raise ValueError("rows must be probability distributions")
    total = torch.special.entr(probs.mean(0)).sum(-1) / math.log(2)
    average = torch.special.entr(probs).sum(-1).mean(0) / math.log(2)
    return total, average, total - average


def _realistic(rows: int, classes: int, device: str) -> Any:
    """Peaked predictions like ``predictions.realistic``, drawn on the device."""
    import torch

    draw = torch.Generator(device).manual_seed(0)
    logits = torch.randn(MEMBERS, rows, classes, device=device, generator=draw)
    logits += 2.5 * torch.randn(rows, classes, device=device, generator=draw)
    ahead = torch.randint(classes, (rows, 1), device=device, generator=draw)
    margin = 8 * torch.rand(rows, 1, device=device, generator=draw) + math.log(classes)
    logits.scatter_add_(2, ahead.expand(MEMBERS, rows, 1), margin.expand(MEMBERS, rows, 1))
    return torch.softmax(logits, -1)


def _finished(result: Any, device: str) -> Any:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    return result
