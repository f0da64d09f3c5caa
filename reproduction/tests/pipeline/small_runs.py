"""Small reproductions with networks that need no training, for tests."""

from __future__ import annotations

from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.ensembles import ensembles
from credalens_paper.pipeline.engines import missing_predictions, predict, train
from credalens_paper.pipeline.job import Job
from credalens_paper.pipeline.measure_entries import reproduce
from credalens_paper.pipeline.plan import Workbench
from credalens_paper.pipeline.runs import Evaluator
from credalens_paper.results.store import Store
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.tiny_preset import TINY

DE = CellKey(
    metric="AUROC",
    backbone="resnet18",
    method="DE",
    N=5,
    id_set="cifar10",
    variant="credal",
    measure="EU",
    ood_set="svhn",
)


def workbench(folder, *, preset=TINY, engine=None):
    job = Job(Store(folder), preset, None, engine or FakeEngine(), log=lambda line: None)
    return Workbench(job, Evaluator(job))


def first_ensemble(cell, preset=TINY):
    return ensembles(cell, preset, pool=preset.members)[0]


def make_predictions(work, ensemble, *sets):
    missing = missing_predictions(work.job, [(ensemble, sets)])
    train(work.job, missing)
    predict(work.job, missing)


def run(folder, *labels, engine, preset=TINY, **options):
    return reproduce(labels, preset=preset, out=folder, engine=engine, **options)
