"""Tables beyond the paper's, of the same networks: near unknowns, and labels with mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from credalens_paper.backbones import LARGE
from credalens_paper.experiments.cell_keys import MEAN, CellKey, cells
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperTable
from credalens_paper.experiments.tables import BOTH, C10, C100, DETECTION, OOD, PREDICTION, Table

UNCERTAINTIES: Final = ("TU", "AU", "EU")
_DESCRIPTIONS: Final = {
    "NearOOD": "Accuracy, calibration and detection of near unknowns by EU, TU and GH: CIFAR-10 against CIFAR-100 and back.",
    "LabelNoise": "ResNet-18 deep ensembles trained on CIFAR-10 and on its worst human labels (CIFAR-10N): accuracy, "
    "calibration, mean uncertainty of the test images, OOD detection.",
}


def _near() -> Table:
    return Table("NearOOD", tuple(cell for pair in ((C10, C100), (C100, C10)) for cell in _one_way(*pair)))


def _one_way(inside: str, outside: str) -> tuple[CellKey, ...]:
    models = {"backbone": ("resnet18", *LARGE), "method": "DE", "N": 5, "id_set": inside}
    return _quality(models, outside)


def _quality(models: Mapping[str, Any], ood_sets: str | tuple[str, ...]) -> tuple[CellKey, ...]:
    """Accuracy, calibration and detection by EU, TU and the generalized Hartley measure."""
    detection = {"ood_set": ood_sets, "metric": DETECTION}
    return (
        *cells(**models, variant=BOTH, metric=(*PREDICTION, "NLL")),
        *cells(**models, variant=BOTH, measure=("EU", "TU"), **detection),
        *cells(**models, variant="credal", measure="GH", **detection),
    )


def _label_noise() -> Table:
    models = {"backbone": "resnet18", "method": "DE", "N": 5, "id_set": (C10, "cifar10n")}
    return Table(
        "LabelNoise",
        (*_quality(models, (*OOD, C100)), *cells(**models, variant=BOTH, measure=UNCERTAINTIES, metric=MEAN)),
        layout=("variant", "measure", "ood_set", "metric", "id_set"),
    )


OWN_TABLES: Final = {table.label: table for table in (_near(), _label_noise())}
"""Tables of ours by their labels."""
BESIDE: Final = {**PAPER_TABLES, **{label: PaperTable(text, None, {}) for label, text in _DESCRIPTIONS.items()}}
"""For every table what it shows and what the paper prints, which of ours is nothing."""
