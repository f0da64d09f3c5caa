r"""Credal predictions that can be differentiated with respect to the members' probabilities.

The exact solvers find which bounds are active. With these fixed every quantity is an explicit formula of the bounds, which
torch differentiates (also twice). Bounds are minima and maxima over members, so each passes its gradient to the member
that attains it, in equal parts if several do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from credalens.arrays import array_kind_of
from credalens.checks.members import MemberArray, check_member_axis, read_distributions
from credalens.core.options import MAX_NODES, TOLERANCE, Options
from credalens.prediction import CredalPrediction
from credalens.torch.member_outputs import TensorMembers, in_float64, in_precision
from credalens.torch.operators import extremes

AT_BOUND = 1e-12  # a probability this close to its bound, relatively, is at it
NO_WIDTH = 1e-15  # sums of widths below this are rounding: the members agree


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
    options = Options.checked(base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
    dtype = dtype or torch.promote_types(probs.dtype, torch.float32)
    probs = probs.movedim(check_member_axis(member_axis, probs.ndim, "probs"), 0)
    members = _members(probs, float64=dtype == torch.float64)
    p = in_float64(probs)
    p = p / p.sum(-1, keepdim=True)
    lower, upper = p.amin(0), p.amax(0)
    if torch.compiler.is_compiling():
        bounds = (x.detach() for x in (probs, lower, upper))
        highest, lowest, bound = torch.ops.credalens.extremes(
            *bounds, options.max_nodes, options.tolerance, options.threads
        )
    else:
        highest, lowest, bound = extremes(lower, upper, options)
    total, aleatoric = (_entropy_with_active_bounds(lower, upper, q) * options.unit for q in (highest, lowest))
    results = {
        "lower": lower,
        "upper": upper,
        "probability": _intersection(lower, upper),
        "mean": p.mean(0),
        "total": total,
        "aleatoric": aleatoric,
        "epistemic": (total - aleatoric).clamp_min(0.0),
        "aleatoric_bound": bound * options.unit,
    }
    returned: dict[str, Any] = {name: value.to(probs.device, dtype) for name, value in results.items()}
    returned["_members"] = members
    return CredalPrediction(**returned, base=options.base, n_members=len(p), _rounding=array_kind_of(probs).rounding)


def _members(probs: Tensor, *, float64: bool) -> MemberArray | TensorMembers:
    """The members, their values checked; in a graph, which has no values, the operator checks them."""
    if torch.compiler.is_compiling():
        return TensorMembers(probs.detach(), logits=False, float64=float64)
    return in_precision(read_distributions(probs), float64=float64)


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
