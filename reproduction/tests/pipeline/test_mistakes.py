"""Images given by mistake: corrupted once for all ways, few of them, and evaluated from what is stored."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from credalens_paper.experiments.ensembles import EvaluationSet, evaluation_sets
from credalens_paper.experiments.preparations import EVERY, PREPARATIONS, SEVEREST
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run
from reproduction.tests.tiny_preset import TINY

SETS = len(TINY.corruptions) * len(TINY.severities)


def test_corrupted_images_are_shared_by_all_ways_to_give_them(smoke_run):
    shared = list((smoke_run / "images").glob("digits-c.*.trained.*.npy"))
    assert len(shared) == SETS
    whole = np.load(smoke_run / "images" / "digits-c.contrast.5.8.npy")
    fifth = np.load(smoke_run / "images" / "digits-c.contrast.5.trained.8.npy")
    np.testing.assert_array_equal(fifth, whole[::EVERY])  # contrast draws no random numbers


def test_networks_see_another_image_by_every_mistake(smoke_run):
    (folder, *_) = (smoke_run / "predictions").glob("digits-resnet18-*-snn-*")
    given = {
        name: np.load(folder / f"digits-c.gaussian_noise.1.{name}.npy") for name in PREPARATIONS if name != SEVEREST
    }
    assert {values.shape for values in given.values()} == {(1, TINY.test_images // EVERY, 10)}
    assert len({values.tobytes() for values in given.values()}) == len(given)
    assert not list(folder.glob(f"*{SEVEREST}*"))


def test_the_severest_corruptions_are_an_average_over_fewer_sets():
    sets = evaluation_sets("cifar10-c", TINY, preparation=SEVEREST)
    assert {images.severity for images in sets} == {5}
    assert set(sets) < set(evaluation_sets("cifar10-c", TINY, preparation="trained"))
    assert EvaluationSet("cifar10-c", "fog", 3).rows == slice(None)


@pytest.mark.usefixtures("hurry")
def test_numbers_are_enough_without_predictions_and_networks(tmp_path):
    little = replace(TINY, corruptions=("contrast",), severities=(5,))
    (result,) = run(tmp_path, "CorruptedMistakes", engine=FakeEngine(), preset=little).results
    assert result.status == "measured"
    for kind in ("predictions", "models", "images"):
        shutil.rmtree(tmp_path / "smoke" / kind)
    again = FakeEngine()
    (second,) = run(tmp_path, "CorruptedMistakes", engine=again, preset=little).results
    assert (again.trainings, again.predictions) == ([], [])
    assert second.cells == result.cells
    wrong = {"ood_set": "cifar10-c", "metric": "ACC", "variant": "classical", "backbone": "resnet18"}
    (swapped,) = (
        cell for cell in result.cells if cell.keys.as_dict().items() >= {**wrong, "preparation": "swapped"}.items()
    )
    assert swapped.paper.mean == 26.62
