"""The 17 figures: what each shows, of which models, in which panels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from credalens_paper.backbones import LARGE
from credalens_paper.experiments.keys import CellKey
from credalens_paper.experiments.names import display_name
from credalens_paper.experiments.tables import C10, C100, OOD, REDUCED, SIZES, SMALL, WRAPPED

__all__ = [
    "FIGURES",
    "BarsFigure",
    "ConceptFigure",
    "DensityFigure",
    "Panel",
    "PiaFigure",
    "SeverityFigure",
    "SimplexFigure",
]

POINTS: Final = (("Averaged probability", "classical"), ("Intersection probability", "credal"))
SCORES: Final = (("Classical", "classical"), ("Credal", "credal"))
"""Lines of a figure by their names: which point prediction, or whose uncertainty."""
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
    columns: int
    many: bool = False


@dataclass(frozen=True)
class DensityFigure:
    """Densities of EU and TU inside and outside the distribution, classical and credal."""

    label: str
    models: tuple[CellKey, ...]
    ood_sets: tuple[str, ...] = OOD


@dataclass(frozen=True)
class PiaFigure:
    """Credal EU and TU for several numbers of classes that PIA keeps."""

    label: str
    model: CellKey
    kept: tuple[int, ...] = REDUCED
    ood_sets: tuple[str, ...] = OOD


@dataclass(frozen=True)
class SimplexFigure:
    """A right, a wrong and an OOD prediction of two ensemble sizes in the triangle."""

    label: str
    models: tuple[CellKey, ...]
    many: bool = False


@dataclass(frozen=True)
class BarsFigure:
    """All members' probabilities of one test image and of its corrupted version."""

    label: str
    model: CellKey


@dataclass(frozen=True)
class ConceptFigure:
    """A drawing that needs no model: the same members, with different layers shown."""

    label: str
    panels: tuple[tuple[str, tuple[str, ...]], ...]
    members: tuple[tuple[float, ...], ...] = WEATHER
    classes: tuple[str, ...] = ("A", "B", "D")


Figure = SeverityFigure | DensityFigure | PiaFigure | SimplexFigure | BarsFigure | ConceptFigure


def _model(backbone: str, method: str = "DE", N: int | None = 5, id_set: str = C10) -> CellKey:
    return CellKey(metric="", backbone=backbone, method=method, N=N, id_set=id_set)


def _cell(model: CellKey, variant: str | None, metric: str, measure: str | None = None) -> CellKey:
    return CellKey(
        metric=metric,
        measure=measure,
        variant=variant,
        backbone=model.backbone,
        method=model.method,
        N=model.N,
        id_set=model.id_set,
        ood_set=f"{model.id_set}-c",
        J=20 if model.id_set == C100 and variant == "credal" and measure else None,
    )


def _both(model: CellKey, metric: str, measure: str | None = None) -> tuple[tuple[str, CellKey], ...]:
    names = POINTS if measure is None else SCORES
    return tuple((name, _cell(model, variant, metric, measure)) for name, variant in names)


def _small_detection(measure: str, *, edd: bool) -> Iterator[Panel]:
    """Every method in its panel, for each backbone and each metric of detection, beside EDD where it was measured."""
    for backbone, metric, method in product(SMALL, ("AUROC", "AUPRC"), WRAPPED):
        series = _both(_model(backbone, method), metric, measure)
        if edd:
            series += (("EDD", _cell(_model(backbone, "EDD", None), None, metric, measure)),)
        yield Panel(f"{display_name(backbone)}, {method}", f"{metric} (%)", series)


def _small_points(metric: str) -> tuple[Panel, ...]:
    return tuple(
        Panel(f"{display_name(backbone)}, {method}", metric, _both(_model(backbone, method), metric))
        for backbone in SMALL
        for method in WRAPPED
    )


def _large_points(metric: str) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"{display_name(id_set)}-C, {display_name(backbone)}",
            metric,
            _both(_model(backbone, id_set=id_set), metric),
        )
        for id_set in (C10, C100)
        for backbone in LARGE
    )


def _large_detection(measure: str) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            f"{display_name(id_set)}-C, {display_name(backbone)}",
            f"{metric} (%)",
            _both(_model(backbone, id_set=id_set), metric, measure),
        )
        for metric in ("AUROC", "AUPRC")
        for id_set in (C10, C100)
        for backbone in LARGE
    )


_IN_ORDER: Final[tuple[Figure, ...]] = (
    ConceptFigure("ACreNNStructure", (("Credal wrapper", ("intervals", "polygon", "points")),)),
    SeverityFigure("OODEUTUVggRes", tuple(_small_detection("EU", edd=True)), 3),
    SeverityFigure("ece_cifar10_full", _small_points("ECE"), 3),
    SeverityFigure("OODEUTUDEFull", _large_detection("EU"), 3),
    SeverityFigure("ece_cifar10_100_de", _large_points("ECE"), 3),
    SimplexFigure("OODEUTUDEFullRebuttal", (_model("resnet50", N=5), _model("resnet50", N=25)), many=True),
    SimplexFigure("OODEUTUBNNFullRebuttal", (_model("vgg16", "BNNR", 10), _model("vgg16", "BNNR", 50))),
    BarsFigure("ProbabilityPlot", _model("resnet18")),
    SeverityFigure(
        "AblationStudyEnsemble",
        tuple(Panel(f"N = {N}", "ECE", _both(_model("resnet50", N=N), "ECE")) for N in SIZES),
        3,
        many=True,
    ),
    SeverityFigure("OODTUVggRes", tuple(_small_detection("TU", edd=False)), 3),
    SeverityFigure("OODTUDEFull", _large_detection("TU"), 3),
    DensityFigure("entropy_plots_cifar10", tuple(_model(backbone) for backbone in LARGE)),
    DensityFigure("entropy_plots_cifar100", tuple(_model(backbone, id_set=C100) for backbone in LARGE)),
    SeverityFigure("nll_cifar10_full", _small_points("NLL"), 3),
    SeverityFigure("nll_cifar10_100_de", _large_points("NLL"), 3),
    PiaFigure("PIA", _model("resnet50", id_set=C100)),
    ConceptFigure(
        "Concept comparisons",
        (("Credal wrapper: probability intervals", ("intervals", "polygon")), ("Convex hull", ("hull",))),
    ),
)
FIGURES: Final[dict[str, Figure]] = {figure.label: figure for figure in _IN_ORDER}
"""All figures by their label, in the order of the paper."""
