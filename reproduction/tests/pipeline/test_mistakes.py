"""Images given by mistake: corrupted once for all ways, few of them, and set beside the paper's numbers."""

from __future__ import annotations

import numpy as np

from credalens_paper.experiments.cell_keys import EVERY, PREPARATIONS, SEVEREST
from credalens_paper.experiments.ensembles import EvaluationSet, evaluation_sets
from credalens_paper.experiments.paper_numbers import PaperNumber
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


def test_every_way_stands_beside_the_papers_number_of_the_same_networks(smoke_results):
    cells = smoke_results["CorruptedMistakes"].cells
    keys = {"ood_set": "cifar10-c", "metric": "ACC", "variant": "classical", "backbone": "resnet18"}
    printed = {cell.keys.preparation: cell.paper for cell in cells if cell.keys.as_dict().items() >= keys.items()}
    assert printed == dict.fromkeys(PREPARATIONS, PaperNumber(26.62, 0.69))
