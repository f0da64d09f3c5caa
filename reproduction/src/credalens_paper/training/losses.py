r"""What each method minimises, and the Dirichlet that a network distilled from an ensemble predicts.

Such a network's logits z give the concentrations :math:`\alpha_k = e^{z_k}`, so that its softmax is the expected
class distribution and their sum :math:`\alpha_0` says how much the ensemble agrees. Classes are the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens import ClassicalUncertainty
from credalens.bayes import elbo_loss
from credalens.checks.arrays import check_classes
from credalens.checks.options import check_base
from credalens_paper.training.spec import Schedule

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
    if limit is not None and logits.requires_grad:
        logits, longest = logits.view_as(logits), limit / max(1, math.prod(logits.shape[:-1]))  # the mean divides it
        logits.register_hook(lambda back: back * (longest / back.norm(dim=-1, keepdim=True)).clamp(max=1))  # type: ignore[no-untyped-call]
    alpha = (logits / temperature).exp()
    heated = torch.softmax(members.to(dtype) / temperature, dim=-1)
    smoothed = (1 - smoothing) * heated + smoothing / heated.shape[-1]
    normalizer = torch.lgamma(alpha).sum(-1) - torch.lgamma(alpha.sum(-1))
    loss = (normalizer - ((alpha - 1) * smoothed.log().mean(0)).sum(-1)).mean()
    return loss.to(torch.promote_types(student_logits.dtype, torch.float32))


def concentration(logits: Tensor, /) -> Tensor:
    r"""Concentrations :math:`\alpha = e^z` of a Dirichlet head (Malinin et al. 2019), at least float32.

    What underflows becomes the smallest positive number; what overflows (logits above 88 in float32) is refused.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    alpha = logits.to(dtype).exp().clamp_min(torch.finfo(dtype).tiny)
    return _check_alpha(alpha, "exp(logits)")


def expected_probability(alpha: Tensor, /) -> Tensor:
    r"""Mean of the Dirichlet, :math:`\bar p_k = \alpha_k / \alpha_0`."""
    _check_alpha(alpha, "alpha")
    relative = alpha / alpha.amax(-1, keepdim=True)  # the sum of large concentrations may overflow
    return relative / relative.sum(-1, keepdim=True)


def dirichlet_uncertainty(alpha: Tensor, /, *, base: float = 2) -> ClassicalUncertainty:
    r"""Uncertainty of a Dirichlet-distributed class distribution, in closed form.

    .. math::
        \text{total} &= -\sum_k \bar p_k \log \bar p_k \\
        \text{aleatoric} &= \sum_k \bar p_k \, (\psi(\alpha_0 + 1) - \psi(\alpha_k + 1)) \\
        \text{epistemic} &= \text{total} - \text{aleatoric}

    the entropy of the expected distribution, the expected entropy, and the mutual information between the class
    and its distribution: the classical decomposition for infinitely many members. Computed in float64, as total
    and aleatoric nearly cancel for large concentrations.

    >>> uncertainty = dirichlet_uncertainty(torch.tensor([[1.0, 1.0], [1000.0, 1000.0]]))
    >>> uncertainty.total
    tensor([1., 1.])
    >>> uncertainty.epistemic
    tensor([0.2787, 0.0004])
    """
    scale = 1 / math.log(check_base(base))
    _check_alpha(alpha, "alpha")
    a = alpha.to(widest_float(alpha))
    p = a / a.sum(-1, keepdim=True)
    total = -torch.xlogy(p, p).sum(-1)
    aleatoric = (p * (torch.digamma(a.sum(-1, keepdim=True) + 1) - torch.digamma(a + 1))).sum(-1)
    epistemic = (total - aleatoric).clamp_min(0)  # rounding only: mutual information is not negative
    return ClassicalUncertainty(*((scale * h).to(alpha.dtype) for h in (total, aleatoric, epistemic)))


def widest_float(tensor: Tensor, /) -> torch.dtype:
    """float64, or float32 on Apple's GPUs, which have nothing wider."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def _check_alpha(alpha: Tensor, name: str) -> Tensor:
    check_classes(alpha.shape[-1] if alpha.ndim else 0, name, tuple(alpha.shape))
    bad = ~((alpha > 0) & torch.isfinite(alpha))
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"{name} must hold positive, finite concentrations; {int(bad.sum())} of {bad.numel()} are not, the first "
            f"is {alpha[first].item()} at index {first}. Did you pass logits, or has the network diverged?"
        )
    return alpha
