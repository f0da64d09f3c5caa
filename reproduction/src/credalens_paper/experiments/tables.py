"""The 19 tables: which models, which sets, which measures, in which order they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credalens_paper.experiments.keys import CellKey, cells

__all__ = ["TABLES", "Table"]

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

    @property
    def is_cost(self) -> bool:
        """Whether the table is about time and size: nothing is trained for it."""
        return all(cell.id_set is None for cell in self.cells)


def _main() -> Table:
    wrapped = {"backbone": SMALL, "method": WRAPPED, "variant": BOTH, "N": 5, "id_set": C10}
    edd = {"backbone": SMALL, "method": "EDD", "id_set": C10}
    printed = tuple(
        cell
        for models in (wrapped, edd)
        for cell in (
            *cells(**models, metric=PREDICTION),
            *cells(**models, ood_set="cifar10-c", metric=PREDICTION),
            *cells(**models, measure="EU", ood_set=OOD, metric=DETECTION),
        )
    )
    extra = (
        *cells(**wrapped, metric="NLL"),
        *cells(**wrapped, ood_set="cifar10-c", metric="NLL"),
        *cells(**wrapped, measure="EU", ood_set="cifar10-c", metric=DETECTION),
    )
    return Table("OODMain", printed, extra)


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


def _hartley() -> Table:
    models = {"backbone": "vgg16", "method": WRAPPED, "N": 5, "id_set": C10, "ood_set": OOD, "metric": DETECTION}
    printed = cells(**models, variant="classical", measure="EU") + cells(**models, variant="credal", measure="GH")
    return Table("GHComparison", printed, cells(**models, variant="credal", measure="EU"))


def _thousand() -> Table:
    models = {"backbone": "resnet18", "method": "BNNR", "variant": BOTH, "N": 1000, "id_set": C10}
    return Table(
        "1000samplesBNNREU",
        (*cells(**models, metric=PREDICTION), *cells(**models, measure="EU", ood_set=OOD, metric=DETECTION)),
        cells(**models, metric="NLL"),
    )


def _edd_fair() -> Table:
    models = {"backbone": SMALL, "method": "EDD-Fair", "id_set": C10}
    return Table(
        "UndiserableEDDfair",
        (*cells(**models, metric=PREDICTION), *cells(**models, measure="EU", ood_set=OOD, metric=DETECTION)),
    )


def _cpu_cost() -> Table:
    sizes = (3, 10, 20, 100)
    extra = cells(variant=("SLSQP", "credal, batched"), C=sizes, metric="time_ms")
    return Table("CPUcost", cells(variant=BOTH, C=sizes, metric="time_ms"), extra, layout=("C", "variant", "metric"))


def _de_cost() -> Table:
    models = {"backbone": "resnet50", "method": "DE", "N": (5, 25)}
    return Table(
        "DEsamples",
        cells(**models, metric=("model_size_mb", "cpu_ms", "gpu_ms")),
        cells(**models, metric="uncertainty_ms"),
        layout=("N", "metric"),
    )


def _bnn_cost() -> Table:
    models = {"backbone": "vgg16", "method": BAYESIAN, "N": (10, 50)}
    return Table(
        "InferenceBNNsamples",
        cells(**models, metric=("cpu_ms", "gpu_ms")),
        cells(**models, metric="uncertainty_ms"),
        layout=("method", "N", "metric"),
    )


_IN_ORDER: Final = (
    _main(),
    _large("AblationPreTrain", "resnet50", "EU", imagenet=True),
    _large("AblationBackbones", ("efficientnet_b2", "vit_base"), "EU", imagenet=False),
    _pia("AblationPIA", "EU"),
    _detection("AblationNEUAPP", backbone="resnet50", method="DE", N=SIZES, measure="EU", many=True),
    _detection("ablation BNNsVGG16EU", backbone="vgg16", method=BAYESIAN, N=(10, 50), measure="EU"),
    _thousand(),
    _hartley(),
    _detection("OODMainTU", backbone=("resnet18", "vgg16"), method=WRAPPED, N=5, measure="TU"),
    _large("AblationPreTrainTU", "resnet50", "TU", imagenet=True),
    _large("AblationBackbonesTU", ("efficientnet_b2", "vit_base"), "TU", imagenet=False),
    _detection("AblationNTU", backbone="resnet50", method="DE", N=SIZES, measure="TU", many=True),
    _detection("AblationBNNs", backbone=SMALL, method=BAYESIAN, N=(10, 50), measure=("EU", "TU")),
    _detection("Overconfident", backbone="resnet50", method="DE", N=5, measure=("EU", "TU"), regime="overconfident"),
    _cpu_cost(),
    _de_cost(),
    _bnn_cost(),
    _pia("AblationPIATU", "TU"),
    _edd_fair(),
)
TABLES: Final = {table.label: table for table in _IN_ORDER}
"""All tables by their label, in the order of the paper."""
