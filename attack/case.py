"""A case: one attempt of a campaign, made from three facts alone, so that anyone can make it again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Choice = TypeVar("Choice")


class DefectError(AssertionError):
    """The library did what it must not do; the message says what was expected and what came."""


@dataclass(frozen=True)
class Case:
    """An attempt: all that it draws comes from ``rng``, all that it writes goes into ``folder``, which is new and empty."""

    campaign: str
    seed: int
    number: int
    make_folder: Callable[[], Path]
    counted: list[int] = field(default_factory=list)

    @cached_property
    def folder(self) -> Path:
        """Made when it is asked for: most campaigns write nothing."""
        return self.make_folder()

    def count(self, inputs: int, /) -> None:
        """Note how many inputs the attempt is about, where it is about more than one."""
        self.counted.append(inputs)

    @property
    def inputs(self) -> int:
        """How many inputs it was about."""
        return sum(self.counted) if self.counted else 1

    @cached_property
    def rng(self) -> np.random.Generator:
        """The same numbers for the same campaign, seed and case."""
        return np.random.default_rng([zlib.crc32(self.campaign.encode()), self.seed, self.number])

    def choose(self, *choices: Choice) -> Choice:
        """One of them at random."""
        return choices[int(self.rng.integers(len(choices)))]

    def between(self, least: int, most: int, /) -> int:
        """A whole number, both ends possible."""
        return int(self.rng.integers(least, most + 1))


@dataclass(frozen=True)
class Campaign:
    """A kind of attempt: ``attack`` raises where the library is wrong, by whatever exception."""

    name: str
    attack: Callable[[Case], None]

    @property
    def sentence(self) -> str:
        """What it attacks, from the docstring."""
        return (self.attack.__doc__ or "").partition("\n")[0]


def expect(condition: object, message: str, /) -> None:
    """A defect unless the condition holds."""
    if not condition:
        raise DefectError(message)


def expect_close(what: str, value: object, truth: object, /, *, tolerance: float) -> None:
    """A defect where two arrays differ in shape, or in a number by more than ``tolerance``; NaN always does."""
    a, b = np.asarray(value, np.float64), np.asarray(truth, np.float64)
    expect(a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}")
    wrong = ~(np.abs(a - b) <= tolerance)
    if wrong.any():
        expect(False, f"{what}: {_first(wrong, a, b)} (tolerance {tolerance:g})")


def expect_same(what: str, value: object, truth: object, /) -> None:
    """A defect where two arrays differ in shape, dtype or any bit of a number."""
    a, b = np.asarray(value), np.asarray(truth)
    expect((a.shape, a.dtype) == (b.shape, b.dtype), f"{what}: {a.dtype} {a.shape}, expected {b.dtype} {b.shape}")
    wrong = (a != b) & ~((a != a) & (b != b))
    if wrong.any():
        expect(False, f"{what}: {_first(wrong, a, b)}")


def _first(wrong: NDArray, value: NDArray, truth: NDArray) -> str:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} differ, the first at {index}: {value[index]!r}, expected {truth[index]!r}"
    )
