"""Entries beyond the paper's that are no tables of cells: numbers with intervals over inputs, and what exactness changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credalens_paper.backbones import LARGE, LITE, TEXT
from credalens_paper.experiments.cell_keys import CellKey, cells
from credalens_paper.experiments.own_tables import INTENTS, OUTSIDE
from credalens_paper.experiments.presets import Preset
from credalens_paper.experiments.tables import C10, C100, SMALL, WRAPPED


@dataclass(frozen=True)
class DetectionEntry:
    """The AUROC of every score of the catalogue, and of credal scores less their averaged siblings."""

    label: str
    description: str
    models: tuple[CellKey, ...]


@dataclass(frozen=True)
class DisagreementEntry:
    """How uncertainty ranks test images beside the entropy of people's labels, and whether intervals hold these."""

    label: str
    description: str
    models: tuple[CellKey, ...]


EstimatesEntry = DetectionEntry | DisagreementEntry
ENSEMBLE: Final = {"metric": "", "method": "DE", "N": 5}
_ESTIMATES: Final[tuple[EstimatesEntry, ...]] = (
    DetectionEntry(
        "TextScores",
        "CLINC150: detection of requests outside all intents by every score, with 95 % intervals over requests; credal scores "
        "less averaged ones, paired; false alarms and catches of a guard.",
        cells(metric="", backbone=TEXT, method=WRAPPED, N=5, id_set=INTENTS, ood_set=OUTSIDE),
    ),
    DisagreementEntry(
        "HumanDisagreement",
        "Does uncertainty know what people disagree about? Rank correlation of AU, EU and TU with the entropy of people's "
        "labels (CIFAR-10H) on clean test images, and the share of people's label distributions that the intervals hold.",
        cells(**ENSEMBLE, backbone=("resnet18", *LARGE, LITE), id_set=C10),
    ),
)
ESTIMATES: Final = {entry.label: entry for entry in _ESTIMATES}
"""Entries with intervals by their labels."""
TIMES: Final = 4
"""Inputs of each set here, as a multiple of those where the solver only stands beside a table."""
SOLVER_RUNS: Final = 3
"""Ensembles of each model that the paper's solver is run on; PIA is measured on all of them."""
FEW: Final = 10
"""Classes up to which the solver is quick; with more of them fewer inputs are solved."""


@dataclass(frozen=True)
class Exactness:
    """What exact lower entropy and a sound PIA change on real predictions: which ensembles are measured, and how.

    :ivar models: cells without a metric, each with the numbers of classes that PIA keeps.
    """

    label: str
    description: str
    models: tuple[tuple[CellKey, tuple[int, ...]], ...]

    def samples(self, classes: int, preset: Preset, /) -> int:
        """Inputs of each set that the solver is run on: 2,000 of ten classes, fewer of more, since its time grows."""
        return max(1, TIMES * preset.solver_samples * FEW // max(FEW, classes))


EXACTNESS: Final = Exactness(
    "Exactness",
    "The paper's local solver against exact lower entropy, and the printed PIA against the sound one: "
    "wrong values, empty sets, OOD detection.",
    (
        *((cell, (2, 3, 5, 8)) for cell in cells(**ENSEMBLE, backbone=SMALL, id_set=C10)),
        *((cell, (10, 20, 50)) for cell in cells(**ENSEMBLE, backbone="resnet50", id_set=C100)),
    ),
)
