"""Predictions of trained networks: class distributions of members and samples, concentrations of students."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from credalens.bayes import BayesianLayer, use_generator
from credalens_paper.backbones import build_backbone
from credalens_paper.data import normalization
from credalens_paper.training.device_images import Normalization, check_images, on_device
from credalens_paper.training.devices import compile_network, find_device, find_precision, mixed, placed
from credalens_paper.training.losses import concentration, expected_probability
from credalens_paper.training.network_folder import load_model
from credalens_paper.training.spec import TrainSpec

PIXELS: Final = {"cuda": 2**21, "cpu": 2**18}
"""Pixels in a batch: as many as keep a device busy without filling its memory."""


def predict_images(
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
    concentrations: bool = False,
) -> NDArray[np.float32]:
    """Class distributions (samples, n, classes) of images (n, h, w, 3) of bytes, the softmax in float32.

    A standard network is one member. Each sample of a Bayesian one draws its weights anew, all from ``seed`` and batch by
    batch. Of a distilled one (EDD, EDD-Fair) these are ``concentrations``. ``image_size`` resizes the images for the network,
    which is moved to ``device`` and left in evaluation mode. ``compile`` fuses the batches of a Bayesian network, all of one
    size, whose draws are then others.

    >>> network = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> images = np.zeros((5, 8, 8, 3), np.uint8)
    >>> predict_images(network, images, mean=(0.5,) * 3, std=(0.25,) * 3).shape
    (1, 5, 10)
    """
    bayesian = any(isinstance(module, BayesianLayer) for module in model.modules())
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples!r}.")
    if samples > 1 and not bayesian:
        raise ValueError(
            f"samples={samples} of a network without Bayesian layers would all be equal; samples are for BNNR and "
            "BNNF. Predict the members of an ensemble network by network."
        )
    check_images(images)
    scale = Normalization(mean, std, find_device(device))
    with ExitStack() as draws:
        if bayesian:  # compiled code draws from torch's global generators
            draws.enter_context(torch.random.fork_rng([scale.device] if scale.device.type == "cuda" else []))
            own = None if compile else torch.Generator(scale.device).manual_seed(seed)
            draws.enter_context(use_generator(model, own))
            torch.manual_seed(seed)
        output = concentration if concentrations else partial(torch.softmax, dim=-1)
        values = _predict(model, images, output, scale, samples, image_size, precision, fused=compile and bayesian)
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(
            f"{int(bad.sum())} of {values.size} predictions are not numbers, the first at (sample, image, class) = "
            f"{first}. Has the network diverged, or is it not trained?"
        )
    return values


def predict_network(
    spec: TrainSpec, /, *, folder: Path, images: NDArray[Any], samples: int, device: str | None, precision: str
) -> NDArray[np.float32]:
    """Class distributions (members, images, classes) by a trained network out of its folder.

    A Bayesian network gives ``samples`` members, a standard one itself, a distilled one the mean of its Dirichlet.
    """
    network = load_model(spec, folder, build=build_backbone, device=device)
    mean, std = normalization(spec.data)
    options: dict[str, Any] = {"mean": mean, "std": std, "image_size": spec.image_size}
    options |= {"device": device, "precision": precision, "concentrations": spec.distilled}
    predicted = predict_images(network, images, samples=samples if spec.bayesian else 1, seed=spec.seed, **options)
    return expected_probability(torch.from_numpy(predicted)).numpy() if spec.distilled else predicted


def _predict(
    model: nn.Module,
    images: NDArray[np.uint8],
    output: Callable[[Tensor], Tensor],
    scale: Normalization,
    samples: int,
    image_size: int | None,
    precision: str,
    *,
    fused: bool,
) -> NDArray[np.float32]:
    device, precision = scale.device, find_precision(precision, scale.device)
    model = placed(model, device).eval()
    full = compile_network(model) if fused else model
    pixels = (image_size or max(images.shape[1:3])) ** 2 if images.ndim == 4 else images.shape[1]
    size = max(1, PIXELS.get(device.type, PIXELS["cpu"]) // pixels)
    batches = []
    with torch.inference_mode():
        for start in range(0, len(images), size):
            chosen = images[start : start + size]
            count, draws = len(chosen), []
            if fused:  # one shape is compiled: the last batch is filled up with black images
                chosen = np.concatenate([chosen, np.zeros((size - count, *images.shape[1:]), images.dtype)])
            x = scale(on_device(chosen, device), size=image_size)
            for _ in range(samples):
                with mixed(precision, device):
                    logits: Tensor = full(x)
                draws.append(output(logits.float())[:count].cpu().numpy())
            batches.append(np.stack(draws))
    return np.concatenate(batches, axis=1)
