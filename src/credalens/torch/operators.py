"""The exact solvers as operators of torch: ``torch.compile`` and ``torch.export`` keep each as one node of the graph.

Importing this module registers ``torch.ops.credalens`` and how a program returns a prediction, so that a saved program runs
wherever ``credalens.torch`` has been imported. Outside of a graph the wrapper does not go through the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.checks.doubtful_members import warn_of_members
from credalens.checks.members import in_common_precision, read_valid_members, roughest
from credalens.core.classical import ClassicalUncertainty
from credalens.core.entropy import lower_entropy_bits, upper_entropy_bits
from credalens.core.members import MemberSummary
from credalens.core.open_rows import warn_open_rows
from credalens.core.options import Options
from credalens.prediction import ARRAYS, CredalPrediction, wrap, wrap_logits
from credalens.torch.member_outputs import (
    MemberOutput,
    TensorMembers,
    naming_bad_member,
    summary_of_output,
    warn_doubtful_output,
)

BUDGET = "int max_nodes, float tolerance, int? threads"


def wrap_outputs(outputs: Sequence[MemberOutput], kind: str, /, *, class_axis: int, **budget: Any) -> CredalPrediction:
    """The prediction of all outputs (*batch, classes) at once; ``class_axis`` is where their classes were before."""
    wrap_all = wrap_logits if kind == "logits" else wrap
    axis = {} if class_axis == -1 else {"class_axis": outputs[0].tensor.ndim}  # where they were moved to
    with naming_bad_member(outputs, kind):
        return wrap_all([output.tensor for output in outputs], **axis, **budget)


def extremes(lower: Tensor, upper: Tensor, options: Options, /) -> tuple[Tensor, Tensor, Tensor]:
    """(distribution of highest entropy, of lowest entropy, certified bound of the lowest) from the exact solvers."""
    low, high = _rows(lower), _rows(upper)
    _, highest = upper_entropy_bits(low, high, distribution=True, threads=options.threads)
    value, bound, lowest = lower_entropy_bits(low, high, options)
    warn_open_rows(value - bound, len(value), max_nodes=options.max_nodes, tolerance=options.tolerance, stacklevel=4)

    def tensor(x: NDArray, shape: torch.Size) -> Tensor:
        return torch.from_numpy(x).to(lower.device).view(shape)

    return tensor(highest, lower.shape), tensor(lowest, lower.shape), tensor(bound, lower.shape[:-1])


def _rows(x: Tensor) -> NDArray[np.float64]:
    return np.ascontiguousarray(x.detach().cpu().numpy()).reshape(-1, x.shape[-1])


def prediction_in_graph(
    outputs: list[Tensor], kind: str, /, *, together: bool, hull: bool, class_axis: int, base: float, **budget: Any
) -> CredalPrediction:
    """The prediction of members' outputs by the operator, with the members themselves where the ``hull`` is wanted."""
    results = torch.ops.credalens.decompose(outputs, kind, together or hull, class_axis, base, **budget)
    returned: dict[str, Any] = dict(zip(ARRAYS, results[: len(ARRAYS)], strict=True))
    if hull:
        returned["_members"] = TensorMembers(torch.stack(in_common_precision(outputs)), logits=kind == "logits")
    classical = ClassicalUncertainty(*results[len(ARRAYS) :])
    return CredalPrediction(
        **returned,
        base=base,
        n_members=len(outputs),
        _classical=classical,
        _threads=budget["threads"],
        _rounding=roughest(outputs, logits=kind == "logits"),
    )


@torch.library.custom_op(
    "credalens::decompose",
    mutates_args=(),
    schema=f"(Tensor[] outputs, str kind, bool together, int class_axis, float base, {BUDGET}) -> Tensor[]",
)
def decompose(
    outputs: list[Tensor], kind: str, together: bool, class_axis: int, base: float,
    max_nodes: int, tolerance: float, threads: int | None,
) -> list[Tensor]:  # fmt: skip
    """The arrays of the prediction of members' outputs, then its three classical uncertainties."""
    options: dict[str, Any] = {"base": base, "max_nodes": max_nodes, "tolerance": tolerance, "threads": threads}
    named = [MemberOutput(f"member {n}", tensor) for n, tensor in enumerate(outputs)]
    if together:
        prediction = wrap_outputs(named, kind, class_axis=class_axis, **options)
    else:
        prediction = sum((summary_of_output(output, kind) for output in named), MemberSummary()).prediction(**options)
    if not outputs[0].is_cuda:  # nobody waits for a GPU
        if kind == "logits" and not together:
            warn_doubtful_output(outputs[0], class_axis)
        warn_of_members(prediction)
    return [*(getattr(prediction, name) for name in ARRAYS), *vars(prediction.classical).values()]


@decompose.register_fake
def _decompose_shapes(outputs: list[Tensor], *_: Any, **__: Any) -> list[Tensor]:
    dtype = torch.float64 if any(x.dtype == torch.float64 for x in outputs) else torch.float32
    shape = outputs[0].shape
    return [outputs[0].new_empty(size, dtype=dtype) for size in [shape] * 4 + [shape[:-1]] * 7]


@torch.library.custom_op(
    "credalens::extremes",
    mutates_args=(),
    schema=f"(Tensor probs, Tensor lower, Tensor upper, {BUDGET}) -> (Tensor, Tensor, Tensor)",
)
def extremes_in_graph(
    probs: Tensor, lower: Tensor, upper: Tensor, max_nodes: int, tolerance: float, threads: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """``extremes`` of the bounds of members whose values are checked now, since a graph has none."""
    read_valid_members(probs)
    return extremes(lower, upper, Options(max_nodes=max_nodes, tolerance=tolerance, threads=threads))


@extremes_in_graph.register_fake
def _extremes_shapes(probs: Tensor, lower: Tensor, upper: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return lower.new_empty(lower.shape), lower.new_empty(lower.shape), lower.new_empty(lower.shape[:-1])


for _result in (CredalPrediction, ClassicalUncertainty, TensorMembers):
    torch.export.register_dataclass(_result, serialized_type_name=f"credalens.{_result.__name__}")
