"""Results that were made up, cell by cell."""

from __future__ import annotations

from credalens_paper.experiments.cell_keys import CellKey, better_side
from credalens_paper.experiments.paper_numbers import PaperNumber
from credalens_paper.results.records import Cell, Difference, FigureResult, Improvement, Line, Runs, TableResult

ABOUT = {"description": "", "models": (), "status": "measured", "provenance": None}
ENSEMBLE = {"backbone": "resnet18", "method": "DE", "N": 5}


def cell(mean, paper=None, n=2, runs=(), **keys):
    ours = None if mean is None else Runs(mean, None, n, runs)
    printed = None if paper is None else PaperNumber(paper, None)
    return Cell(keys=CellKey(**keys), substitutes={}, paper=printed, ours=ours)


def table(label, *cells, improvements=()):
    lists = {"layout": (), "improvements": tuple(improvements), "solvers": (), "paper_runs": None}
    return TableResult(label=label, kind="table", cells=cells, **lists, **ABOUT)


def figure(label, *panels):
    return FigureResult(label=label, kind="figure", files=(), panels=panels, **ABOUT)


def lines(averaged, credal, *, x=(1, 5), n=(15, 15)):
    named = {"Averaged probability": averaged, "Intersection probability": credal}
    return tuple(Line(name, x, tuple(mean), (None,) * len(x), n) for name, mean in named.items())


def compared(*differences, label="T"):
    """A table of credal less classical under some keys each."""
    cells, improvements = [], []
    for mean, keys in differences:
        key = CellKey(variant="credal", **{**ENSEMBLE, "id_set": "cifar10", **keys})
        better = better_side(key.metric, mean)
        cells.append(cell(0.0, **key.as_dict()))
        ours = Difference(mean, None, 1, better == "credal", better)
        improvements.append(Improvement(keys=key, paper=None, ours=ours))
    return table(label, *cells, improvements=improvements)


def detection(mean, measure="EU", **keys):
    return mean, {"measure": measure, "metric": "AUROC", "ood_set": "svhn", **keys}


def ranked(aurocs, *, id_set="cifar10"):
    """A score's AUROCs on SVHN, Tiny-ImageNet and CIFAR-100."""
    model = {"backbone": "vgg16", "method": "DE", "id_set": id_set, "metric": "AUROC", "variant": "credal"}
    cells = (
        cell(value, measure=name, ood_set=ood_set, **model)
        for name, values in aurocs.items()
        for value, ood_set in zip(values, ("svhn", "tiny-imagenet", "cifar100"), strict=True)
    )
    return table("ScoreCatalogue", *cells)
