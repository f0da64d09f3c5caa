"""Images where the network is: bytes that stay on the device, augmented and normalised there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

ROOM: Final = 0.5
"""The share of a GPU's free memory that the images may take; larger sets stay on the host."""

_SAMPLED: Final = 1024  # images that enter the fingerprint


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Images (n, h, w, 3) of bytes, labels (n,), and mean and deviation of the channels on the scale [0, 1].

    Features (n, size) of texts in float32 may stand in their place, and are neither augmented nor normalised.

    ``images`` may be a memory map: sets that do not fit on the device are read batch by batch.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    mean: Sequence[float]
    std: Sequence[float]

    def __post_init__(self) -> None:
        check_images(self.images)
        check_statistics(self.mean, self.std)
        labels, count = self.labels, len(self.images)
        if not isinstance(labels, np.ndarray) or labels.dtype != np.int64 or labels.shape != (count,):
            is_array = isinstance(labels, np.ndarray)
            got = f"{labels.dtype} of shape {labels.shape}" if is_array else type(labels).__name__
            raise ValueError(f"labels must be a NumPy array of int64 of shape ({count},), got {got}.")
        wrong = np.flatnonzero(labels < 0)
        if wrong.size:
            raise ValueError(f"labels must not be negative; the first is {labels[wrong[0]]} at index {wrong[0]}.")

    def __len__(self) -> int:
        return len(self.labels)

    def fingerprint(self) -> dict[str, Any]:
        """What tells this set from another: shape, statistics, and a digest of labels and some of the images."""
        sampled = np.unique(np.linspace(0, len(self) - 1, _SAMPLED).astype(np.intp))
        digest = hashlib.sha256(self.labels.tobytes())
        digest.update(self.images[sampled].tobytes())
        return {
            "shape": list(self.images.shape),
            "mean": [float(value) for value in self.mean],
            "std": [float(value) for value in self.std],
            "digest": digest.hexdigest()[:16],
        }


@final
class DeviceImages:
    """A training set as batches on a device. Two moments of waiting for the device: the start and each epoch's order."""

    def __init__(self, data: TrainingData, device: torch.device, /, *, resident: bool | None = None):
        self._host, self.device = data, device
        if resident is None and device.type == "cuda":
            resident = data.images.nbytes < ROOM * torch.cuda.mem_get_info(device)[0]
        self.resident = not isinstance(data.images, np.memmap) if resident is None else resident
        self._labels = torch.from_numpy(np.array(data.labels, np.int64)).to(device)
        self._images = on_device(data.images, device) if self.resident else None
        self._scale = Normalization(data.mean, data.std, device)

    def __len__(self) -> int:
        return len(self._host)

    def batch(
        self, chosen: Tensor, generator: torch.Generator, /, *, padding: float, flip: bool, size: int
    ) -> tuple[Tensor, Tensor]:
        """The chosen examples (indices on the CPU for sets on the host), augmented: images and labels."""
        labels = self._labels[chosen.to(self.device)]
        images, rows = self._images, chosen
        if images is None:
            images = on_device(self._host.images[chosen.numpy()], self.device)
            rows = torch.arange(len(chosen), device=self.device)
        if images.ndim == 2:  # features of texts are as they should be
            return images[rows], labels
        shift = round(padding * min(images.shape[1:3]))
        cropped = crop_and_flip(images, rows, generator, padding=shift, flip=flip)
        return self._scale(cropped, size=size), labels

    def order(self, order: Tensor, /) -> Tensor:
        """An epoch's order, moved to where the images are."""
        return order.to(self.device) if self.resident else order


@final
class Normalization:
    """Bytes (n, h, w, 3) to floats (n, 3, h, w), channels last in memory: less the mean, over the deviation."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], device: torch.device, /):
        check_statistics(mean, std)
        self.device = device
        self._mean, self._std = (torch.tensor(values, dtype=torch.float32, device=device) for values in (mean, std))

    def __call__(self, images: Tensor, /, *, size: int | None = None) -> Tensor:
        """The images at ``size`` pixels (None: as they are); features of texts, (n, size), stay what they are."""
        if images.ndim == 2:
            return images
        x = ((images.float() / 255 - self._mean) / self._std).permute(0, 3, 1, 2)
        if size is None or x.shape[-2:] == (size, size):
            return x
        smaller = size < min(x.shape[-2:])
        return functional.interpolate(x, (size, size), mode="bilinear", antialias=smaller)


def crop_and_flip(images: Tensor, chosen: Tensor, generator: torch.Generator, /, *, padding: int, flip: bool) -> Tensor:
    """Some of the images (n, h, w, 3), each shifted by up to ``padding`` pixels and flipped with chance one half.

    The same as padding by reflection and a random crop, in one gather out of the whole set.
    """
    count, (height, width), device = len(chosen), images.shape[1:3], images.device
    draw = partial(torch.randint, generator=generator, device=device)
    down, right = draw(-padding, padding + 1, (2, count, 1))
    mirrored = draw(0, 2, (count, 1)).bool() & flip
    columns = torch.arange(width, device=device)
    columns = torch.where(mirrored, width - 1 - columns, columns)
    rows = _reflected(torch.arange(height, device=device) + down, height)
    columns = _reflected(columns + right, width)
    return images[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


def on_device(images: NDArray[np.uint8], device: torch.device, /) -> Tensor:
    """The bytes as they are, on the device."""
    return torch.from_numpy(np.require(images, requirements=["C", "W"])).to(device)


def check_images(images: Any, /) -> None:
    """Refuse what is neither bytes (n, h, w, 3) nor features (n, size) of texts in float32."""
    if isinstance(images, np.ndarray) and images.dtype == np.float32 and images.ndim == 2 and images.size:
        return
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        kind = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise TypeError(f"images must be a NumPy array of uint8, 0 to 255, got {kind}. They are normalised here.")
    if images.ndim != 4 or images.shape[-1] != 3 or images.size == 0:
        raise ValueError(f"images must have the shape (n, height, width, 3) with n > 0, got {images.shape}.")


def check_statistics(mean: Sequence[float], std: Sequence[float], /) -> None:
    """Refuse channel statistics that are not three finite numbers, or deviations that are not positive."""
    for name, values in (("mean", mean), ("std", std)):
        if np.shape(values) != (3,) or not np.isfinite(values).all():
            raise ValueError(f"{name} must be three finite numbers, one for each channel, got {values!r}.")
    if not np.all(np.asarray(std) > 0):
        raise ValueError(f"std must be positive, got {std!r}.")


def _reflected(index: Tensor, size: int) -> Tensor:
    return (size - 1) - ((size - 1) - index.abs()).abs()
