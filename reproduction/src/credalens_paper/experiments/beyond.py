"""Tables beyond the paper's, of the same networks: near unknowns, noisy labels, every score, trimmed intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from credalens.core.scores import SCORES
from credalens_paper.backbones import LARGE
from credalens_paper.experiments.cell_keys import MEAN, CellKey, cells
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperTable
from credalens_paper.experiments.tables import BOTH, C10, C100, DETECTION, OOD, PREDICTION, Table

UNCERTAINTIES: Final = ("TU", "AU", "EU")
_DESCRIPTIONS: Final = {
    "NearOOD": "Accuracy, calibration and detection of near unknowns by EU, TU and GH: CIFAR-10 against CIFAR-100 and back.",
    "LabelNoise": "ResNet-18 deep ensembles trained on CIFAR-10 and on its worst human labels (CIFAR-10N): accuracy, "
    "calibration, mean uncertainty of the test images, OOD detection.",
    "ScoreCatalogue": "OOD detection by every score of the catalogue, but for the generalized Hartley measure (NearOOD).",
    "TrimmedIntervals": "Credal sets without the most extreme 5, 10 and 20 % of the members of each class at each end.",
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


def _catalogue() -> Table:
    """Far and near unknowns by all scores."""
    models = {"method": "DE", "N": 5, "metric": "AUROC"}
    sets = (
        (C10, ("resnet18", *LARGE), (*OOD, C100)),
        (C100, "resnet18", (*OOD, C10)),
    )
    scores = [
        ("classical" if score.averaging else "credal", name) for name, score in SCORES.items() if name != "hartley"
    ]
    return Table(
        "ScoreCatalogue",
        tuple(
            cell
            for id_set, backbones, ood_sets in sets
            for variant, name in scores
            for cell in cells(
                **models, id_set=id_set, backbone=backbones, ood_set=ood_sets, variant=variant, measure=name
            )
        ),
        layout=("variant", "measure", "id_set", "backbone", "ood_set"),
    )


def _trimmed() -> Table:
    models = {"backbone": "resnet18", "method": "DE", "N": (5, 10, 15), "id_set": (C10, C100)}
    variants = (*BOTH, "trim5", "trim10", "trim20")
    return Table(
        "TrimmedIntervals",
        (
            *cells(**models, variant=variants, metric=(*PREDICTION, "NLL")),
            *cells(**models, variant=variants, measure=("EU", "TU"), ood_set=OOD, metric="AUROC"),
        ),
        layout=("id_set", "N", "variant", "measure", "ood_set"),
    )


OWN_TABLES: Final = {table.label: table for table in (_near(), _label_noise(), _catalogue(), _trimmed())}
"""Tables of ours by their labels."""
BESIDE: Final = {**PAPER_TABLES, **{label: PaperTable(text, None, {}) for label, text in _DESCRIPTIONS.items()}}
"""For every table what it shows and what the paper prints, which of ours is nothing."""
