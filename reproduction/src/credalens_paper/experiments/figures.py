"""The 17 figures: what each shows, of which models, in which panels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from credalens_paper.backbones import LARGE
from credalens_paper.experiments.cell_keys import HIGHER, CellKey, display_name
from credalens_paper.experiments.tables import C10, C100, DETECTION, REDUCED, SIZES, SMALL, WRAPPED

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


def _small(metrics: tuple[str, ...], measure: str | None = None) -> tuple[Panel, ...]:
    """Every method in its panel, for each small backbone and metric."""
    return tuple(
        _panel(f"{display_name(backbone)}, {method}", _model(backbone, method), metric, measure)
        for backbone, metric, method in product(SMALL, metrics, WRAPPED)
    )


def _large(metrics: tuple[str, ...], measure: str | None = None) -> tuple[Panel, ...]:
    """Deep ensembles of the large backbones, for each metric and training set."""
    return tuple(
        _panel(f"{display_name(id_set)}-C, {display_name(backbone)}", _model(backbone, id_set=id_set), metric, measure)
        for metric, id_set, backbone in product(metrics, (C10, C100), LARGE)
    )


def _beside_edd(panel: Panel) -> Panel:
    credal = panel.series[-1][1]
    return replace(panel, series=(*panel.series, ("EDD", replace(credal, method="EDD", N=None, variant=None))))


_IN_ORDER: Final[tuple[Figure, ...]] = (
    ConceptFigure("ACreNNStructure", (("Credal wrapper", ("intervals", "polygon", "points")),)),
    SeverityFigure("OODEUTUVggRes", tuple(map(_beside_edd, _small(DETECTION, "EU")))),
    SeverityFigure("ece_cifar10_full", _small(("ECE",))),
    SeverityFigure("OODEUTUDEFull", _large(DETECTION, "EU")),
    SeverityFigure("ece_cifar10_100_de", _large(("ECE",))),
    ModelFigure("OODEUTUDEFullRebuttal", "simplex", (_model("resnet50", N=5), _model("resnet50", N=25)), many=True),
    ModelFigure("OODEUTUBNNFullRebuttal", "simplex", (_model("vgg16", "BNNR", 10), _model("vgg16", "BNNR", 50))),
    ModelFigure("ProbabilityPlot", "bars", (_model("resnet18"),)),
    SeverityFigure(
        "AblationStudyEnsemble",
        tuple(_panel(f"N = {N}", _model("resnet50", N=N), "ECE") for N in SIZES),
        many=True,
    ),
    SeverityFigure("OODTUVggRes", _small(DETECTION, "TU")),
    SeverityFigure("OODTUDEFull", _large(DETECTION, "TU")),
    ModelFigure("entropy_plots_cifar10", "densities", tuple(_model(backbone) for backbone in LARGE)),
    ModelFigure("entropy_plots_cifar100", "densities", tuple(_model(backbone, id_set=C100) for backbone in LARGE)),
    SeverityFigure("nll_cifar10_full", _small(("NLL",))),
    SeverityFigure("nll_cifar10_100_de", _large(("NLL",))),
    ModelFigure("PIA", "pia", tuple(replace(_model("resnet50", id_set=C100), J=J) for J in REDUCED)),
    ConceptFigure(
        "Concept comparisons",
        (("Credal wrapper: probability intervals", ("intervals", "polygon")), ("Convex hull", ("hull",))),
    ),
)
FIGURES: Final[dict[str, Figure]] = {figure.label: figure for figure in _IN_ORDER}
"""All figures by their label, in the order of the paper."""
