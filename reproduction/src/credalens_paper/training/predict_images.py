"""Predictions of trained networks: class distributions of members and samples, concentrations of students."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from credalens.bayes import BayesianLayer, use_generator
from credalens_paper.training.device_images import Normalization, check_images, on_device
from credalens_paper.training.devices import compile_network, find_device, find_precision, mixed, placed
from credalens_paper.training.dirichlet import concentration

PIXELS: Final = {"cuda": 2**21, "cpu": 2**18}
"""Pixels in a batch: as many as keep a device busy without filling its memory."""


def predict_members(
    model: nn.Module,
    images: NDArray[np.uint8],
    /,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    samples: int = 1,
    image_size: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "auto",
    seed: int = 0,
    compile: bool = False,  # noqa: A002  (torch's word for it)
) -> NDArray[np.float32]:
    """Class distributions (samples, n, classes) of images (n, h, w, 3) of bytes, the softmax in float32.

    A standard network is one member. Each sample of a Bayesian one draws its weights anew, all from ``seed`` and batch by
    batch. ``image_size`` resizes the images for the network, which is moved to ``device`` and left in evaluation mode.
    ``compile`` fuses the batches of a Bayesian network, all of one size, whose draws are then others.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> images = np.zeros((5, 8, 8, 3), np.uint8)
    >>> predict_members(network, images, mean=(0.5,) * 3, std=(0.25,) * 3).shape
    (1, 5, 10)
    """
    bayesian = any(isinstance(module, BayesianLayer) for module in model.modules())
    _check_samples(samples, bayesian)
    scale = Normalization(mean, std, find_device(device))
    fused = compile and bayesian
    with _drawing(model, seed, scale.device, fused) if bayesian else nullcontext():
        return _predict(model, images, _softmax, scale, samples, image_size, precision, fused)


def predict_concentrations(
    model: nn.Module,
    images: NDArray[np.uint8],
    /,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    image_size: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "auto",
) -> NDArray[np.float32]:
    """Dirichlet concentrations (n, classes) that a distilled network (EDD, EDD-Fair) gives images of bytes.

    >>> student = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> images = np.zeros((5, 8, 8, 3), np.uint8)
    >>> bool((predict_concentrations(student, images, mean=(0.5,) * 3, std=(0.25,) * 3) > 0).all())
    True
    """
    scale = Normalization(mean, std, find_device(device))
    return _predict(model, images, concentration, scale, 1, image_size, precision)[0]


def _predict(
    model: nn.Module,
    images: NDArray[np.uint8],
    output: Callable[[Tensor], Tensor],
    scale: Normalization,
    samples: int,
    image_size: int | None,
    precision: str,
    fused: bool = False,
) -> NDArray[np.float32]:
    check_images(images)
    device, precision = scale.device, find_precision(precision, scale.device)
    model = placed(model, device).eval()
    full = compile_network(model) if fused else model
    pixels = (image_size or max(images.shape[1:3])) ** 2 if images.ndim == 4 else images.shape[1]
    size = max(1, PIXELS.get(device.type, PIXELS["cpu"]) // pixels)
    batches = []
    with torch.inference_mode():
        for start in range(0, len(images), size):
            chosen = images[start : start + size]
            count = len(chosen)
            if fused:  # one shape is compiled: the last batch is filled up with black images
                chosen = _filled(chosen, size)
            x = scale(on_device(chosen, device), size=image_size)
            draws = [output(_logits(full, x, precision))[:count].cpu().numpy() for _ in range(samples)]
            batches.append(np.stack(draws))
    return _check_finite(np.concatenate(batches, axis=1))


def _filled(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    return np.concatenate([images, np.zeros((size - len(images), *images.shape[1:]), images.dtype)])


@contextmanager
def _drawing(model: nn.Module, seed: int, device: torch.device, fused: bool) -> Iterator[None]:
    """Let the samples depend on the seed alone; compiled code draws from torch's global generators."""
    own = None if fused else torch.Generator(device).manual_seed(seed)
    with use_generator(model, own), torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _logits(model: nn.Module, x: Tensor, precision: str) -> Tensor:
    with mixed(precision, x.device):
        logits: Tensor = model(x)
    return logits.float()


def _softmax(logits: Tensor) -> Tensor:
    return logits.softmax(-1)


def _check_samples(samples: int, bayesian: bool) -> None:
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples!r}.")
    if samples > 1 and not bayesian:
        raise ValueError(
            f"samples={samples} of a network without Bayesian layers would all be equal; samples are for BNNR and "
            "BNNF. Predict the members of an ensemble network by network."
        )


def _check_finite(values: NDArray[np.float32]) -> NDArray[np.float32]:
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(
            f"{int(bad.sum())} of {values.size} predictions are not numbers, the first at (sample, image, class) = "
            f"{first}. Has the network diverged, or is it not trained?"
        )
    return values
