"""Which networks and which images stand behind a cell: ensembles, their runs, and the sets they are tested on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from credalens.checks.options import count_text
from credalens_paper.backbones import LITE, Pretrained
from credalens_paper.data import DATA_SETS
from credalens_paper.experiments.cell_keys import EVERY, SEVEREST, TRAINED, CellKey
from credalens_paper.experiments.paper_entries import OOD
from credalens_paper.experiments.presets import Preset
from credalens_paper.training.spec import TrainSpec

TRAINED_AS: Final = {"DE": "snn", "BNNR": "bnnr", "BNNF": "bnnf", "EDD": "edd", "EDD-Fair": "edd_fair"}


@dataclass(frozen=True, order=True)
class EvaluationSet:
    """A test set, or one corruption of it at one severity; every fifth image where a preparation is named."""

    name: str
    corruption: str = ""
    severity: int = 0
    preparation: str = ""

    @property
    def key(self) -> str:
        """A readable file name, such as "cifar10-c.fog.3" or "cifar10.bgr"."""
        parts = (self.name, self.corruption, str(self.severity or ""), self.preparation)
        return ".".join(part for part in parts if part)

    @property
    def pixels(self) -> EvaluationSet:
        """The set whose pixels are the same."""
        return replace(self, preparation=TRAINED) if self.preparation else self

    @property
    def rows(self) -> slice:
        """The images of the whole test set that belong to this one."""
        return slice(None, None, EVERY if self.preparation else None)


def evaluation_sets(
    name: str, preset: Preset, /, *, severity: int | None = None, preparation: str = ""
) -> tuple[EvaluationSet, ...]:
    """The sets behind a name of the paper: one, or all corruptions (at one severity or at all) of a corrupted set."""
    if preparation == SEVEREST:
        severity, preparation = max(preset.severities), TRAINED
    substitute = preset.substitute("ood_set", name)
    if not substitute.endswith("-c"):
        return (EvaluationSet(substitute, preparation=preparation),)
    severities = preset.severities if severity is None else (severity,)
    preparation = preparation or (TRAINED if preset.few_corrupted else "")
    return tuple(
        EvaluationSet(substitute, kind, level, preparation) for kind in preset.corruptions for level in severities
    )


def ood_sets(preset: Preset, /) -> tuple[EvaluationSet, ...]:
    """The sets behind those that the paper's OOD detection is about."""
    return tuple(images for name in OOD for images in evaluation_sets(name, preset))


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
        first = self.specs[0]
        digest = hashlib.sha256("\n".join(spec.key for spec in self.specs).encode()).hexdigest()[:10]
        return f"{first.data}-{first.backbone}-{self.method.lower()}-n{self.N}-{digest}"


def distinct_combinations(pool: Sequence[int], N: int, count: int, /, *, seed: int = 0) -> list[tuple[int, ...]]:
    """`count` different choices of N members (all, where there are no more), drawn so that members share the work.

    Random orders of the pool are cut into blocks of N, so that members are used about equally often.
    """
    if not 1 <= N <= len(pool):
        raise ValueError(
            f"an ensemble of N = {N} needs at least {count_text(N, 'trained member')}, there are {len(pool)}"
        )
    if math.comb(len(pool), N) <= count:
        return list(combinations(sorted(pool), N))
    rng = np.random.default_rng([seed, len(pool), N])
    choices: dict[tuple[int, ...], None] = {}
    while len(choices) < count:
        order = rng.permutation(np.asarray(pool))
        blocks = (order[start : start + N] for start in range(0, len(order) - N + 1, N))
        choices |= {tuple(sorted(map(int, block))): None for block in blocks}
    return list(choices)[:count]


def ensembles(key: CellKey, preset: Preset, /, *, pool: int, pretrained: Pretrained | None = None) -> list[Ensemble]:
    """The runs behind a cell, from the preset's first on. `pool` is how many networks are trained for deep ensembles."""
    cell = preset.substituted(key)
    if cell.method is None or cell.backbone is None or cell.id_set is None:
        raise ValueError(f"the cell {key.as_dict()} names no model")
    method, N, first = cell.method, cell.N or 1, preset.first_run or 0
    if method == "DE":
        choices = distinct_combinations(range(pool), N, preset.runs)[first:]
        return [Ensemble(method, tuple(_spec(cell, preset, seed, (), pretrained) for seed in c), N) for c in choices]
    if method.startswith("BNN"):
        return [Ensemble(method, (_spec(cell, preset, seed),), N) for seed in range(first, preset.sampled_runs(N))]
    teachers = distinct_combinations(range(pool), preset.substitute("N", 5), preset.runs)[: preset.edd_runs]
    return [Ensemble(method, (_spec(cell, preset, seed, c),), 1) for seed, c in enumerate(teachers[first:], first)]


def needs_pretrained(cell: CellKey, /) -> str | None:
    """The backbone of a cell whose networks start from weights of ImageNet, None where they start at random."""
    return cell.backbone if cell.backbone == LITE or cell.id_set == "imagenet" else None


def _spec(
    cell: CellKey, preset: Preset, seed: int, teachers: tuple[int, ...] = (), pretrained: Pretrained | None = None
) -> TrainSpec:
    backbone, data = str(cell.backbone), str(cell.id_set)
    start = (
        {"pretrained": pretrained.digest, "weights": pretrained.folder} if pretrained and needs_pretrained(cell) else {}
    )
    return TrainSpec(
        data=data,
        backbone=backbone,
        method=TRAINED_AS[str(cell.method)],
        seed=seed,
        schedule=preset.schedule,
        classes=DATA_SETS[data].classes if data in DATA_SETS else 10,
        width=preset.width,
        image_size=preset.pixels(backbone),
        teachers=teachers,
        **start,
    )
