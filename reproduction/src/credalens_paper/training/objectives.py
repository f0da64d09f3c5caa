"""What each method minimises: cross-entropy, the evidence lower bound, the likelihood of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.nn import functional

from credalens.bayes import elbo_loss
from credalens_paper.training.distillation import distillation_loss
from credalens_paper.training.schedules import Schedule

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

    Where batches come back, what the teachers said about them is remembered.
    """
    steps = schedule.steps_per_epoch(examples)
    again = schedule.views is not None and schedule.views < schedule.epochs
    said: dict[tuple[int, int], Tensor] = {}

    def ask(images: Tensor) -> Tensor:
        with torch.no_grad(), mixed():
            return torch.stack([teacher(images) for teacher in teachers])

    def loss(logits: Tensor, images: Tensor, labels: Tensor, step: int) -> Tensor:
        epoch, place = divmod(step, steps)
        batch = schedule.view(epoch), place
        members = said[batch] if batch in said else ask(images)
        if again:
            said[batch] = members
        heat = schedule.heat(step / steps)
        return distillation_loss(logits, members.float(), temperature=heat, limit=schedule.limit)

    return loss
