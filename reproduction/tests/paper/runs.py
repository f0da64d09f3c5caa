"""Small reproductions with networks that need no training, for tests."""

from __future__ import annotations

from dataclasses import replace

from credalens_paper.experiments.cells import CellKey
from credalens_paper.experiments.presets import get_preset
from credalens_paper.pipeline.evaluate import Evaluator
from credalens_paper.pipeline.images import Images
from credalens_paper.pipeline.models import Models
from credalens_paper.pipeline.reproduce import reproduce
from credalens_paper.pipeline.work import Workbench
from credalens_paper.results.store import Store
from reproduction.tests.paper.fake_engine import FakeEngine

SMOKE = replace(get_preset("smoke"), test_images=40)
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


def workbench(folder, *, preset=SMOKE, engine=None):
    store = Store(folder)
    models = Models(store, preset, Images(store, preset, None), engine or FakeEngine(), log=lambda line: None)
    return Workbench(models, Evaluator(models))


def run(folder, *labels, engine, preset=SMOKE, **options):
    return reproduce(labels, preset=preset, out=folder, engine=engine, **options)
