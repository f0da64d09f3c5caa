"""Small reproductions with networks that need no training, for tests."""

from __future__ import annotations

from dataclasses import replace

from tests.paper.fake_engine import FakeEngine

from credalens.paper.experiments import CellKey
from credalens.paper.presets import get_preset
from credalens.paper.reproduce import reproduce
from credalens.paper.reproduce_evaluate import Evaluator
from credalens.paper.reproduce_images import Images
from credalens.paper.reproduce_models import Models
from credalens.paper.reproduce_work import Workbench
from credalens.paper.store import Store

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
