r"""The exact solvers in torch: with gradients, and as operators that ``torch.compile`` and ``torch.export`` keep in a graph.

The exact solvers find which bounds are active. With these fixed every quantity is an explicit formula of the bounds, which
torch differentiates (also twice). Bounds are minima and maxima over members, so each passes its gradient to the member
that attains it, in equal parts if several do.

Importing this module registers ``torch.ops.credalens``, each solver as one node of a graph, and how a program returns a
prediction, so that a saved program runs wherever ``credalens.torch`` has been imported. Outside of a graph the wrapper does not
go through the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.arrays import array_kind_of
from credalens.checks.doubtful_members import warn_of_members
from credalens.checks.members import check_member_axis
from credalens.core.classical import ClassicalUncertainty
from credalens.core.decomposition import CredalArrays
from credalens.core.entropy import lower_entropy_bits, upper_entropy_bits
from credalens.core.members import Members, in_common_precision, read_distributions, read_members, roughest
from credalens.core.options import MAX_NODES, TOLERANCE, Options, warn_open_rows
from credalens.core.summary import MemberSummary
from credalens.prediction import ARRAYS, CredalPrediction, wrap_members
from credalens.torch.member_outputs import (
    MemberOutput,
    TensorMembers,
    in_float64,
    in_precision,
    naming_bad_member,
    summary_of_output,
    warn_doubtful_output,
)

AT_BOUND = 1e-12  # a probability this close to its bound, relatively, is at it
NO_WIDTH = 1e-15  # sums of widths below this are rounding: the members agree
BUDGET = "int max_nodes, float tolerance, int? threads"


def credal_prediction(
    probs: Tensor,
    /,
    *,
    member_axis: int = 0,
    base: float = 2,
    dtype: torch.dtype | None = None,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> CredalPrediction:
    r"""The prediction of ``wrap`` with gradients with respect to ``probs`` (members, *batch, classes).

    - ``lower``, ``upper``, ``mean``: of the renormalised members.
    - ``probability``: the intersection probability, by its formula.
    - ``total``: entropy of the water-filling solution. Classes at a bound move with the bound, all others share the rest:
      :math:`\partial\overline H / \partial l_k = \log t - \log l_k` where :math:`l_k` is above the level t, and the same
      for :math:`u_k` below it.
    - ``aleatoric``: entropy at the minimiser, whose active bounds stay active (the envelope theorem). If two minimisers
      tie, it is the gradient of either.
    - ``aleatoric_bound``, ``classical``, ``hartley``, ``hartley_bounds`` and ``hull`` carry no gradient.

    The slope of -p log p is infinite at p = 0; it is taken at the smallest normal number instead, so that gradients stay
    finite. Computed in float64; results in ``dtype``, by default that of ``probs`` and at least float32.
    ``max_nodes`` and ``tolerance`` as in ``wrap``.

    >>> logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 1.5, 0.5]], requires_grad=True)
    >>> prediction = credal_prediction(torch.softmax(logits, -1))
    >>> prediction.epistemic.backward()  # a step against this gradient makes the members agree more
    >>> logits.grad.shape
    torch.Size([2, 3])
    """
    if not isinstance(probs, Tensor):
        raise TypeError(
            f"probs must be a torch tensor; got {type(probs).__name__}. For other arrays call credalens.wrap."
        )
    options = Options(base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
    dtype = dtype or torch.promote_types(probs.dtype, torch.float32)
    probs = probs.movedim(check_member_axis(member_axis, probs.ndim, "probs"), 0)
    p = in_float64(probs)
    p = p / p.sum(-1, keepdim=True)
    lower, upper = p.amin(0), p.amax(0)
    members: Members
    if torch.compiler.is_compiling():  # a graph has no values, so the operator checks them
        members = TensorMembers(probs.detach(), logits=False, float64=dtype == torch.float64)
        bounds = (x.detach() for x in (probs, lower, upper))
        budget = options.max_nodes, options.tolerance, options.threads
        highest, lowest, bound = torch.ops.credalens.extremes(*bounds, *budget)
    else:
        members = in_precision(read_distributions(probs), float64=dtype == torch.float64)
        highest, lowest, bound = extremes(lower, upper, options)
    total, aleatoric = (_entropy_with_active_bounds(lower, upper, q) * options.unit for q in (highest, lowest))
    point, mean, epistemic = _intersection(lower, upper), p.mean(0), (total - aleatoric).clamp_min(0.0)
    arrays = CredalArrays(lower, upper, point, mean, total, aleatoric, epistemic, bound * options.unit)
    return CredalPrediction(
        *arrays.map(lambda x: x.to(probs.device, dtype)),
        base=options.base,
        n_members=len(p),
        _members=members,
        _rounding=array_kind_of(probs).rounding,
    )


def _intersection(lower: Tensor, upper: Tensor) -> Tensor:
    r"""p* = l + alpha (u - l) with alpha = (1 - sum l) / sum (u - l); l itself where all widths vanish."""
    width = (upper - lower).sum(-1, keepdim=True)
    agree = width <= NO_WIDTH
    alpha = (1 - lower.sum(-1, keepdim=True)) / width.masked_fill(agree, 1.0)
    return lower + alpha.clamp(0.0, 1.0).masked_fill(agree, 0.0) * (upper - lower)


def _entropy_with_active_bounds(lower: Tensor, upper: Tensor, p: Tensor) -> Tensor:
    """Entropy in bits of ``p``, whose classes at a bound move with the bound while all others share the rest."""
    at_lower = p <= lower.detach() * (1 + AT_BOUND)
    at_upper = (p >= upper.detach() * (1 - AT_BOUND)) & ~at_lower
    free = ~(at_lower | at_upper)
    held = torch.where(at_lower, lower, torch.where(at_upper, upper, p))
    rest = (1 - held.sum(-1, keepdim=True)) / free.sum(-1, keepdim=True).clamp_min(1)
    q = held + rest * free
    return -(q * q.clamp_min(torch.finfo(q.dtype).tiny).log2()).sum(-1)


def extremes(lower: Tensor, upper: Tensor, options: Options, /) -> tuple[Tensor, Tensor, Tensor]:
    """(distribution of highest entropy, of lowest entropy, certified bound of the lowest) from the exact solvers."""
    low, high = (np.ascontiguousarray(x.detach().cpu().numpy()).reshape(-1, x.shape[-1]) for x in (lower, upper))
    _, highest = upper_entropy_bits(low, high, options, distribution=True)
    value, bound, lowest = lower_entropy_bits(low, high, options)
    warn_open_rows(value - bound, len(value), options, stacklevel=4)

    def tensor(x: NDArray, shape: torch.Size) -> Tensor:
        return torch.from_numpy(x).to(lower.device).view(shape)

    return tensor(highest, lower.shape), tensor(lowest, lower.shape), tensor(bound, lower.shape[:-1])


def wrap_outputs(outputs: Sequence[MemberOutput], kind: str, /, *, class_axis: int, **budget: Any) -> CredalPrediction:
    """The prediction of all outputs (*batch, classes) at once; ``class_axis`` is where their classes were before."""
    axis = {} if class_axis == -1 else {"class_axis": outputs[0].tensor.ndim}  # where they were moved to
    with naming_bad_member(outputs, kind):
        return wrap_members([output.tensor for output in outputs], logits=kind == "logits", **axis, **budget)


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
    read_members(probs).checked()
    return extremes(lower, upper, Options(max_nodes=max_nodes, tolerance=tolerance, threads=threads))


@extremes_in_graph.register_fake
def _extremes_shapes(probs: Tensor, lower: Tensor, upper: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return lower.new_empty(lower.shape), lower.new_empty(lower.shape), lower.new_empty(lower.shape[:-1])


for _result in (CredalPrediction, ClassicalUncertainty, TensorMembers):
    torch.export.register_dataclass(_result, serialized_type_name=f"credalens.{_result.__name__}")
