"""Tables beyond the paper's: near unknowns, noisy labels, mistakes, fine-tuning, every score, trimmed intervals, texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from credalens.core.scores import SCORES
from credalens_paper.backbones import LARGE, LITE, TEXT
from credalens_paper.experiments.cell_keys import (
    ALARM_METRICS,
    ERROR_METRICS,
    MEAN,
    SET_METRICS,
    TURNED_AWAY,
    CellKey,
    cells,
)
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperTable
from credalens_paper.experiments.preparations import PREPARATIONS, SEVEREST
from credalens_paper.experiments.tables import BOTH, C10, C100, DETECTION, OOD, PREDICTION, SMALL, WRAPPED, Table

UNCERTAINTIES: Final = ("TU", "AU", "EU")
INTENTS, OUTSIDE = "clinc150", "clinc150-oos"
MISTAKES: Final = "CorruptedMistakes"
GUARD_SCORES: Final = {
    "credal": ("total", "epistemic", "least_confidence"),
    "classical": ("mean_total", "mean_epistemic", "mean_least_confidence"),
}
"""Scores of guards, each of the credal set beside the one of averaging that it takes the place of."""
_DESCRIPTIONS: Final = {
    "NearOOD": "Accuracy, calibration and detection of near unknowns by EU, TU and GH: CIFAR-10 against CIFAR-100 and back.",
    "LabelNoise": "ResNet-18 deep ensembles trained on CIFAR-10 and on its worst human labels (CIFAR-10N): accuracy, "
    "calibration, mean uncertainty of the test images, OOD detection.",
    "FineTuned": "EfficientNet-Lite0 fine-tuned at 224 pixels from one set of ImageNet weights: members differ in the first "
    "weights of their heads, in the order and the augmentation of the images only. Accuracy, calibration, detection of far "
    "and near unknowns.",
    "ScoreCatalogue": "OOD detection by every score of the catalogue, but for the generalized Hartley measure (NearOOD).",
    "TextIntents": "Another domain: MLPs on n-grams of CLINC150's requests, 150 intents against requests outside all of them: "
    "accuracy, calibration and detection by every score of the catalogue.",
    "TrimmedText": "Trimmed intervals on CLINC150: ensembles of 10 to 25 MLPs, 10 to 1000 samples of Bayesian ones.",
    "CorruptedMistakes": "Why the paper's networks might be wrong on three in four corrupted images: the same deep ensembles "
    "with images given as in training and by mistakes, every fifth image of each set. Beside them what OODMain prints.",
    "GuardPromises": "What guards by six scores, and sets of classes, keep of their promises: fitted on random halves of the "
    "test inputs, judged on the others. Without labels at most 5 % false alarms are promised, as a mean over all halves that "
    "could be drawn: false alarms, accuracy of the intersection probability on what is accepted, unknown inputs turned away. "
    "Or, with 95 % confidence, half of the error rate that it has on all test inputs: what is accepted, the error rate left "
    "there in per cent of that rate, how many halves are above 50 (of a sound guard up to a tenth or so, since the judging "
    "half is a sample too), unknown inputs turned away. Sets promise the true class for 95 % of the inputs, by the average "
    "(LAC) and by the intersection probability: how many hold it, and their size.",
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


def _fine_tuned() -> Table:
    models = {"backbone": LITE, "method": "DE", "N": 5}
    cells = (_quality({**models, "id_set": inside}, (*OOD, near)) for inside, near in ((C10, C100), (C100, C10)))
    return Table("FineTuned", tuple(cell for part in cells for cell in part))


def _catalogue() -> Table:
    """Far and near unknowns by all scores."""
    models = {"backbone": ("resnet18", *LARGE, LITE), "method": "DE", "N": 5, "metric": "AUROC"}
    return Table(
        "ScoreCatalogue",
        tuple(
            cell
            for inside, near in ((C10, C100), (C100, C10))
            for cell in _all_scores({**models, "id_set": inside, "ood_set": (*OOD, near)})
        ),
        layout=("variant", "measure", "id_set", "backbone", "ood_set"),
    )


def _all_scores(models: Mapping[str, Any]) -> tuple[CellKey, ...]:
    """Every score of the catalogue but for the generalized Hartley measure, whose time grows with the classes."""
    return tuple(
        cell
        for name, score in SCORES.items()
        if name != "hartley"
        for cell in cells(**models, variant="classical" if score.averaging else "credal", measure=name)
    )


def _trimmed() -> Table:
    models = {"backbone": "resnet18", "method": "DE", "N": (5, 10, 15), "id_set": (C10, C100)}
    layout = ("id_set", "N", "variant", "measure", "ood_set")
    return Table("TrimmedIntervals", _trimmed_cells(models, OOD), layout=layout)


def _trimmed_cells(models: Mapping[str, Any], ood_sets: str | tuple[str, ...]) -> tuple[CellKey, ...]:
    models = {**models, "variant": (*BOTH, "trim5", "trim10", "trim20")}
    return (
        *cells(**models, metric=(*PREDICTION, "NLL")),
        *cells(**models, measure=("EU", "TU"), ood_set=ood_sets, metric="AUROC"),
    )


def _text() -> Table:
    models = {"backbone": TEXT, "method": WRAPPED, "N": 5, "id_set": INTENTS}
    return Table(
        "TextIntents",
        (
            *cells(**models, variant=BOTH, metric=(*PREDICTION, "NLL")),
            *cells(**models, variant=BOTH, measure=("EU", "TU"), ood_set=OUTSIDE, metric=DETECTION),
            *_all_scores({**models, "ood_set": OUTSIDE, "metric": DETECTION}),
        ),
        layout=("variant", "measure", "ood_set", "metric", "method"),
    )


def _trimmed_text() -> Table:
    sizes = {"DE": (10, 15, 25), "BNNR": (10, 25, 100, 1000), "BNNF": (10, 25, 100)}
    return Table(
        "TrimmedText",
        tuple(
            cell
            for method, N in sizes.items()
            for cell in _trimmed_cells({"backbone": TEXT, "method": method, "N": N, "id_set": INTENTS}, OUTSIDE)
        ),
        layout=("method", "N", "variant", "measure", "ood_set"),
        many=True,
    )


def _mistakes() -> Table:
    models = {"backbone": SMALL, "method": "DE", "variant": BOTH, "N": 5, "id_set": C10, "ood_set": "cifar10-c"}
    images = {**models, "preparation": tuple(PREPARATIONS)}
    clean = tuple(name for name in PREPARATIONS if name != SEVEREST)
    return Table(
        MISTAKES,
        (
            *cells(**images, metric=PREDICTION),
            *cells(**{**models, "ood_set": None, "preparation": clean}, metric=PREDICTION),
        ),
        layout=("backbone", "ood_set", "metric", "preparation"),
    )


def _guards() -> Table:
    images = {"backbone": ("resnet18", *LARGE, LITE), "method": "DE", "N": 5}
    kinds = (
        ({**images, "id_set": C10}, (*OOD, C100)),
        ({**images, "id_set": C100}, (*OOD, C10)),
        ({**images, "backbone": "resnet18", "id_set": "cifar10n"}, (*OOD, C100)),
        ({**images, "backbone": TEXT, "id_set": INTENTS}, (OUTSIDE,)),
    )
    return Table(
        "GuardPromises",
        tuple(
            cell
            for models, ood_sets in kinds
            for variant, scores in GUARD_SCORES.items()
            for cell in (
                *cells(**models, variant=variant, measure=scores, metric=(*ALARM_METRICS, *ERROR_METRICS)),
                *cells(**models, variant=variant, measure=scores, ood_set=ood_sets, metric=TURNED_AWAY),
                *cells(**models, variant=variant, metric=SET_METRICS),
            )
        ),
        layout=("id_set", "backbone", "variant", "measure", "ood_set", "metric"),
    )


def _paper_table(table: Table) -> PaperTable:
    """What the paper prints beside a table of ours: numbers of the same cells, however the images were given."""
    printed = PAPER_TABLES["OODMain"] if table.label == MISTAKES else PaperTable("", None, {})
    keys = {cell: replace(cell, preparation=None) for cell in table.cells}
    beside = {cell: printed.cells[key] for cell, key in keys.items() if key in printed.cells}
    return PaperTable(_DESCRIPTIONS[table.label], printed.runs, beside)


OWN_TABLES: Final = {
    table.label: table
    for table in (
        _near(),
        _label_noise(),
        _mistakes(),
        _fine_tuned(),
        _catalogue(),
        _trimmed(),
        _text(),
        _trimmed_text(),
        _guards(),
    )
}
"""Tables of ours by their labels."""
BESIDE: Final = {**PAPER_TABLES, **{label: _paper_table(table) for label, table in OWN_TABLES.items()}}
"""For every table what it shows and what the paper prints, which of most of ours is nothing."""
