"""The words in which tables and figures are declared: cells, evaluation sets, ensembles and their runs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from credalens_paper.data import DATA_SETS
from credalens_paper.experiments.numbers import KEYS
from credalens_paper.experiments.presets import Preset
from credalens_paper.training.spec import TrainSpec

__all__ = ["CellKey", "Ensemble", "EvaluationSet", "cells", "distinct_combinations", "ensembles", "evaluation_sets"]

TRAINED_AS: Final = {"DE": "snn", "BNNR": "bnnr", "BNNF": "bnnf", "EDD": "edd", "EDD-Fair": "edd_fair"}


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """Where a number stands, in the keys of `credalens_paper.experiments.numbers`."""

    metric: str
    backbone: str | None = None
    method: str | None = None
    variant: str | None = None
    N: int | None = None
    J: int | None = None
    C: int | None = None
    measure: str | None = None
    id_set: str | None = None
    ood_set: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The keys that apply."""
        return {key: value for key in KEYS if (value := getattr(self, key)) is not None}

    def measured(self, preset: Preset, /) -> CellKey:
        """The cell as a preset measures it, with what it puts in the place of the paper's models and sets."""
        return replace(self, **{key: preset.substitute(key, value) for key, value in self.as_dict().items()})

    @property
    def baseline(self) -> CellKey:
        """The classical cell that a credal one is compared with: no PIA, and mutual information as its EU."""
        measure = "EU" if self.measure == "GH" else self.measure
        return replace(self, variant="classical", J=None, measure=measure)


def cells(**axes: Any) -> tuple[CellKey, ...]:
    """The cells of all combinations of the keys' values, each a value or a tuple of them.

    >>> [cell.N for cell in cells(metric="ECE", N=(5, 10))]
    [5, 10]
    """
    values = [value if isinstance(value, tuple) else (value,) for value in axes.values()]
    return tuple(CellKey(**dict(zip(axes, combination, strict=True))) for combination in product(*values))


@dataclass(frozen=True, order=True)
class EvaluationSet:
    """A test set, or one corruption of it at one severity."""

    name: str
    corruption: str = ""
    severity: int = 0

    @property
    def key(self) -> str:
        """A readable file name.

        >>> EvaluationSet("cifar10-c", "fog", 3).key
        'cifar10-c.fog.3'
        """
        return f"{self.name}.{self.corruption}.{self.severity}" if self.corruption else self.name


def evaluation_sets(name: str, preset: Preset, /, *, severity: int | None = None) -> tuple[EvaluationSet, ...]:
    """The sets behind a name of the paper: one, or all corruptions (at one severity or at all) of a corrupted set."""
    own = preset.substitute("ood_set", name)
    if not own.endswith("-c"):
        return (EvaluationSet(own),)
    severities = preset.severities if severity is None else (severity,)
    return tuple(EvaluationSet(own, kind, level) for kind in preset.corruptions for level in severities)


@dataclass(frozen=True)
class Ensemble:
    """One run of a method: N networks, or one network of which N samples are drawn, or one that gives a Dirichlet."""

    method: str
    specs: tuple[TrainSpec, ...]
    N: int

    @property
    def samples(self) -> int:
        """Samples of each network."""
        return self.N if self.method.startswith("BNN") else 1

    @property
    def dirichlet(self) -> bool:
        """Whether the network predicts concentrations."""
        return self.method.startswith("EDD")

    @property
    def seeds(self) -> list[int]:
        """The seeds of its networks."""
        return [spec.seed for spec in self.specs]

    @cached_property
    def key(self) -> str:
        """A readable file name, unique for networks and number of samples."""
        one = self.specs[0]
        digest = hashlib.sha256("\n".join(map(spec_key, self.specs)).encode()).hexdigest()[:10]
        return f"{one.data}-{one.backbone}-{self.method.lower()}-n{self.N}-{digest}"


@cache
def spec_key(spec: TrainSpec, /) -> str:
    """The key of a network, which is asked for at every look into the store."""
    return spec.key


def distinct_combinations(pool: Sequence[int], N: int, count: int, /, *, seed: int = 0) -> list[tuple[int, ...]]:
    """`count` different choices of N members (all, where there are no more), drawn so that members share the work.

    Random orders of the pool are cut into blocks of N, so that members are used about equally often.

    >>> distinct_combinations([0, 1, 2], 2, 15)
    [(0, 1), (0, 2), (1, 2)]
    """
    if not 1 <= N <= len(pool):
        raise ValueError(f"an ensemble of N = {N} needs at least {N} trained members, there are {len(pool)}")
    if math.comb(len(pool), N) <= count:
        return list(combinations(sorted(pool), N))
    rng = np.random.default_rng([seed, len(pool), N])
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        order = rng.permutation(np.asarray(pool))
        blocks = (order[start : start + N] for start in range(0, len(order) - N + 1, N))
        found |= {tuple(sorted(map(int, block))): None for block in blocks}
    return list(found)[:count]


def ensembles(
    cell: CellKey, preset: Preset, /, *, pool: int | None = None, pretrained: str | None = None
) -> list[Ensemble]:
    """The runs behind a cell. `pool` is how many networks are trained for deep ensembles (the preset's members)."""
    own = cell.measured(preset)
    if own.method is None or own.backbone is None or own.id_set is None:
        raise ValueError(f"the cell {cell.as_dict()} names no model")
    size = preset.members if pool is None else pool
    if own.method == "DE":
        choices = distinct_combinations(range(size), own.N or 1, preset.runs)
        return [
            Ensemble("DE", tuple(_spec(own, preset, "DE", s, (), pretrained) for s in c), own.N or 1) for c in choices
        ]
    if own.method.startswith("BNN"):
        return [
            Ensemble(own.method, (_spec(own, preset, own.method, seed, (), None),), own.N or 1)
            for seed in range(preset.sampled_runs(own.N or 1))
        ]
    teachers = distinct_combinations(range(size), preset.substitute("N", 5), preset.runs)[: preset.edd_runs]
    return [
        Ensemble(own.method, (_spec(own, preset, own.method, seed, choice, None),), 1)
        for seed, choice in enumerate(teachers)
    ]


def _spec(
    own: CellKey, preset: Preset, method: str, seed: int, teachers: Iterable[int], pretrained: str | None
) -> TrainSpec:
    backbone, data = str(own.backbone), str(own.id_set)
    return TrainSpec(
        data=data,
        backbone=backbone,
        method=TRAINED_AS[method],
        seed=seed,
        schedule=preset.schedule,
        classes=classes_of(data),
        width=preset.width,
        image_size=preset.pixels(backbone),
        teachers=tuple(teachers),
        pretrained=pretrained if data == "imagenet" else None,
    )


def classes_of(data: str, /) -> int:
    """The number of classes of a training set."""
    return DATA_SETS[data].classes if data in DATA_SETS else 10
