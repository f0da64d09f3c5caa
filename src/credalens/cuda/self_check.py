"""Whether the kernels give the CPU path's numbers on this device: compilers and drivers differ, so a probe is run once."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from credalens.checks.arrays import row_tolerance
from credalens.core.decomposition import CredalArrays, Decomposition
from credalens.core.members import read_logits, read_members
from credalens.core.options import Options
from credalens.cuda.decomposition import decompose

NODES = 100
"""Of the search for a row of the probe: more than the rounds in which rows are searched side by side."""

SLACK = {torch.float64: 1e-8, torch.float32: 1e-5}
"""How far results may be apart, in bits and in probability; errors of a kernel are far larger than rounding."""


@cache
def agrees_with_cpu(device: torch.device, dtype: torch.dtype, kind: str, classes: int, /) -> bool:
    """Whether Triton is there, compiles for the device, and agrees with the CPU path on a probe; a warning if it does not.

    Some hundred milliseconds, once for each number of classes.
    """
    if find_spec("triton") is None:
        return False
    probe, allowed = _probe(classes, kind).to(dtype), row_tolerance(str(dtype).removeprefix("torch."))
    try:
        for _ in range(2):  # the first call compiles; what it has compiled is what all later ones launch
            x = probe.to(device)
            ours = decompose(x, kind, row_tolerance=allowed, unit=1.0, max_nodes=NODES, tolerance=1e-9)
    except Exception as error:  # a missing compiler shows itself in many ways, and none may keep the user from a result
        return _refuse(device, f"Triton cannot compile for it: {error}")
    return _agrees(ours, probe, kind) or _refuse(device, f"its kernels disagree with the CPU for {classes} classes")


def _probe(classes: int, kind: str) -> Tensor:
    """Flat, peaked, agreeing and one-hot rows (3, 24, classes)."""
    rng = np.random.default_rng(classes)
    flat, peaked = rng.dirichlet(np.ones(classes), (3, 8)), rng.dirichlet(np.full(classes, 2 / classes), (3, 8))
    same = np.broadcast_to(rng.dirichlet(np.ones(classes), 4), (3, 4, classes))
    sure = np.eye(classes)[rng.integers(0, classes, (3, 4))]
    p = torch.from_numpy(np.concatenate([flat, peaked, same, sure], axis=1))
    return (p + 1e-6).log() if kind == "logits" else p


def _agrees(ours: CredalArrays | None, probe: Tensor, kind: str) -> bool:
    members = read_logits(probe) if kind == "logits" else read_members(probe)
    _, rows, classes = probe.shape
    results = Decomposition(rows, classes, np.dtype(np.float64), Options(max_nodes=NODES, tolerance=1e-9))
    valid, expected = results.solve_members(members, 0, rows), results.arrays
    if ours is None or not valid:
        return ours is None and not valid
    slack = SLACK[ours.total.dtype]
    names = ("lower", "upper", "probability", "mean", "total")
    apart = [np.abs(_host(getattr(ours, name)) - getattr(expected, name)).max() for name in names]
    value, floor = _host(ours.aleatoric), _host(ours.aleatoric_bound)
    below = (floor <= expected.aleatoric + slack) & (floor <= value + slack)
    return bool(max(apart) <= slack and below.all() and (expected.aleatoric_bound <= value + slack).all())


def _host(x: Tensor) -> np.ndarray:
    return x.double().cpu().numpy()


def _refuse(device: torch.device, why: str) -> bool:
    warnings.warn(f"predictions on {device} are computed on the CPU, because {why}", stacklevel=7)
    return False
