r"""Ensemble distribution distillation (EDD; Malinin, Mlodozeniec and Gales 2019): one network for an ensemble.

The student learns a Dirichlet over the members' class distributions. Two things make that converge: members
and student start heated to a high temperature (:func:`temperature_schedule`), and the learning rate follows one
large cycle (:func:`cyclic_lr`). EDD-Fair, the paper's variant, keeps the temperature but trains with the plain
scheduler of the other models, ``torch.optim.lr_scheduler.MultiStepLR(optimizer, [80, 120], gamma=0.1)``.

>>> import torch
>>> student = torch.nn.Linear(4, 3)
>>> optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
>>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: cyclic_lr(epoch, total=3))
>>> x, member_logits = torch.randn(8, 4), torch.randn(5, 8, 3)
>>> for epoch in range(3):
...     optimizer.zero_grad()
...     temperature = temperature_schedule(epoch, total=3)
...     distillation_loss(student(x), member_logits, temperature=temperature).backward()
...     optimizer.step()
...     scheduler.step()
"""

import math
from itertools import pairwise

import torch
from torch import Tensor

from credalens.checks.arrays import check_classes
from credalens.checks.member_array import read_distributions
from credalens.checks.options import check_choice
from credalens_paper.training.dirichlet import wide_dtype

CYCLE = 2 / 3
"""Share of the training that the cycle takes: 60 of 90 epochs in the original experiments."""


def distillation_loss(
    student_logits: Tensor,
    members: Tensor,
    /,
    *,
    temperature: float = 1.0,
    smoothing: float = 1e-4,
    limit: float | None = None,
    outputs: str = "logits",
) -> Tensor:
    r"""Mean negative log-likelihood of the members' distributions under the student's Dirichlet.

    .. math::
        -\frac1M \sum_m \log \mathrm{Dir}(\pi_m; \alpha) = \sum_k \log\Gamma(\alpha_k) - \log\Gamma(\alpha_0)
        - \sum_k (\alpha_k - 1) \frac1M \sum_m \log \pi_{mk}

    with :math:`\alpha = e^{z / T}` and :math:`\pi_m = (1 - \gamma)\,\mathrm{softmax}(z_m / T) + \gamma / C`. The
    smoothing γ is needed for stability: a probability that rounds to zero has no logarithm, and confident members
    would send the concentrations of the other classes to zero. ``student_logits`` is (*batch, classes),
    ``members`` (members, *batch, classes): logits, or with ``outputs="probabilities"`` class distributions.
    Where a confident student errs, an example's gradient is thousands of times as long as the others', and one such
    example undoes what the rest of the batch teaches; ``limit`` shortens the gradient of each example's loss with
    respect to its logits to that length. Computed in float64, where the large terms may cancel. Logits are not
    searched for NaN, which would wait for the device at each step: NaN in is NaN out.

    >>> distillation_loss(torch.zeros(1, 2), torch.zeros(5, 1, 2))  # Dir(1, 1) is flat with density 1
    tensor(0.)
    """
    _check_shapes(student_logits, members)
    _check_positive("temperature", temperature)
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing!r}.")
    wide = wide_dtype(student_logits)
    logits = student_logits.to(wide)
    alpha = ((logits if limit is None else _limited(logits, limit)) / temperature).exp()
    heated = torch.softmax(_member_logits(members, outputs).to(wide) / temperature, dim=-1)
    smoothed = (1 - smoothing) * heated + smoothing / heated.shape[-1]
    loss = _dirichlet_nll(alpha, smoothed.log().mean(0)).mean()
    return loss.to(torch.promote_types(student_logits.dtype, torch.float32))


def temperature_schedule(step: float, /, *, total: float, cycle: float | None = None, initial: float = 10.0) -> float:
    """Temperature at an epoch (or step): ``initial`` for half the cycle, then linearly down to 1 at its end.

    ``total`` is the length of the training in the same unit, ``cycle`` the length of the cycle (default: two
    thirds of it).

    >>> [temperature_schedule(epoch, total=90) for epoch in (0, 30, 45, 60, 89)]
    [10.0, 10.0, 5.5, 1.0, 1.0]
    """
    _check_positive("initial", initial)
    half = _half_cycle(step, total, cycle)
    return _interpolate(step, (half, initial), (2 * half, 1.0))


def cyclic_lr(
    step: float, /, *, total: float, cycle: float | None = None, peak: float = 10.0, final: float = 1e-3
) -> float:
    """Factor on the base learning rate at an epoch (or step), for ``torch.optim.lr_scheduler.LambdaLR``.

    One triangular cycle, linearly from 1 up to ``peak`` and back, then linearly down to ``final`` at ``total``
    (with a base rate of 1e-3: 1e-3, 1e-2, 1e-3, 1e-6). ``cycle`` is the length of the cycle, by default two
    thirds of ``total``.

    >>> [cyclic_lr(epoch, total=90) for epoch in (0, 15, 30, 60, 90)]
    [1.0, 5.5, 10.0, 1.0, 0.001]
    """
    _check_positive("peak", peak)
    _check_positive("final", final)
    half = _half_cycle(step, total, cycle)
    return _interpolate(step, (0, 1.0), (half, peak), (2 * half, 1.0), (total, final))


def _limited(logits: Tensor, limit: float) -> Tensor:
    """The same logits, whose gradient is shortened on its way back; the mean over examples has divided it."""
    _check_positive("limit", limit)
    same, most = logits.view_as(logits), limit / max(1, math.prod(logits.shape[:-1]))
    if same.requires_grad:
        same.register_hook(lambda back: back * (most / back.norm(dim=-1, keepdim=True)).clamp(max=1))  # type: ignore[no-untyped-call]
    return same


def _dirichlet_nll(alpha: Tensor, mean_log: Tensor) -> Tensor:
    normalizer = torch.lgamma(alpha).sum(-1) - torch.lgamma(alpha.sum(-1))
    return normalizer - ((alpha - 1) * mean_log).sum(-1)


def _member_logits(members: Tensor, outputs: str) -> Tensor:
    if check_choice(outputs, ("logits", "probabilities"), "outputs") == "logits":
        return members
    read_distributions(members.detach(), name="members")
    return members.log()


def _interpolate(step: float, *corners: tuple[float, float]) -> float:
    """The piecewise linear function through the corners, constant before the first and after the last."""
    if step <= corners[0][0]:
        return corners[0][1]
    for (start, low), (end, high) in pairwise(corners):
        if step < end:
            return low + (high - low) * (step - start) / (end - start)
    return corners[-1][1]


def _half_cycle(step: float, total: float, cycle: float | None) -> float:
    _check_positive("total", total)
    cycle = CYCLE * total if cycle is None else cycle
    if not 0 < cycle <= total:
        raise ValueError(f"cycle must be above 0 and at most total={total!r}, got {cycle!r}.")
    if not step >= 0:
        raise ValueError(f"The epoch or step must not be negative, got {step!r}.")
    return cycle / 2


def _check_shapes(student_logits: Tensor, members: Tensor) -> None:
    shape = tuple(student_logits.shape)
    check_classes(shape[-1] if shape else 0, "student_logits", shape)
    if members.shape[1:] != shape or len(members) == 0:
        raise ValueError(
            f"members must be (members, *batch, classes) with at least one member for student_logits of shape {shape}; "
            f"got {tuple(members.shape)}."
        )


def _check_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}.")
