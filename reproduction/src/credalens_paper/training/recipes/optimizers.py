"""The optimisers of the schedules, and their state as tensors that a checkpoint can hold."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from credalens_paper.training.recipes.schedules import Schedule


def make_optimizer(model: nn.Module, schedule: Schedule, device: torch.device, /) -> torch.optim.Optimizer:
    """Adam, or SGD with Nesterov momentum; matrices and filters decay, biases and normalisation do not."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": schedule.weight_decay},
        {"params": [weight for weight in weights if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    fused = device.type == "cuda"  # one kernel for all weights instead of some for each
    if schedule.optimizer == "adam":
        return torch.optim.Adam(groups, lr=schedule.rate, fused=fused)
    return torch.optim.SGD(groups, lr=schedule.rate, momentum=schedule.momentum, nesterov=True, fused=fused)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float, /) -> None:
    """The same learning rate for all weights."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer, /) -> dict[str, Tensor]:
    """The state of the optimiser: '<weight>.<name>' to tensor. Its settings follow from the schedule."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": value
        for index, entries in state.items()
        for name, value in entries.items()
        if isinstance(value, Tensor)
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], /) -> None:
    """Put a state back, each tensor in the memory format of its weight, as fused updates need it."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = _like(weights[int(index)], value)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _like(weight: Tensor, value: Tensor) -> Tensor:
    if value.shape != weight.shape:
        return value.clone()
    return torch.empty_like(weight, dtype=value.dtype, requires_grad=False).copy_(value)
