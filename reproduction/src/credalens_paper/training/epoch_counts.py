"""What is counted during an epoch without waiting for the device, and the error when it stops being numbers."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from credalens_paper.training.dirichlet import widest_float
from credalens_paper.training.spec import TrainSpec


class Averages(NamedTuple):
    """Averages over the images of an epoch so far."""

    loss: float
    accuracy: float


class DivergedError(FloatingPointError, ValueError):
    """The loss or the weights are no longer numbers."""


@final
class Tally:
    """Sums over the steps of an epoch, kept on the device, and the first step whose loss was not a number."""

    def __init__(self, device: torch.device, /):
        zeros = torch.zeros(2, device=device)
        self._sums = zeros.to(widest_float(zeros))
        self._bad = torch.full((), -1, dtype=torch.int64, device=device)

    def add(self, loss: Tensor, logits: Tensor, labels: Tensor, step: int, /) -> None:
        """Count one batch."""
        correct = (logits.argmax(-1) == labels).sum()
        self._sums += torch.stack([loss.to(self._sums.dtype), correct.to(self._sums.dtype)])
        self._bad = torch.where((self._bad < 0) & ~torch.isfinite(loss), step, self._bad)

    def read(self) -> tuple[float, float, int]:
        """Sum of the losses, number of correct images and first bad step (or -1); waits for the device."""
        loss, correct, bad = torch.cat([self._sums, self._bad[None].to(self._sums.dtype)]).tolist()
        return loss, correct, int(bad)

    def clear(self) -> None:
        """Begin another epoch."""
        self._sums.zero_()
        self._bad.fill_(-1)

    def state(self) -> dict[str, Tensor]:
        """The sums; a state with a bad step is never stored."""
        return {"sums": self._sums}

    def restore(self, state: dict[str, Tensor], /) -> None:
        """Go on from a state."""
        self._sums.copy_(state["sums"])
        self._bad.fill_(-1)


def check_finite(model: nn.Module, spec: TrainSpec, step: int, /) -> None:
    """Refuse to store weights that are not numbers: the loss shows them one step later."""
    finite = torch.stack([torch.isfinite(weight).all() for weight in model.parameters()])
    if not finite.all():
        names = [name for name, _ in model.named_parameters()]
        first = names[int((~finite).nonzero()[0])]
        raise diverged(spec, f"the weights {first!r} are no longer numbers after step {step}")


def diverged(spec: TrainSpec, what: str, /) -> DivergedError:
    """The error that names the member, says what is lost (nothing) and what to try."""
    return DivergedError(
        f"Training of {spec.key} diverged: {what}. Checkpoints made before that are kept, and so are the other "
        "members. Train this one from another seed, with a lower learning rate (another schedule), or with "
        "precision='float32'; delete its folder to begin again."
    )
