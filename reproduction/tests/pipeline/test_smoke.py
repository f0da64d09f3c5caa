"""The whole paper with real networks on small data: every table, every figure, every method, trained here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from credalens_paper.pipeline import engines
from credalens_paper.pipeline.engines import TorchEngine
from credalens_paper.pipeline.measure_entries import reproduce
from credalens_paper.training.spec import TrainSpec
from reproduction.tests.tiny_preset import TINY


def test_every_method_and_backbone_was_trained(smoke_run):
    keys = {path.name for path in (smoke_run / "models").iterdir()}
    kinds = {(key.split("-")[1], key.split("-")[3]) for key in keys}
    small = {
        (backbone, method)
        for backbone in ("vgg16", "resnet18")
        for method in ("snn", "bnnr", "bnnf", "edd", "edd_fair")
    }
    text = {("mlp", method) for method in ("snn", "bnnr", "bnnf")}
    assert kinds == small | text | {(backbone, "snn") for backbone in ("resnet50", "efficientnet_b2", "vit_base")}


def test_stored_predictions_are_distributions_and_bayesian_samples_differ(smoke_run):
    for path in (smoke_run / "predictions").rglob("*.npy"):
        found = np.load(path)
        if "-edd" in path.parent.name:
            assert (found > 0).all()
        else:
            np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)
        if "-bnn" in path.parent.name:
            assert len(np.unique(found[:, 0, 0])) == len(found)


def test_a_second_run_trains_nothing(smoke_run, smoke_results, monkeypatch):
    monkeypatch.setattr(TorchEngine, "train", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(TorchEngine, "predict", lambda *_, **__: pytest.fail("predicted again"))
    again = reproduce(["OODMain", "AblationNTU"], preset=TINY, out=smoke_run.parent, engine=TorchEngine(device="cpu"))
    for result in again.results:
        cells = {cell.keys: cell for cell in smoke_results[result.label].cells}
        assert all(replace(cell, substitutes={}) == replace(cells[cell.keys], substitutes={}) for cell in result.cells)


def test_weights_of_another_schedule_are_refused(smoke_run, monkeypatch):
    from credalens_paper.training.spec import schedule_for

    spec = TrainSpec("digits", "resnet18", "snn", 0, "smoke", 10, width=TINY.width, image_size=8)
    engine, models = TorchEngine(device="cpu"), smoke_run / "models"
    assert engine.trained(spec, models)
    other = schedule_for(spec, epochs=5)
    monkeypatch.setattr(engines, "schedule_for", lambda spec: other)
    with pytest.raises(ValueError, match=r"other settings: .*epochs was 2 and is now 5"):
        engine.trained(spec, models)


def test_at_least_one_network_is_trained_at_a_time():
    with pytest.raises(ValueError, match="side_by_side=0"):
        TorchEngine(side_by_side=0)
