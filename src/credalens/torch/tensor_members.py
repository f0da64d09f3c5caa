"""Members as one tensor, which a compiled graph can return; read on first use of what needs the members."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from credalens.arrays import take_inputs
from credalens.checks.member_array import MemberArray, read_distributions, read_logits, read_members
from credalens.core.classical import ClassicalUncertainty, classical_of
from credalens.core.pairwise_kl import pairwise_kl_of


@dataclass(frozen=True)
class TensorMembers:
    """Logits or probabilities of members (members, *batch, classes); ``float64`` gives the precision of results if another.

    No field is a text: torch 2.13 does not load an exported program that returns one.
    """

    tensor: Tensor
    logits: bool
    float64: bool | None = None

    def take(self, key: Any, /) -> TensorMembers:
        """The members of some inputs, chosen by an index of the batch."""
        return replace(self, tensor=take_inputs(self.tensor, key))

    def to_cpu(self) -> MemberArray:
        """The members as every solver reads them."""
        if self.float64 is not None:
            return in_precision(read_distributions(self.tensor), float64=self.float64)
        return read_logits(self.tensor) if self.logits else read_members(self.tensor)

    def classical(self, *, base: float) -> ClassicalUncertainty:
        """Entropy of the mean, mean entropy of the members, and their difference."""
        return classical_of(self.to_cpu().as_accepted(), base=base)

    def pairwise_kl(self, *, base: float) -> Any:
        """The expected pairwise Kullback-Leibler divergence."""
        return pairwise_kl_of(self.to_cpu(), base=base)


def in_precision(members: MemberArray, /, *, float64: bool) -> MemberArray:
    """The members, from which ``classical`` and ``hull`` are computed later, in the precision of the results."""
    return replace(members, array_kind=replace(members.array_kind, dtype="float64" if float64 else "float32"))
