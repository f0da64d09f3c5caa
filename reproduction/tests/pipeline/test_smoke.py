"""The whole paper with real networks on small data: every table, every figure, every method, trained here."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from credalens_paper.experiments.entries import LABELS
from credalens_paper.experiments.presets import get_preset
from credalens_paper.pipeline.engine import TorchEngine
from credalens_paper.pipeline.reproduce import reproduce
from credalens_paper.results.store import Store
from credalens_paper.training.spec import TrainSpec

SMOKE = get_preset("smoke")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One run of everything, on one thread so that tests side by side do not fight for cores."""
    folder, threads = tmp_path_factory.mktemp("smoke"), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcome = reproduce(["all"], preset="smoke", out=folder, engine=TorchEngine(device="cpu"), threads=1)
    finally:
        torch.set_num_threads(threads)
    return folder, {result.label: result for result in outcome.results}


@pytest.mark.parametrize("label", LABELS)
def test_every_label_runs(made, label):
    _, results = made
    without_gpu = label in ("DEsamples", "InferenceBNNsamples") and not torch.cuda.is_available()
    assert results[label].status == ("partly measured" if without_gpu else "measured")


def test_every_method_and_backbone_was_trained(made):
    folder, _ = made
    keys = {path.name for path in (folder / "smoke" / "models").iterdir()}
    kinds = {(key.split("-")[1], key.split("-")[3]) for key in keys}
    small = {
        (backbone, method)
        for backbone in ("vgg16", "resnet18")
        for method in ("snn", "bnnr", "bnnf", "edd", "edd_fair")
    }
    assert kinds == small | {(backbone, "snn") for backbone in ("resnet50", "efficientnet_b2", "vit_base")}


def test_stored_predictions_are_distributions_and_bayesian_samples_differ(made):
    folder, _ = made
    store = Store(folder / "smoke")
    for path in (store.folder / "predictions").rglob("*.npy"):
        found = np.load(path)
        if "-edd" in path.parent.name:
            assert (found > 0).all()
        else:
            np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)
        if "-bnn" in path.parent.name:
            assert len(np.unique(found[:, 0, 0])) == len(found)


def test_a_second_run_trains_nothing(made, monkeypatch):
    folder, results = made
    monkeypatch.setattr(TorchEngine, "train", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(TorchEngine, "predict", lambda *_, **__: pytest.fail("predicted again"))
    again = reproduce(["OODMain", "AblationNTU"], preset="smoke", out=folder, engine=TorchEngine(device="cpu"))
    for result in again.results:
        assert result.cells == results[result.label].cells


def test_how_the_networks_were_trained_is_told(made):
    _, results = made
    for kind in results["OODMain"].models:
        assert kind.schedule["epochs"] == 2
        assert kind.provenance["device"] == "cpu"
        assert kind.seconds > 0


def test_weights_of_another_schedule_are_refused(made, monkeypatch):
    folder, _ = made
    from credalens_paper.training import schedules

    spec = TrainSpec("digits", "resnet18", "snn", 0, "smoke", 10, width=SMOKE.width, image_size=8)
    engine, models = TorchEngine(device="cpu"), folder / "smoke" / "models"
    assert engine.trained(spec, models)
    other = schedules.schedule_for(spec, epochs=5)
    monkeypatch.setattr(schedules, "schedule_for", lambda spec: other)
    with pytest.raises(ValueError, match=r"other settings: .*epochs was 2 and is now 5"):
        engine.trained(spec, models)


def test_at_least_one_network_is_trained_at_a_time():
    with pytest.raises(ValueError, match="at least one network is trained at a time, got side_by_side=0"):
        TorchEngine(side_by_side=0)
