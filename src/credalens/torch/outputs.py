"""From what a model returns to probabilities: tensors, dictionaries, objects with ``.logits``, tuples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor

from credalens.checks.arrays import row_tolerance
from credalens.checks.member_array import raise_bad_member

__all__ = ["OUTPUTS", "check_values", "output_tensor", "probabilities", "widened"]

OUTPUTS = ("logits", "probabilities")


def output_tensor(found: Any, kind: str, who: str, /) -> Tensor:
    """The tensor (*batch, classes) in what a member returned: logits or probabilities, as ``kind`` says.

    A tensor is taken as it is; from a dictionary or an object the entry or attribute called ``kind``; from a plain
    tuple or list, as many models return with their extras, the first element.
    """
    if isinstance(found, Mapping):
        found = found.get(kind, found)
    elif not isinstance(found, Tensor):
        first = found[0] if isinstance(found, list | tuple) and found else None
        found = getattr(found, kind, found if first is None else first)
    if not isinstance(found, Tensor):
        _refuse(found, kind, who)
    if not found.is_floating_point():
        raise TypeError(f"{who} returned {found.dtype}; expected floating-point {kind}, not class labels or counts.")
    if found.ndim == 0 or found.shape[-1] < 2:
        raise ValueError(
            f"{who} returned shape {tuple(found.shape)}; expected (*batch, classes) with at least two classes. "
            "For a binary model with one output z give the logits of both classes, torch.cat([-z / 2, z / 2], -1)."
        )
    return found


def _refuse(found: Any, kind: str, who: str) -> NoReturn:
    keys = f" with keys {sorted(map(str, found))}" if isinstance(found, Mapping) else ""
    raise TypeError(
        f"{who} returned {type(found).__name__}{keys}; expected a tensor, a dictionary with {kind!r}, an object with "
        f".{kind}, or a tuple that begins with the tensor. Wrap the member: lambda x: model(x)[...]."
    )


def widened(x: Tensor, /) -> Tensor:
    """``x`` in float64 on its device; Apple's MPS has no float64, there it goes to the CPU."""
    return x.to("cpu", torch.float64) if x.device.type == "mps" else x.double()


def probabilities(raw: Tensor, kind: str, /) -> Tensor:
    """Logits softmaxed in float64, or probabilities as they are."""
    return torch.softmax(widened(raw), -1) if kind == "logits" else raw


def check_values(raw: Tensor, kind: str, who: str, /) -> None:
    """Refuse logits that are NaN or +inf or rule out all classes, and rows that are no distributions."""
    good = raw.amax(-1).isfinite() if kind == "logits" else _are_distributions(raw)
    if not good.all():
        raise_bad_member(raw, f"the {kind} of {who}", kind=kind)


def _are_distributions(raw: Tensor) -> Tensor:
    total = widened(raw).sum(-1)
    tolerance = row_tolerance(str(raw.dtype).removeprefix("torch."))
    return (raw >= 0).all(-1).to(total.device) & ((total - 1).abs() <= tolerance)
