"""The 19 tables: which models, which sets, which measures, in which order they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from credalens_paper.experiments.cell_keys import CellKey, cells

BOTH: Final = ("classical", "credal")
SMALL: Final = ("vgg16", "resnet18")
BAYESIAN: Final = ("BNNR", "BNNF")
WRAPPED: Final = (*BAYESIAN, "DE")
OOD: Final = ("svhn", "tiny-imagenet")
DETECTION: Final = ("AUROC", "AUPRC")
PREDICTION: Final = ("ACC", "ECE")
SIZES: Final = (3, 5, 10, 15, 20, 25)
REDUCED: Final = (10, 20, 100)
C10, C100 = "cifar10", "cifar100"


@dataclass(frozen=True)
class Table:
    """One table. `cells` are the paper's; `extra` are ours, shown beside them with no number of the paper.

    :ivar description: of a table of ours; what the paper's show stands with their numbers.
    :ivar layout: the keys that name a row, in this order; keys that are the same everywhere are not shown.
    :ivar many: draw deep ensembles from the larger pool of members that the ablation on N needs.
    :ivar regime: "overconfident" makes one random member of each prediction one-hot.
    """

    label: str
    cells: tuple[CellKey, ...]
    extra: tuple[CellKey, ...] = ()
    layout: tuple[str, ...] = ("backbone", "method", "N", "id_set", "ood_set", "measure", "J", "metric")
    many: bool = False
    regime: str = ""
    description: str = ""

    @property
    def is_cost(self) -> bool:
        """Whether the table is about time and size: nothing is trained for it."""
        return all(cell.id_set is None for cell in self.cells)


def _quality(models: Mapping[str, Any], *, corrupted: bool = False) -> tuple[CellKey, ...]:
    """Accuracy and ECE, on corrupted images too where asked for, and OOD detection by EU."""
    return (
        *cells(**models, metric=PREDICTION),
        *(cells(**models, ood_set="cifar10-c", metric=PREDICTION) if corrupted else ()),
        *cells(**models, measure="EU", ood_set=OOD, metric=DETECTION),
    )


def _main(label: str) -> Table:
    wrapped = {"backbone": SMALL, "method": WRAPPED, "variant": BOTH, "N": 5, "id_set": C10}
    edd = {"backbone": SMALL, "method": "EDD", "id_set": C10}
    extra = (
        *cells(**wrapped, metric="NLL"),
        *cells(**wrapped, ood_set="cifar10-c", metric="NLL"),
        *cells(**wrapped, measure="EU", ood_set="cifar10-c", metric=DETECTION),
    )
    return Table(label, (*_quality(wrapped, corrupted=True), *_quality(edd, corrupted=True)), extra)


def _large(label: str, backbone: str | tuple[str, ...], measure: str, *, imagenet: bool) -> Table:
    """Deep ensembles on the large backbones; the paper reduces the classes of CIFAR100 and ImageNet by PIA.

    Exact measures need no reduction: they are the extra cells.
    """
    models = {"backbone": backbone, "method": "DE", "N": 5, "measure": measure, "metric": DETECTION}
    printed = [
        *cells(**models, variant=BOTH, id_set=C10, ood_set=OOD),
        *cells(**models, variant="classical", id_set=C100, ood_set=OOD),
        *cells(**models, variant="credal", J=20, id_set=C100, ood_set=OOD),
    ]
    extra = cells(**models, variant="credal", id_set=C100, ood_set=OOD)
    if imagenet:
        extra += cells(**models, variant="credal", id_set="imagenet", ood_set="imagenet-o")
        printed += cells(**models, variant="classical", id_set="imagenet", ood_set="imagenet-o")
        printed += cells(**models, variant="credal", J=50, id_set="imagenet", ood_set="imagenet-o")
    return Table(label, tuple(printed), extra)


def _detection(
    label: str, /, *, measure: str | tuple[str, ...], many: bool = False, regime: str = "", **models: object
) -> Table:
    return Table(
        label,
        cells(**models, variant=BOTH, id_set=C10, measure=measure, ood_set=OOD, metric=DETECTION),
        many=many,
        regime=regime,
    )


def _pia(label: str, measure: str) -> Table:
    models = {"backbone": "resnet50", "method": "DE", "variant": "credal", "N": 5, "J": REDUCED, "id_set": C100}
    printed = cells(**models, measure=measure, ood_set=OOD, metric=DETECTION)
    if measure == "EU":
        printed += cells(**models, metric="time_ms")
    return Table(label, printed, layout=("J", "ood_set", "measure", "metric"))


def _hartley(label: str) -> Table:
    models = {"backbone": "vgg16", "method": WRAPPED, "N": 5, "id_set": C10, "ood_set": OOD, "metric": DETECTION}
    printed = cells(**models, variant="classical", measure="EU") + cells(**models, variant="credal", measure="GH")
    return Table(label, printed, cells(**models, variant="credal", measure="EU"))


def _inference(label: str, metrics: tuple[str, ...], layout: tuple[str, ...], /, **models: object) -> Table:
    return Table(label, cells(**models, metric=metrics), cells(**models, metric="uncertainty_ms"), layout=layout)


THOUSAND: Final = {"backbone": "resnet18", "method": "BNNR", "variant": BOTH, "N": 1000, "id_set": C10}
EDD_FAIR: Final = {"backbone": SMALL, "method": "EDD-Fair", "id_set": C10}
CPU_TIME: Final = {"C": (3, 10, 20, 100), "metric": "time_ms"}
_IN_ORDER: Final = (
    _main("OODMain"),
    _large("AblationPreTrain", "resnet50", "EU", imagenet=True),
    _large("AblationBackbones", ("efficientnet_b2", "vit_base"), "EU", imagenet=False),
    _pia("AblationPIA", "EU"),
    _detection("AblationNEUAPP", backbone="resnet50", method="DE", N=SIZES, measure="EU", many=True),
    _detection("ablation BNNsVGG16EU", backbone="vgg16", method=BAYESIAN, N=(10, 50), measure="EU"),
    Table("1000samplesBNNREU", _quality(THOUSAND), cells(**THOUSAND, metric="NLL")),
    _hartley("GHComparison"),
    _detection("OODMainTU", backbone=("resnet18", "vgg16"), method=WRAPPED, N=5, measure="TU"),
    _large("AblationPreTrainTU", "resnet50", "TU", imagenet=True),
    _large("AblationBackbonesTU", ("efficientnet_b2", "vit_base"), "TU", imagenet=False),
    _detection("AblationNTU", backbone="resnet50", method="DE", N=SIZES, measure="TU", many=True),
    _detection("AblationBNNs", backbone=SMALL, method=BAYESIAN, N=(10, 50), measure=("EU", "TU")),
    _detection("Overconfident", backbone="resnet50", method="DE", N=5, measure=("EU", "TU"), regime="overconfident"),
    Table(
        "CPUcost",
        cells(variant=BOTH, **CPU_TIME),
        cells(variant=("SLSQP", "credal, batched"), **CPU_TIME),
        layout=("C", "variant", "metric"),
    ),
    _inference(
        "DEsamples", ("model_size_mb", "cpu_ms", "gpu_ms"), ("N", "metric"), backbone="resnet50", method="DE", N=(5, 25)
    ),
    _inference(
        "InferenceBNNsamples",
        ("cpu_ms", "gpu_ms"),
        ("method", "N", "metric"),
        backbone="vgg16",
        method=BAYESIAN,
        N=(10, 50),
    ),
    _pia("AblationPIATU", "TU"),
    Table("UndiserableEDDfair", _quality(EDD_FAIR)),
)
TABLES: Final = {table.label: table for table in _IN_ORDER}
"""All tables by their label, in the order of the paper."""
