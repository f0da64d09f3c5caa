"""What each method minimises: cross-entropy, the evidence lower bound, the likelihood of an ensemble."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens.bayes import elbo_loss
from credalens_paper.training.dirichlet import widest_float
from credalens_paper.training.recipes.schedules import Schedule

Objective = Callable[[Tensor, Tensor, Tensor, int], Tensor]
"""``(logits, images, labels, step) -> loss``: a scalar with gradients; nothing in it waits for the device."""


def cross_entropy(logits: Tensor, images: Tensor, labels: Tensor, step: int, /) -> Tensor:
    """The loss of a standard network (SNN)."""
    return functional.cross_entropy(logits, labels)


def evidence_bound(model: nn.Module, schedule: Schedule, examples: int, /) -> Objective:
    """The loss of a Bayesian network (BNNR, BNNF): one sample of the weights, and the KL divergence in its share."""
    steps = schedule.steps_per_epoch(examples)

    def loss(logits: Tensor, images: Tensor, labels: Tensor, step: int) -> Tensor:
        return elbo_loss(logits, labels, model, kl_weight=schedule.kl_weight(step / steps, examples))

    return loss


def distillation(
    teachers: Sequence[nn.Module],
    schedule: Schedule,
    examples: int,
    mixed: Callable[[], AbstractContextManager[object]],
    /,
) -> Objective:
    """The loss of a student (EDD, EDD-Fair): the teachers see the same augmented images, and no labels are used.

    Where batches come back, what the teachers said about them is stored.
    """
    steps = schedule.steps_per_epoch(examples)
    batches_come_back = schedule.views is not None and schedule.views < schedule.epochs
    stored: dict[tuple[int, int], Tensor] = {}

    def ask(images: Tensor) -> Tensor:
        with torch.no_grad(), mixed():
            return torch.stack([teacher(images) for teacher in teachers])

    def loss(logits: Tensor, images: Tensor, labels: Tensor, step: int) -> Tensor:
        epoch, step_of_epoch = divmod(step, steps)
        batch = schedule.view(epoch), step_of_epoch
        members = stored[batch] if batch in stored else ask(images)
        if batches_come_back:
            stored[batch] = members
        heat = schedule.heat(step / steps)
        return distillation_loss(logits, members.float(), temperature=heat, limit=schedule.limit)

    return loss


def distillation_loss(
    student_logits: Tensor,
    members: Tensor,
    /,
    *,
    temperature: float = 1.0,
    smoothing: float = 1e-4,
    limit: float | None = None,
) -> Tensor:
    r"""Mean negative log-likelihood of the members' distributions under the student's Dirichlet (Malinin et al. 2019).

    .. math::
        -\frac1M \sum_m \log \mathrm{Dir}(\pi_m; \alpha) = \sum_k \log\Gamma(\alpha_k) - \log\Gamma(\alpha_0)
        - \sum_k (\alpha_k - 1) \frac1M \sum_m \log \pi_{mk}

    with :math:`\alpha = e^{z / T}` and :math:`\pi_m = (1 - \gamma)\,\mathrm{softmax}(z_m / T) + \gamma / C`. The
    smoothing γ is needed for stability: a probability that rounds to zero has no logarithm, and confident members
    would send the concentrations of the other classes to zero. ``student_logits`` is (*batch, classes), ``members``
    (members, *batch, classes), logits too. Where a confident student errs, an example's gradient is thousands of times
    as long as the others', and one such example undoes what the rest of the batch teaches; ``limit`` shortens the
    gradient of each example's loss with respect to its logits to that length. Computed in float64, where the large terms
    may cancel. Logits are not searched for NaN, which would wait for the device at each step: NaN in is NaN out.

    >>> distillation_loss(torch.zeros(1, 2), torch.zeros(5, 1, 2))  # Dir(1, 1) is flat with density 1
    tensor(0.)
    """
    if members.shape[1:] != student_logits.shape or len(members) == 0:
        raise ValueError(
            f"members must be (members, *batch, classes) with at least one member for student_logits of shape "
            f"{tuple(student_logits.shape)}; got {tuple(members.shape)}."
        )
    dtype = widest_float(student_logits)
    logits = student_logits.to(dtype)
    if limit is not None:
        logits = _with_limited_gradient(logits, limit)
    alpha = (logits / temperature).exp()
    heated = torch.softmax(members.to(dtype) / temperature, dim=-1)
    smoothed = (1 - smoothing) * heated + smoothing / heated.shape[-1]
    loss = _dirichlet_nll(alpha, smoothed.log().mean(0)).mean()
    return loss.to(torch.promote_types(student_logits.dtype, torch.float32))


def _with_limited_gradient(logits: Tensor, limit: float) -> Tensor:
    """The same logits, whose gradient is shortened on its way back; the mean over examples has divided it."""
    copy, longest = logits.view_as(logits), limit / max(1, math.prod(logits.shape[:-1]))
    if copy.requires_grad:
        copy.register_hook(lambda back: back * (longest / back.norm(dim=-1, keepdim=True)).clamp(max=1))  # type: ignore[no-untyped-call]
    return copy


def _dirichlet_nll(alpha: Tensor, mean_log: Tensor) -> Tensor:
    normalizer = torch.lgamma(alpha).sum(-1) - torch.lgamma(alpha.sum(-1))
    return normalizer - ((alpha - 1) * mean_log).sum(-1)
