"""What happens to the outputs of the members: folded into a summary one by one, kept for the hull, or watched."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor

from credalens.arrays import ArrayKind, array_kind_of
from credalens.core.members import MemberSummary
from credalens.torch.outputs import check_values, probabilities

__all__ = ["Fold", "Keep", "Sink", "Watch", "runs_ahead"]


class Sink(ABC):
    """Takes the raw output of one pass after the other; the first sets the shape and the device of all."""

    def __init__(self, kind: str, device: torch.device | None, /) -> None:
        self.kind, self.device = kind, device
        self.shape: torch.Size | None = None

    def __call__(self, raw: Tensor, who: str, /) -> None:
        """Take one output."""
        self.device = self.device or raw.device
        self.shape = self.shape or raw.shape
        if raw.shape[-1] != self.shape[-1]:
            raise ValueError(f"{who} predicts {raw.shape[-1]} classes and the members before it {self.shape[-1]}.")
        if raw.shape != self.shape:
            raise ValueError(
                f"{who} returned shape {tuple(raw.shape)} and the members before it {tuple(self.shape)}; "
                "all members must predict the same inputs, (*batch, classes)."
            )
        if raw.device != self.device:
            raise ValueError(
                f"{who} returned a tensor on {raw.device}, expected {self.device} like the input; "
                "move the member there, or end it with .to(x.device)."
            )
        self._take(raw, who)

    @abstractmethod
    def _take(self, raw: Tensor, who: str, /) -> None: ...


@final
class Fold(Sink):
    """Folds every output into one ``MemberSummary``, so that memory does not grow with the members."""

    def __init__(self, kind: str, device: torch.device | None, /) -> None:
        super().__init__(kind, device)
        self.summary = MemberSummary()

    def _take(self, raw: Tensor, who: str, /) -> None:
        try:
            one = MemberSummary().update(probabilities(raw, self.kind), member_axis=None)
        except ValueError:
            check_values(raw, self.kind, who)  # says which member it was, and what about it
            raise
        one.array_kind = _array_kind(raw, self.kind)
        self.summary = self.summary.merge(one)


def _array_kind(raw: Tensor, kind: str) -> ArrayKind:
    """Logits were softmaxed in float64, but results go back in the precision that the model has."""
    array_kind = array_kind_of(raw)
    dtype = array_kind.result_dtype.name if kind == "logits" else array_kind.dtype
    return ArrayKind(array_kind.library, array_kind.device, dtype)


@final
class Keep(Sink):
    """Keeps every output, for the hull, for gradients, and on a GPU where there are few members.

    Looking at values makes the CPU wait for a GPU, so there it is left to ``check``, after all members have run.
    """

    def __init__(self, kind: str, device: torch.device | None, /) -> None:
        super().__init__(kind, device)
        self.raw: list[Tensor] = []
        self.who: list[str] = []

    def _take(self, raw: Tensor, who: str, /) -> None:
        if not runs_ahead(raw.device):
            check_values(raw.detach(), self.kind, who)
        self.raw.append(raw)
        self.who.append(who)

    def check(self) -> None:
        """Refuse values that no distribution can come from, and say which member they came from."""
        for raw, who in zip(self.raw, self.who, strict=True):
            check_values(raw.detach(), self.kind, who)


def runs_ahead(device: torch.device | None, /) -> bool:
    """Whether the CPU goes on while this device computes, until it asks for a value."""
    return device is not None and device.type == "cuda"


@final
class Watch:
    """Notices when all samples of a member are the same. Holds one output until a second one differs."""

    def __init__(self) -> None:
        self.first: Tensor | None = None
        self.seen = 0

    def see(self, raw: Tensor, /) -> None:
        """Look at one more sample."""
        self.seen += 1
        if self.seen == 1:
            self.first = raw.detach()
        elif self.first is not None and not torch.equal(self.first, raw):
            self.first = None

    @property
    def identical(self) -> bool:
        """Whether there were several samples and all were the same."""
        return self.seen > 1 and self.first is not None

    def warn(self, who: str, /) -> None:
        """Say that sampling does nothing."""
        warnings.warn(
            f"all {self.seen} samples of {who} are identical, so epistemic uncertainty will be zero: the module is "
            "deterministic. Give it dropout layers, convert it by credalens.bayes.to_bayesian, or pass several members.",
            stacklevel=2,
        )
