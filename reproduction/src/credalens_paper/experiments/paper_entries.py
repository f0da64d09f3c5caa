"""The paper's 19 tables and 17 figures: which models, which sets, which measures, in which order they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from credalens_paper.backbones import LARGE
from credalens_paper.experiments.cell_keys import HIGHER, CellKey, cells, display_name

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
    detection = cells(**models, variant=BOTH, id_set=C10, measure=measure, ood_set=OOD, metric=DETECTION)
    return Table(label, detection, many=many, regime=regime)


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
TABLES: Final = {table.label: table for table in (
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
    Table("CPUcost", cells(variant=BOTH, **CPU_TIME), cells(variant=("SLSQP", "credal, batched"), **CPU_TIME),
          layout=("C", "variant", "metric")),
    _inference("DEsamples", ("model_size_mb", "cpu_ms", "gpu_ms"), ("N", "metric"),
               backbone="resnet50", method="DE", N=(5, 25)),
    _inference("InferenceBNNsamples", ("cpu_ms", "gpu_ms"), ("method", "N", "metric"),
               backbone="vgg16", method=BAYESIAN, N=(10, 50)),
    _pia("AblationPIATU", "TU"),
    Table("UndiserableEDDfair", _quality(EDD_FAIR)),
)}  # fmt: skip
"""All tables by their label, in the order of the paper."""


POINTS: Final = (("Averaged probability", "classical"), ("Intersection probability", "credal"))
SCORES: Final = (("Classical", "classical"), ("Credal", "credal"))
"""Lines of a figure by their names: which point prediction, or whose uncertainty."""
PAPER_J: Final = 20
"""Classes that the paper's figures of CIFAR-100 keep; the exact measures need no such reduction."""
WEATHER: Final = ((0.2, 0.6, 0.2), (0.1, 0.2, 0.7), (0.7, 0.1, 0.2))
"""The three forecasts of the paper's introduction: rainy, sunny, cloudy."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes: named cells, each followed over the severities of its corrupted set."""

    title: str
    metric: str
    series: tuple[tuple[str, CellKey], ...]


@dataclass(frozen=True)
class SeverityFigure:
    """Metrics against corruption severity, averaged over the corruptions."""

    label: str
    panels: tuple[Panel, ...]
    many: bool = False


@dataclass(frozen=True)
class ModelFigure:
    """Predictions of some models.

    :ivar shows: "densities" of EU and TU inside and outside the distribution, classical and credal; "pia", credal EU and TU
        for several numbers of classes that it keeps; "simplex", a right, a wrong and an OOD prediction of two ensemble sizes in
        the triangle; "bars", all members' probabilities of one test image and of its corrupted version.
    """

    label: str
    shows: str
    models: tuple[CellKey, ...]
    many: bool = False


@dataclass(frozen=True)
class ConceptFigure:
    """A drawing that needs no model: the same members, with different layers shown."""

    label: str
    panels: tuple[tuple[str, tuple[str, ...]], ...]


Figure = SeverityFigure | ModelFigure | ConceptFigure


def _model(backbone: str, method: str = "DE", N: int | None = 5, id_set: str = C10) -> CellKey:
    return CellKey(metric="", backbone=backbone, method=method, N=N, id_set=id_set)


def _both(model: CellKey, metric: str, measure: str | None = None) -> tuple[tuple[str, CellKey], ...]:
    """The classical and the credal line of a model on its corrupted test set; beside them the paper's, where it uses PIA."""
    corrupted = replace(model, metric=metric, measure=measure, ood_set=f"{model.id_set}-c")
    names = POINTS if measure is None else SCORES
    lines = tuple((name, replace(corrupted, variant=variant)) for name, variant in names)
    if measure is None or model.id_set != C100:
        return lines
    return (*lines, (f"Credal, J = {PAPER_J}", replace(corrupted, variant="credal", J=PAPER_J)))


def _panel(title: str, model: CellKey, metric: str, measure: str | None = None) -> Panel:
    return Panel(title, f"{metric} (%)" if metric in HIGHER else metric, _both(model, metric, measure))


def _small_panels(metrics: tuple[str, ...], measure: str | None = None) -> tuple[Panel, ...]:
    """Every method in its panel, for each small backbone and metric."""
    return tuple(
        _panel(f"{display_name(backbone)}, {method}", _model(backbone, method), metric, measure)
        for backbone, metric, method in product(SMALL, metrics, WRAPPED)
    )


def _large_panels(metrics: tuple[str, ...], measure: str | None = None) -> tuple[Panel, ...]:
    """Deep ensembles of the large backbones, for each metric and training set."""
    return tuple(
        _panel(f"{display_name(id_set)}-C, {display_name(backbone)}", _model(backbone, id_set=id_set), metric, measure)
        for metric, id_set, backbone in product(metrics, (C10, C100), LARGE)
    )


def _beside_edd(panel: Panel) -> Panel:
    credal = panel.series[-1][1]
    return replace(panel, series=(*panel.series, ("EDD", replace(credal, method="EDD", N=None, variant=None))))


FIGURES: Final[dict[str, Figure]] = {figure.label: figure for figure in (
    ConceptFigure("ACreNNStructure", (("Credal wrapper", ("intervals", "polygon", "points")),)),
    SeverityFigure("OODEUTUVggRes", tuple(map(_beside_edd, _small_panels(DETECTION, "EU")))),
    SeverityFigure("ece_cifar10_full", _small_panels(("ECE",))),
    SeverityFigure("OODEUTUDEFull", _large_panels(DETECTION, "EU")),
    SeverityFigure("ece_cifar10_100_de", _large_panels(("ECE",))),
    ModelFigure("OODEUTUDEFullRebuttal", "simplex", (_model("resnet50", N=5), _model("resnet50", N=25)), many=True),
    ModelFigure("OODEUTUBNNFullRebuttal", "simplex", (_model("vgg16", "BNNR", 10), _model("vgg16", "BNNR", 50))),
    ModelFigure("ProbabilityPlot", "bars", (_model("resnet18"),)),
    SeverityFigure("AblationStudyEnsemble", tuple(_panel(f"N = {N}", _model("resnet50", N=N), "ECE") for N in SIZES),
                   many=True),
    SeverityFigure("OODTUVggRes", _small_panels(DETECTION, "TU")),
    SeverityFigure("OODTUDEFull", _large_panels(DETECTION, "TU")),
    ModelFigure("entropy_plots_cifar10", "densities", tuple(_model(backbone) for backbone in LARGE)),
    ModelFigure("entropy_plots_cifar100", "densities", tuple(_model(backbone, id_set=C100) for backbone in LARGE)),
    SeverityFigure("nll_cifar10_full", _small_panels(("NLL",))),
    SeverityFigure("nll_cifar10_100_de", _large_panels(("NLL",))),
    ModelFigure("PIA", "pia", tuple(replace(_model("resnet50", id_set=C100), J=J) for J in REDUCED)),
    ConceptFigure(
        "Concept comparisons",
        (("Credal wrapper: probability intervals", ("intervals", "polygon")), ("Convex hull", ("hull",))),
    ),
)}  # fmt: skip
"""All figures by their label, in the order of the paper."""
