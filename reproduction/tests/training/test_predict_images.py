"""Predictions: float32 distributions, the same in large and small batches, samples only where weights are drawn."""

import numpy as np
import pytest
import torch
from torch import nn

from credalens.bayes import mean_network, to_bayesian
from credalens_paper.training.devices import Normalization
from credalens_paper.training.network_folder import PIXELS, predict_images
from reproduction.tests.training.tiny import STATISTICS, blobs, build

IMAGES = blobs(20).images
OPTIONS = {**STATISTICS, "device": "cpu"}


def network(**changes):
    options = {"classes": 3, "width": 1.0, "image_size": 8, "pretrained": None, "seed": 0, **changes}
    return build("convnet", **options).eval()


def logits(model, size=None):
    x = Normalization(STATISTICS["mean"], STATISTICS["std"], torch.device("cpu"))(torch.from_numpy(IMAGES), size=size)
    with torch.no_grad():
        return model.eval()(x)


def test_a_standard_network_is_one_member():
    model = network()
    probabilities = predict_images(model.train(), IMAGES, **OPTIONS)
    assert probabilities.dtype == np.float32
    assert probabilities.shape == (1, 20, 3)
    np.testing.assert_allclose(probabilities[0], logits(model).softmax(-1), rtol=1e-5)
    assert not model.training


@pytest.mark.parametrize("batch", [1, 7, 20, 1000])
def test_the_batch_does_not_matter(batch, monkeypatch):
    expected = predict_images(network(), IMAGES, **OPTIONS)
    monkeypatch.setitem(PIXELS, "cpu", 8 * 8 * batch)
    np.testing.assert_allclose(predict_images(network(), IMAGES, **OPTIONS), expected, rtol=1e-5)


def test_images_are_resized():
    probabilities = predict_images(network(), IMAGES, **OPTIONS, image_size=16)
    np.testing.assert_allclose(probabilities[0], logits(network(), size=16).softmax(-1), rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("estimator", ["reparameterization", "flipout"])
def test_samples_differ_and_come_from_the_seed(estimator, compiled, monkeypatch):
    shapes = set()
    monkeypatch.setattr(torch, "compile", lambda network, **options: lambda x: (shapes.add(len(x)), network(x))[1])
    monkeypatch.setitem(PIXELS, "cpu", 8 * 8 * 7)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    model = to_bayesian(network(), estimator=estimator)
    options = {**OPTIONS, "samples": 4, "compile": compiled}
    one, again, other = (predict_images(model, IMAGES, **options, seed=seed) for seed in (0, 0, 1))
    assert shapes == ({7} if compiled else set())  # 20 images are two batches of 7 and one of 6, which is filled up
    assert one.shape == (4, 20, 3)
    np.testing.assert_array_equal(one, again)
    assert (one != other).any(axis=(1, 2)).all()
    assert (one[1:] != one[:-1]).any(axis=(1, 2)).all()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(layer.generator is None for layer in model.modules() if hasattr(layer, "generator"))


def test_samples_surround_the_mean_network():
    model = to_bayesian(network(), initial_std=0.01)
    samples = predict_images(model, IMAGES, **OPTIONS, samples=200)
    with mean_network(model):
        (centre,) = predict_images(model, IMAGES, **OPTIONS)
    assert abs(samples.mean(0) - centre).max() < 0.02


def test_concentrations_are_exponentials():
    (alpha,) = predict_images(network(), IMAGES, **OPTIONS, concentrations=True)
    assert alpha.dtype == np.float32
    np.testing.assert_allclose(alpha, logits(network()).exp(), rtol=1e-4)


def test_bfloat16_rounds_but_the_softmax_is_float32():
    probabilities = predict_images(network(), IMAGES, **OPTIONS, precision="bfloat16")
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(probabilities, predict_images(network(), IMAGES, **OPTIONS), atol=0.02)


def test_samples_of_a_standard_network_are_refused():
    with pytest.raises(ValueError, match="samples=5 of a network without Bayesian layers"):
        predict_images(network(), IMAGES, **OPTIONS, samples=5)
    with pytest.raises(ValueError, match="samples must be at least 1"):
        predict_images(to_bayesian(network()), IMAGES, **OPTIONS, samples=0)


def test_predictions_that_are_no_numbers_are_refused():
    model = network()
    nn.init.constant_(model[-1].bias, float("nan"))
    with pytest.raises(ValueError, match=r"60 of 60 predictions are not numbers.*\(0, 0, 0\)"):
        predict_images(model, IMAGES, **OPTIONS)
    with pytest.raises(ValueError, match="concentrations"):
        predict_images(model, IMAGES, **OPTIONS, concentrations=True)


@pytest.mark.parametrize(
    ("images", "error"),
    [
        (IMAGES / 255, TypeError),
        (IMAGES[0], ValueError),
        (IMAGES[:0], ValueError),
        (IMAGES.transpose(0, 3, 1, 2), ValueError),
    ],
)
def test_bad_images_are_refused(images, error):
    with pytest.raises(error, match="images must"):
        predict_images(network(), images, **OPTIONS)
