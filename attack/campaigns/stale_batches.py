"""``CredalWrapper.predict(output=...)``, called again with batches that have changed a little."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attack.case import Case, expect_same

CLASSES = 3


@dataclass(frozen=True)
class Sample:
    """A batch of a user's own type."""

    image: Any
    size: Any


class Side(Enum):
    """A value of a user's own type."""

    LEFT = 1
    RIGHT = 2


def attack(case: Case) -> None:
    """Batches of nested values, one of them changed: predict(output=...) refuses to go on, or computes it again."""
    from credalens.torch import CredalWrapper

    wrapper = CredalWrapper([Member(n) for n in range(2)], outputs="probabilities")
    batches = [[_value(case, 3)] for _ in range(case.between(1, 3))]
    wrapper.predict(batches, output=case.folder / "out", progress=False)
    place = case.between(0, len(batches) - 1)
    while text_of(changed := _changed(case, batches[place][0])) == text_of(batches[place][0]):
        pass
    batches[place] = [changed]
    try:
        resumed = wrapper.predict(batches, output=case.folder / "out", progress=False)
    except (ValueError, TypeError):
        return
    fresh = wrapper.predict(batches, progress=False)
    expect_same(f"batch {place}, now {text_of(changed)[:200]}", resumed.mean, fresh.mean)


@dataclass(frozen=True)
class Member:
    """Predicts from everything in a batch: whatever changes there, its prediction changes."""

    number: int

    def __call__(self, value: Any) -> Any:
        """One row of probabilities."""
        import torch

        seed = zlib.crc32(f"{self.number} {text_of(value)}".encode())
        return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(CLASSES), 1))


def text_of(x: Any, /) -> str:
    """All types and values in ``x``, written out."""
    name = type(x).__qualname__
    if is_dataclass(x):
        return f"{name}({', '.join(text_of(getattr(x, field.name)) for field in fields(x))})"
    if isinstance(x, dict):
        return f"{name}({', '.join(f'{text_of(key)}: {text_of(value)}' for key, value in x.items())})"
    if isinstance(x, list | tuple):
        return f"{name}({', '.join(map(text_of, x))})"
    if hasattr(x, "tolist"):
        return f"{name}({x.dtype}, {tuple(x.shape)}, {x.tolist()})"
    return f"{name}({x!r})"


def _value(case: Case, depth: int) -> Any:
    if depth == 0 or case.between(0, 2) == 0:
        return case.choose(_tensor, _array, _scalar)(case)
    parts = [_value(case, depth - 1) for _ in range(case.between(1, 3))]
    return case.choose(*NESTINGS)(parts)


def _mapping(parts: list[Any]) -> dict[str, Any]:
    return {f"key{n}": part for n, part in enumerate(parts)}


def _sample(parts: list[Any]) -> Sample:
    return Sample(parts[0], parts[-1])


NESTINGS: tuple[Callable[[list[Any]], Any], ...] = (list, tuple, _mapping, _sample)


def _array(case: Case) -> NDArray:
    shape = case.choose((), (1,), (2,), (1, 2), (2, 1), (0,))
    return case.rng.integers(0, 3, shape).astype(case.choose("int64", "int32", "float32", "bool"))


def _tensor(case: Case) -> Any:
    import torch

    return torch.from_numpy(np.array(_array(case)))


def _scalar(case: Case) -> Any:
    number = case.between(0, 30)
    return case.choose(
        number, float(number), bool(number % 2), str(number), f"{number}".encode(), None, Side(1), Side(2)
    )


def _changed(case: Case, x: Any) -> Any:
    """Something else at one place; a value in front of others may move its last digit to the next."""
    if isinstance(x, Sample):
        return replace(x, **{case.choose("image", "size"): _value(case, 1)})
    if isinstance(x, dict):
        key = case.choose(*x)
        return x | {key: _changed(case, x[key])} if case.between(0, 1) else dict(reversed(x.items()))
    if isinstance(x, list | tuple):
        place = case.between(0, len(x) - 1)
        items = [_changed(case, item) if n == place else item for n, item in enumerate(x)]
        return case.choose(type(x)(items), type(x)(reversed(x)), type(x)([list(x)]), [*x, x[0]])
    return case.choose(_tensor, _array, _scalar)(case)
