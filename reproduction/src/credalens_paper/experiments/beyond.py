"""Tables beyond the paper's, of the same networks: near unknowns, and labels with mistakes."""

from __future__ import annotations

from typing import Final

from credalens_paper.backbones import LARGE
from credalens_paper.experiments.cell_keys import MEAN, CellKey, cells
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperTable
from credalens_paper.experiments.tables import BOTH, C10, C100, DETECTION, OOD, PREDICTION, Table

UNCERTAINTIES: Final = ("TU", "AU", "EU")
_DESCRIPTIONS: Final = {
    "NearOOD": "Accuracy, calibration and detection of near unknowns by EU and TU: CIFAR-10 against CIFAR-100 and back.",
    "LabelNoise": "ResNet-18 deep ensembles trained on CIFAR-10 and on its worst human labels (CIFAR-10N): accuracy, "
    "calibration, mean uncertainty of the test images, OOD detection.",
}


def _near() -> Table:
    return Table("NearOOD", tuple(cell for pair in ((C10, C100), (C100, C10)) for cell in _one_way(*pair)))


def _one_way(inside: str, outside: str) -> tuple[CellKey, ...]:
    models = {"backbone": ("resnet18", *LARGE), "method": "DE", "N": 5, "id_set": inside, "variant": BOTH}
    return (
        *cells(**models, metric=(*PREDICTION, "NLL")),
        *cells(**models, measure=("EU", "TU"), ood_set=outside, metric=DETECTION),
    )


def _label_noise() -> Table:
    models = {"backbone": "resnet18", "method": "DE", "N": 5, "id_set": (C10, "cifar10n"), "variant": BOTH}
    return Table(
        "LabelNoise",
        (
            *cells(**models, metric=(*PREDICTION, "NLL")),
            *cells(**models, measure=UNCERTAINTIES, metric=MEAN),
            *cells(**models, measure=("EU", "TU"), ood_set=(*OOD, C100), metric=DETECTION),
        ),
        layout=("variant", "measure", "ood_set", "metric", "id_set"),
    )


OWN_TABLES: Final = {table.label: table for table in (_near(), _label_noise())}
"""Tables of ours by their labels."""
BESIDE: Final = {**PAPER_TABLES, **{label: PaperTable(text, None, {}) for label, text in _DESCRIPTIONS.items()}}
"""For every table what it shows and what the paper prints, which of ours is nothing."""
