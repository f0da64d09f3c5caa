"""Predictions of trained networks: class distributions of members and samples, concentrations of students."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from credalens.bayes import BayesianLayer, use_generator
from credalens_paper.training.devices import find_device, find_precision, mixed, placed
from credalens_paper.training.dirichlet import concentration
from credalens_paper.training.images import Normalization, check_images, on_device


def predict_members(
    model: nn.Module,
    images: NDArray[np.uint8],
    /,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    samples: int = 1,
    batch: int | None = None,
    image_size: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "auto",
    seed: int = 0,
) -> NDArray[np.float32]:
    """Class distributions (samples, n, classes) of images (n, h, w, 3) of bytes, the softmax in float32.

    A standard network is one member. Each sample of a Bayesian one draws its weights anew, all from ``seed``; the
    draws are made batch by batch, so they depend on ``batch`` too. ``image_size`` resizes the images for the
    network, which is moved to ``device`` and left in evaluation mode.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> images = np.zeros((5, 8, 8, 3), np.uint8)
    >>> predict_members(network, images, mean=(0.5,) * 3, std=(0.25,) * 3).shape
    (1, 5, 10)
    """
    bayesian = any(isinstance(module, BayesianLayer) for module in model.modules())
    _check_samples(samples, bayesian)
    place = find_device(device)
    generator = torch.Generator(place).manual_seed(seed)
    with use_generator(model, generator) if bayesian else nullcontext():
        return _predictions(
            model,
            images,
            lambda logits: logits.softmax(-1),
            Normalization(mean, std, place),
            samples=samples,
            batch=batch,
            image_size=image_size,
            precision=find_precision(precision, place),
        )


def predict_concentrations(
    model: nn.Module,
    images: NDArray[np.uint8],
    /,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    batch: int | None = None,
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
    place = find_device(device)
    return _predictions(
        model,
        images,
        concentration,
        Normalization(mean, std, place),
        samples=1,
        batch=batch,
        image_size=image_size,
        precision=find_precision(precision, place),
    )[0]


def _predictions(
    model: nn.Module,
    images: NDArray[np.uint8],
    output: Callable[[Tensor], Tensor],
    scale: Normalization,
    *,
    samples: int,
    batch: int | None,
    image_size: int | None,
    precision: str,
) -> NDArray[np.float32]:
    check_images(images)
    size = batch or _batch(image_size or max(images.shape[1:3]), scale.device)
    model = placed(model, scale.device).eval()
    parts = []
    with torch.inference_mode():
        for start in range(0, len(images), size):
            x = scale(on_device(images[start : start + size], scale.device), size=image_size)
            draws = [_on_host(output(_logits(model, x, precision))) for _ in range(samples)]
            parts.append(np.stack(draws))
    return _finite(np.concatenate(parts, axis=1))


def _logits(model: nn.Module, x: Tensor, precision: str) -> Tensor:
    with mixed(precision, x.device):
        logits: Tensor = model(x)
    return logits.float()


def _on_host(values: Tensor) -> NDArray[np.float32]:
    return values.cpu().numpy()


def _batch(side: int, device: torch.device) -> int:
    """As many pixels as keep the device busy without filling its memory."""
    pixels = 2**21 if device.type == "cuda" else 2**18
    return max(1, pixels // side**2)


def _check_samples(samples: int, bayesian: bool) -> None:
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples!r}.")
    if samples > 1 and not bayesian:
        raise ValueError(
            f"samples={samples} of a network without Bayesian layers would all be equal; samples are for BNNR and "
            "BNNF. Members of an ensemble are predicted one by one."
        )


def _finite(values: NDArray[np.float32]) -> NDArray[np.float32]:
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(
            f"{int(bad.sum())} of {values.size} predictions are not numbers, the first at (sample, image, class) = "
            f"{first}. Has the network diverged, or is it not trained?"
        )
    return values
