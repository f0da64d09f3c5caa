"""Entries beyond the paper's.

Tables: near unknowns, noisy labels, mistakes, fine-tuning, scores, trimmed intervals, texts, guards. Numbers with intervals
over inputs, and what exactness changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from credalens.core.scores import SCORES
from credalens_paper.backbones import LARGE, LITE, TEXT
from credalens_paper.experiments.cell_keys import (
    ALARM_METRICS,
    ERROR_METRICS,
    MEAN,
    PREPARATIONS,
    SET_METRICS,
    SEVEREST,
    TURNED_AWAY,
    CellKey,
    cells,
)
from credalens_paper.experiments.paper_entries import BOTH, C10, C100, DETECTION, OOD, PREDICTION, SMALL, WRAPPED, Table
from credalens_paper.experiments.paper_numbers import PAPER_TABLES, PaperTable
from credalens_paper.experiments.presets import Preset

Cells = tuple[CellKey, ...]
UNCERTAINTIES: Final = ("TU", "AU", "EU")
INTENTS, OUTSIDE = "clinc150", "clinc150-oos"
MISTAKES: Final = "CorruptedMistakes"
SIDES: Final = {
    name: "classical" if score.averaged else "credal" for name, score in SCORES.items() if name != "hartley"
}
"""Every score of the catalogue but for the generalized Hartley measure, whose time grows with the classes."""
GUARD_SCORES: Final = {
    "credal": ("total", "epistemic", "least_confidence"),
    "classical": ("mean_total", "mean_epistemic", "mean_least_confidence"),
}
"""Scores of guards, each of the credal set beside the one of averaging that it takes the place of."""
TRIMMED: Final = (*BOTH, "trim5", "trim10", "trim20")
FIVE: Final = {"method": "DE", "N": 5}
RESNET18: Final = {**FIVE, "backbone": "resnet18"}
MISTAKEN: Final = {**FIVE, "backbone": SMALL, "variant": BOTH, "id_set": C10}
LARGER: Final = ("resnet18", *LARGE)
NEAR: Final = ((C10, C100), (C100, C10))  # training sets, each with near unknowns


def _quality(ood_sets: str | tuple[str, ...], /, **models: Any) -> Cells:
    """Accuracy, calibration and detection by EU, TU and the generalized Hartley measure."""
    detection = {"ood_set": ood_sets, "metric": DETECTION}
    return (
        *cells(**models, variant=BOTH, metric=(*PREDICTION, "NLL")),
        *cells(**models, variant=BOTH, measure=("EU", "TU"), **detection),
        *cells(**models, variant="credal", measure="GH", **detection),
    )


def _all_scores(**models: Any) -> Cells:
    return _joined(cells(**models, variant=side, measure=name) for name, side in SIDES.items())


def _trimmed(ood_sets: str | tuple[str, ...], /, **models: Any) -> Cells:
    return (
        *cells(**models, variant=TRIMMED, metric=(*PREDICTION, "NLL")),
        *cells(**models, variant=TRIMMED, measure=("EU", "TU"), ood_set=ood_sets, metric="AUROC"),
    )


def _guards(ood_sets: tuple[str, ...], /, **models: Any) -> Cells:
    return _joined(
        (
            *cells(**models, variant=variant, measure=scores, metric=(*ALARM_METRICS, *ERROR_METRICS)),
            *cells(**models, variant=variant, measure=scores, ood_set=ood_sets, metric=TURNED_AWAY),
            *cells(**models, variant=variant, metric=SET_METRICS),
        )
        for variant, scores in GUARD_SCORES.items()
    )


def _joined(parts: Iterable[Cells]) -> Cells:
    return tuple(cell for part in parts for cell in part)


OWN_TABLES: Final = {table.label: table for table in (
    Table(
        "NearOOD",
        _joined(_quality(near, **FIVE, backbone=LARGER, id_set=inside) for inside, near in NEAR),
        description="Accuracy, calibration and detection of near unknowns by EU, TU and GH: CIFAR-10 against CIFAR-100 and "
        "back.",
    ),
    Table(
        "LabelNoise",
        (
            *_quality((*OOD, C100), **RESNET18, id_set=(C10, "cifar10n")),
            *cells(**RESNET18, id_set=(C10, "cifar10n"), variant=BOTH, measure=UNCERTAINTIES, metric=MEAN),
        ),
        layout=("variant", "measure", "ood_set", "metric", "id_set"),
        description="ResNet-18 deep ensembles trained on CIFAR-10 and on its worst human labels (CIFAR-10N): accuracy, "
        "calibration, mean uncertainty of the test images, OOD detection.",
    ),
    Table(
        MISTAKES,
        (  # corrupted images given in every way, clean ones in all but the last, which is about corruptions
            *cells(**MISTAKEN, ood_set="cifar10-c", preparation=tuple(PREPARATIONS), metric=PREDICTION),
            *cells(**MISTAKEN, preparation=tuple(name for name in PREPARATIONS if name != SEVEREST), metric=PREDICTION),
        ),
        layout=("backbone", "ood_set", "metric", "preparation"),
        description="Why the paper's networks might be wrong on three in four corrupted images: the same deep ensembles with "
        "images given as in training and by mistakes, every fifth image of each set. Beside them what OODMain prints.",
    ),
    Table(
        "FineTuned",
        _joined(_quality((*OOD, near), **FIVE, backbone=LITE, id_set=inside) for inside, near in NEAR),
        description="EfficientNet-Lite0 fine-tuned at 224 pixels from one set of ImageNet weights: members differ in the "
        "first weights of their heads, in the order and the augmentation of the images only. Accuracy, calibration, detection "
        "of far and near unknowns.",
    ),
    Table(
        "ScoreCatalogue",
        _joined(
            _all_scores(**FIVE, backbone=(*LARGER, LITE), metric="AUROC", id_set=inside, ood_set=(*OOD, near))
            for inside, near in NEAR
        ),
        layout=("variant", "measure", "id_set", "backbone", "ood_set"),
        description="OOD detection by every score of the catalogue, but for the generalized Hartley measure (NearOOD).",
    ),
    Table(
        "TrimmedIntervals",
        _trimmed(OOD, backbone="resnet18", method="DE", N=(5, 10, 15), id_set=(C10, C100)),
        layout=("id_set", "N", "variant", "measure", "ood_set"),
        description="Credal sets without the most extreme 5, 10 and 20 % of the members of each class at each end.",
    ),
    Table(
        "TextIntents",
        (
            *cells(backbone=TEXT, method=WRAPPED, N=5, id_set=INTENTS, variant=BOTH, metric=(*PREDICTION, "NLL")),
            *cells(backbone=TEXT, method=WRAPPED, N=5, id_set=INTENTS, variant=BOTH, measure=("EU", "TU"),
                   ood_set=OUTSIDE, metric=DETECTION),
            *_all_scores(backbone=TEXT, method=WRAPPED, N=5, id_set=INTENTS, ood_set=OUTSIDE, metric=DETECTION),
        ),
        layout=("variant", "measure", "ood_set", "metric", "method"),
        description="Another domain: MLPs on n-grams of CLINC150's requests, 150 intents against requests outside all of them: "
        "accuracy, calibration and detection by every score of the catalogue.",
    ),
    Table(
        "TrimmedText",
        _joined(
            _trimmed(OUTSIDE, backbone=TEXT, method=method, N=N, id_set=INTENTS)
            for method, N in {"DE": (10, 15, 25), "BNNR": (10, 25, 100, 1000), "BNNF": (10, 25, 100)}.items()
        ),
        layout=("method", "N", "variant", "measure", "ood_set"),
        many=True,
        description="Trimmed intervals on CLINC150: ensembles of 10 to 25 MLPs, 10 to 1000 samples of Bayesian ones.",
    ),
    Table(
        "GuardPromises",
        (
            *_guards((*OOD, C100), **FIVE, backbone=(*LARGER, LITE), id_set=C10),
            *_guards((*OOD, C10), **FIVE, backbone=(*LARGER, LITE), id_set=C100),
            *_guards((*OOD, C100), **RESNET18, id_set="cifar10n"),
            *_guards((OUTSIDE,), **FIVE, backbone=TEXT, id_set=INTENTS),
        ),
        layout=("id_set", "backbone", "variant", "measure", "ood_set", "metric"),
        description="What guards by six scores, and sets of classes, keep of their promises: fitted on random halves of the "
        "test inputs, judged on the others. Without labels at most 5 % false alarms are promised, as a mean over "
        "all halves that could be drawn: false alarms, accuracy of the intersection probability on what is "
        "accepted, unknown inputs turned away. Or, with 95 % confidence, half of the error rate that it has on all"
        " test inputs: what is accepted, the error rate left there in per cent of that rate, how many halves are "
        "above 50 (of a sound guard up to a tenth or so, since the judging half is a sample too), unknown inputs "
        "turned away. Sets promise the true class for 95 % of the inputs, by the average (LAC) and by the "
        "intersection probability: how many hold it, and their size.",
    ),
)}  # fmt: skip
"""Tables of ours by their labels."""


def printed(table: Table, /) -> PaperTable:
    """What the paper prints of a table, or beside one of ours: numbers of the same cells, however the images were given."""
    if table.label in PAPER_TABLES:
        return PAPER_TABLES[table.label]
    beside = PAPER_TABLES["OODMain"] if table.label == MISTAKES else PaperTable("", None, {})
    keys: Mapping[CellKey, CellKey] = {cell: replace(cell, preparation=None) for cell in table.cells}
    return PaperTable(
        table.description, beside.runs, {cell: beside.cells[key] for cell, key in keys.items() if key in beside.cells}
    )


@dataclass(frozen=True)
class EstimatesEntry:
    """Numbers with intervals over inputs.

    :ivar of: "detection", the AUROC of every score of the catalogue, and of credal scores less their averaged siblings; or
        "disagreement", how uncertainty ranks images beside the entropy of people's labels, and whether intervals hold these.
    """

    label: str
    description: str
    of: str
    models: tuple[CellKey, ...]


ESTIMATES: Final = {entry.label: entry for entry in (
    EstimatesEntry(
        "TextScores",
        "CLINC150: detection of requests outside all intents by every score, with 95 % intervals over requests; credal scores "
        "less averaged ones, paired; false alarms and catches of a guard.",
        "detection",
        cells(metric="", backbone=TEXT, method=WRAPPED, N=5, id_set=INTENTS, ood_set=OUTSIDE),
    ),
    EstimatesEntry(
        "HumanDisagreement",
        "Does uncertainty know what people disagree about? Rank correlation of AU, EU and TU with the entropy of people's "
        "labels (CIFAR-10H) on clean test images, and the share of people's label distributions that the intervals hold.",
        "disagreement",
        cells(**FIVE, metric="", backbone=(*LARGER, LITE), id_set=C10),
    ),
)}  # fmt: skip
"""Entries with intervals by their labels."""
TIMES: Final = 4
"""Inputs of each set here, as a multiple of those where the solver only stands beside a table."""
SOLVER_RUNS: Final = 3
"""Ensembles of each model that the paper's solver is run on; PIA is measured on all of them."""
FEW: Final = 10  # classes up to which the solver is quick; with more of them fewer inputs are solved


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
        *((cell, (2, 3, 5, 8)) for cell in cells(**FIVE, metric="", backbone=SMALL, id_set=C10)),
        *((cell, (10, 20, 50)) for cell in cells(**FIVE, metric="", backbone="resnet50", id_set=C100)),
    ),
)
