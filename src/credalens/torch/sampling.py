"""Sampling one member several times: its dropout layers are on, and samples that never differ cause a warning."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from torch import Tensor, nn

from credalens.bayes import BayesianLayer, activate_dropout
from credalens.bayes.dropout import DROPOUT


def sampling(member: nn.Module, /) -> AbstractContextManager[Any]:
    """Switch the dropout layers on; in a Bayesian network only the weights are sampled and dropout stays off."""
    layer_types = {type(layer) for layer in member.modules()}
    has_dropout = any(issubclass(layer_type, DROPOUT) for layer_type in layer_types)
    return activate_dropout(member) if has_dropout and BayesianLayer not in layer_types else nullcontext()


@final
class SampleWatch:
    """Notices when all samples of a member are identical. Keeps the first sample until another one differs."""

    def __init__(self) -> None:
        self.count = 0
        self._first: Tensor | None = None

    def see(self, sample: Tensor, /) -> None:
        """Compare one more sample with the first; a graph has no values to compare."""
        if torch.compiler.is_compiling():
            return
        self.count += 1
        if self.count == 1:
            self._first = sample.detach()
        elif self._first is not None and not torch.equal(self._first, sample):
            self._first = None

    @property
    def identical(self) -> bool:
        """Whether there were several samples and none differed."""
        return self.count > 1 and self._first is not None

    def warn(self, name: str, /) -> None:
        """Warn that sampling this member has no effect."""
        warnings.warn(
            f"all {self.count} samples of {name} are identical, so epistemic uncertainty will be zero: the module is "
            "deterministic. Pass several members, or a network that was trained with dropout layers, or one that was converted "
            "with credalens.bayes.to_bayesian and trained with elbo_loss since: until then its weights only carry noise, which "
            "costs accuracy.",
            stacklevel=2,
        )
