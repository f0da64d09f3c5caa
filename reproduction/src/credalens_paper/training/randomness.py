"""Seeds that fix everything: each member draws from generators of its own, whatever runs beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import numpy as np
import torch
from torch import Tensor

INITIAL, ORDER, DRAWS, HIDDEN = range(4)
"""Purposes of random numbers, so that none shares its stream with another."""


def derived_seed(*numbers: int) -> int:
    """A seed that depends on all the numbers, and for different numbers is unrelated; zeros at the end do not count.

    >>> derived_seed(0, 1) != derived_seed(1, 0)
    True
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def epoch_order(seed: int, epoch: int, examples: int, /) -> Tensor:
    """The order of the examples in an epoch, on the CPU: equal on all devices and known without the past.

    >>> epoch_order(0, 0, 5)
    tensor([1, 4, 0, 3, 2])
    """
    generator = torch.Generator().manual_seed(derived_seed(seed, ORDER, epoch))
    return torch.randperm(examples, generator=generator)


@final
class Randomness:
    """All random numbers of one member after its first weights.

    ``generator`` is for what can be told which generator to use: augmentation and the noise of Bayesian weights.
    Dropout and its like draw from torch's global generators; within ``active()`` these stand where the member left
    them, and afterwards where the caller did.
    """

    def __init__(self, seed: int, device: torch.device, /):
        self.generator = torch.Generator(device).manual_seed(derived_seed(seed, DRAWS))
        self._seed, self._device = seed, device
        self._hidden = [
            torch.Generator(owner).manual_seed(derived_seed(seed, HIDDEN)).get_state() for owner in self._devices()
        ]

    def begin_view(self, view: int, /) -> None:
        """Augment from here on as the last time this view began."""
        self.generator.manual_seed(derived_seed(self._seed, DRAWS, view))

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let torch's global generators go on where this member left them."""
        before = self._swap(self._hidden)
        try:
            yield
        finally:
            self._hidden = self._swap(before)

    def state(self) -> dict[str, Tensor]:
        """Where all generators stand."""
        hidden = {f"hidden{i}": state for i, state in enumerate(self._hidden)}
        return {"generator": self.generator.get_state(), **hidden}

    def restore(self, state: dict[str, Tensor], /) -> None:
        """Go on from a state; only one of the same kind of device fits."""
        self.generator.set_state(state["generator"])
        self._hidden = [state[f"hidden{i}"] for i in range(len(self._hidden))]

    def _devices(self) -> list[torch.device]:
        cpu = torch.device("cpu")
        return [cpu] if self._device.type == "cpu" else [cpu, self._device]

    def _swap(self, states: list[Tensor]) -> list[Tensor]:
        generators = [_global_generator(owner) for owner in self._devices()]
        before = [generator.get_state() for generator in generators]
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        return before


def _global_generator(device: torch.device) -> torch.Generator:
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "mps":
        return torch.mps._get_default_mps_generator()
    torch.cuda.init()  # type: ignore[no-untyped-call]  # the generators exist from then on
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]
