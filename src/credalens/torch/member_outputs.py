"""Outputs of members: the tensor in what they return, its form, its values, and the probabilities that it stands for.

Stacked, they are one tensor that a compiled graph can return; it is read on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.arrays import array_kind_of, take_inputs
from credalens.checks.doubtful_members import warn_doubtful_logits
from credalens.checks.members import BadRowError, check_axis, raise_bad_logits
from credalens.checks.options import count_text
from credalens.core.members import MemberArray, one_member, read_distributions, read_logits, read_members
from credalens.core.summary import MemberSummary

OUTPUTS = ("logits", "probabilities")


@dataclass(frozen=True)
class TensorMembers:
    """Logits or probabilities of members (members, *batch, classes); ``float64`` gives the precision of results if another.

    No field is a text: torch 2.13 does not load an exported program that returns one.
    """

    tensor: Tensor
    logits: bool
    float64: bool | None = None

    def take(self, key: Any, /) -> TensorMembers:
        """The members of some inputs, chosen by an index of the batch."""
        return replace(self, tensor=take_inputs(self.tensor, key))

    def to_cpu(self) -> MemberArray:
        """The members as every solver reads them."""
        if self.float64 is not None:
            return in_precision(read_distributions(self.tensor), float64=self.float64)
        return (read_logits(self.tensor) if self.logits else read_members(self.tensor)).as_accepted()

    def entropies(self, *, threads: int | None = None) -> tuple[NDArray, NDArray]:
        """The entropy of the mean and the mean entropy of the members in bits, (rows,) each."""
        return self.to_cpu().entropies(threads=threads)

    def by_rows(self, compute: Callable[[NDArray], NDArray], /, *, threads: int | None = None) -> NDArray:
        """``compute`` for the probabilities of all rows, by chunks of them, (rows,)."""
        return self.to_cpu().by_rows(compute, threads=threads)

    def restore(self, array: NDArray, /) -> Any:
        """``array`` (rows, ...) in the batch shape and precision of results, as a tensor."""
        return self.to_cpu().restore(array)


def in_precision(members: MemberArray, /, *, float64: bool) -> MemberArray:
    """The members, from which ``classical`` and ``hull`` are computed later, in the precision of the results."""
    kind = replace(members.array_kind, dtype="float64" if float64 else "float32")
    return replace(members, array_kind=kind, accepted=True)


class MemberOutput(NamedTuple):
    """The output of a member in one pass, (*batch, classes), and the name of the member."""

    member: str
    tensor: Tensor


def output_tensor(returned: Any, kind: str, member: str, /, *, class_axis: int = -1) -> Tensor:
    """The tensor (*batch, classes) in what a member returned: logits or probabilities, as ``kind`` says.

    Its classes are moved there from ``class_axis``.
    A tensor is returned as it is. A dictionary or an object must have an entry or attribute called ``kind``; of a plain
    tuple or list, in which many models return extras, the first element is taken.
    """
    tensor = returned
    if isinstance(returned, Mapping):
        tensor = returned.get(kind, returned)
    elif not isinstance(returned, Tensor) and hasattr(returned, kind):
        tensor = getattr(returned, kind)
    elif isinstance(returned, list | tuple) and returned:
        tensor = returned[0]
    if not isinstance(tensor, Tensor):
        keys = f" with keys {sorted(map(str, tensor))}" if isinstance(tensor, Mapping) else ""
        raise TypeError(
            f"{member} returned {type(tensor).__name__}{keys}; expected a tensor, a dictionary with {kind!r}, an object "
            f"with .{kind}, or a tuple that begins with the tensor. Wrap the member: lambda x: model(x)[...]."
        )
    if not tensor.is_floating_point():
        raise TypeError(
            f"{member} returned {tensor.dtype}; expected floating-point {kind}, not class labels or counts."
        )
    if tensor.ndim > 1 and class_axis != -1:
        tensor = tensor.movedim(check_axis(class_axis, "class_axis", tensor.ndim, f"the output of {member}"), -1)
    if tensor.ndim == 0 or tensor.shape[-1] < 2:
        raise ValueError(
            f"{member} returned shape {tuple(tensor.shape)}; expected (*batch, classes) with at least two classes. "
            "For a binary model with one output z give the logits of both classes, torch.cat([-z / 2, z / 2], -1)."
        )
    return tensor


@final
class OutputForm:
    """The form that all outputs must have: the shape of the first, and the device of the inputs (or of the first)."""

    def __init__(self, device: torch.device | None, /) -> None:
        self.device = device
        self.shape: torch.Size | None = None

    def check(self, tensor: Tensor, member: str, /) -> None:
        """Refuse an output of another shape or on another device."""
        self.device = self.device or tensor.device
        self.shape = self.shape or tensor.shape
        if tensor.shape[-1] != self.shape[-1]:
            raise ValueError(
                f"{member} predicts {count_text(tensor.shape[-1], 'class', 'classes')} and the members before it "
                f"{self.shape[-1]}."
            )
        if tensor.shape != self.shape:
            raise ValueError(
                f"{member} returned shape {tuple(tensor.shape)} and the members before it {tuple(self.shape)}; "
                "all members must predict the same inputs, (*batch, classes)."
            )
        if tensor.device != self.device:
            raise ValueError(
                f"{member} returned a tensor on {tensor.device}, expected {self.device} like the input; "
                "move the member there, or end it with .to(x.device)."
            )


def in_float64(x: Tensor, /) -> Tensor:
    """``x`` in float64 on its device; Apple's MPS has no float64, there it goes to the CPU."""
    return x.to("cpu", torch.float64) if x.device.type == "mps" else x.double()


def probabilities(tensor: Tensor, kind: str, /) -> Tensor:
    """The softmax of logits in float64, or probabilities as they are."""
    return torch.softmax(in_float64(tensor), -1) if kind == "logits" else tensor


def summary_of_output(output: MemberOutput, kind: str, /) -> MemberSummary:
    """The summary of one member; its results have the precision of the model, also where the softmax has more."""
    with naming_bad_member([output], kind):
        summary = MemberSummary().update(probabilities(output.tensor, kind), member_axis=None)
    array_kind = array_kind_of(output.tensor)
    summary.array_kind = array_kind.of_softmax() if kind == "logits" else array_kind
    return summary


def warn_doubtful_output(tensor: Tensor, class_axis: int, /, *, stacklevel: int = 2) -> None:
    """Warn of the logits (*batch, classes) of one member, whose classes were on ``class_axis`` of what it returned."""
    moved = 0 <= class_axis < tensor.ndim - 1
    axis = class_axis - tensor.ndim if moved else class_axis  # from the end, where an axis of members changes nothing
    warn_doubtful_logits(tensor[None], class_axis=axis, stacklevel=stacklevel + 1)


@contextmanager
def naming_bad_member(outputs: Sequence[MemberOutput], kind: str, /) -> Iterator[None]:
    """Reword an error about values: name the member that returned them.

    Values are inspected only after an error, because that makes the CPU wait for a GPU.
    """
    try:
        yield
    except ValueError:
        for member, tensor in outputs:
            try:
                (read_logits if kind == "logits" else read_distributions)(tensor[None])
            except BadRowError:
                name, bad = f"the {kind} of {member}", one_member(tensor, member)
                if kind == "logits":
                    raise_bad_logits(bad.array, bad.batch, name, one_member=True)
                bad.refuse(name, one_member=True)
        raise
