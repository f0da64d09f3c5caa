"""Entries beyond the paper's whose numbers have intervals over inputs: every score on texts, and what people disagree about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credalens_paper.backbones import LARGE, LITE, TEXT
from credalens_paper.experiments.beyond import INTENTS, OUTSIDE
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.tables import C10, WRAPPED


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

SIBLINGS: Final = {
    "total": "mean_total",
    "epistemic": "mean_epistemic",
    "aleatoric": "mean_aleatoric",
    "least_confidence": "mean_least_confidence",
}
"""Scores of the credal set, each with the one of averaging that it takes the place of."""

_IN_ORDER: Final[tuple[EstimatesEntry, ...]] = (
    DetectionEntry(
        "TextScores",
        "CLINC150: detection of requests outside all intents by every score, with 95 % intervals over requests; credal scores "
        "less averaged ones, paired; false alarms and catches of a guard.",
        tuple(
            CellKey(metric="", backbone=TEXT, method=method, N=5, id_set=INTENTS, ood_set=OUTSIDE) for method in WRAPPED
        ),
    ),
    DisagreementEntry(
        "HumanDisagreement",
        "Does uncertainty know what people disagree about? Rank correlation of AU, EU and TU with the entropy of people's "
        "labels (CIFAR-10H) on clean test images, and the share of people's label distributions that the intervals hold.",
        tuple(
            CellKey(metric="", backbone=backbone, method="DE", N=5, id_set=C10)
            for backbone in ("resnet18", *LARGE, LITE)
        ),
    ),
)
ESTIMATES: Final = {entry.label: entry for entry in _IN_ORDER}
"""Entries by their labels."""
