"""An entry beyond the paper's: what exact lower entropy and a sound PIA change on real predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.presets import Preset
from credalens_paper.experiments.tables import C10, C100, SMALL

TIMES: Final = 4
"""Inputs of each set here, as a multiple of those where the solver only stands beside a table."""
SOLVER_RUNS: Final = 3
"""Ensembles of each model that the paper's solver is run on; PIA is measured on all of them."""
FEW: Final = 10
"""Classes up to which the solver is quick; with more of them fewer inputs are solved."""


@dataclass(frozen=True)
class Exactness:
    """Which ensembles are measured, and how.

    :ivar models: cells without a metric, each with the numbers of classes that PIA keeps.
    """

    label: str
    description: str
    models: tuple[tuple[CellKey, tuple[int, ...]], ...]

    def samples(self, classes: int, preset: Preset, /) -> int:
        """Inputs of each set that the solver is run on: 2,000 of ten classes, fewer of more, since its time grows."""
        return max(1, TIMES * preset.solver_samples * FEW // max(FEW, classes))


def _model(backbone: str, id_set: str) -> CellKey:
    return CellKey(metric="", backbone=backbone, method="DE", N=5, id_set=id_set)


EXACTNESS: Final = Exactness(
    "Exactness",
    "The paper's local solver against exact lower entropy, and the printed PIA against the sound one: "
    "wrong values, empty sets, OOD detection.",
    (*((_model(backbone, C10), (2, 3, 5, 8)) for backbone in SMALL), (_model("resnet50", C100), (10, 20, 50))),
)
