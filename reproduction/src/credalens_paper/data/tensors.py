"""From bytes to the device: normalised channels-last tensors, and augmentation where the images lie."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from credalens_paper.data.catalog import Statistics

if TYPE_CHECKING:
    import torch


def to_device_tensor(
    images: NDArray[np.uint8],
    device: str | torch.device = "cpu",
    /,
    *,
    statistics: Statistics,
    size: int | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Images (n, h, w, 3) of bytes as a normalised tensor (n, 3, h, w) on the device, channels last in memory.

    Bytes travel, floats are made there. `size` resizes there too, which spares memory for 224-pixel networks.

    >>> from credalens_paper.data import normalization
    >>> to_device_tensor(np.zeros((2, 8, 8, 3), np.uint8), statistics=normalization("digits"))[0, 0, 0, 0]
    tensor(-2.)
    """
    return normalised(device_bytes(images, device), statistics=statistics, size=size, dtype=dtype)


def device_bytes(images: NDArray[np.uint8], device: str | torch.device = "cpu", /) -> torch.Tensor:
    """The bytes as they are, (n, 3, h, w) on the device: a quarter of the memory of floats."""
    import torch

    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        raise ValueError(f"images must be uint8 of shape (n, h, w, 3), got {images.dtype} of shape {images.shape}")
    # The memory of (n, h, w, 3) is the channels-last memory of (n, 3, h, w); read-only arrays must be copied.
    contiguous = np.require(images, requirements=["C", "W"])
    return torch.from_numpy(contiguous).to(device).permute(0, 3, 1, 2)


def normalised(
    images: torch.Tensor,
    /,
    *,
    statistics: Statistics,
    size: int | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Bytes (n, 3, h, w) as floats less the mean over the standard deviation of each channel."""
    import torch

    kind = torch.float32 if dtype is None else dtype
    mean, deviation = (torch.tensor(values, device=images.device).view(1, 3, 1, 1) for values in statistics)
    scaled = images.float() / 255
    if size is not None and scaled.shape[-2:] != (size, size):
        scaled = torch.nn.functional.interpolate(scaled, (size, size), mode="bilinear", antialias=True)
    return ((scaled - mean) / deviation).to(kind, memory_format=torch.channels_last)


def augment(
    images: torch.Tensor, generator: torch.Generator, /, *, padding: int = 4, flip: bool = True
) -> torch.Tensor:
    """Each image shifted by up to `padding` pixels, filled by reflection, and flipped with chance one half.

    The same as padding by reflection and a random crop, in one gather on the device. The generator decides all.

    >>> import torch
    >>> augment(torch.zeros(2, 3, 8, 8), torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3, 8, 8])
    """
    import torch

    n, _, height, width = images.shape
    if not 0 <= padding < min(height, width):
        raise ValueError(f"reflection needs 0 <= padding < {min(height, width)}, the smaller side; got {padding}")
    draw = partial(torch.randint, generator=generator, device=generator.device)
    down, right = draw(-padding, padding + 1, (2, n, 1)).to(images.device)
    mirrored = draw(0, 2, (n, 1)).to(images.device) * int(flip)
    rows = _reflected(torch.arange(height, device=images.device) + down, height)
    columns = torch.arange(width, device=images.device)
    columns = torch.where(mirrored.bool(), width - 1 - columns, columns)
    columns = _reflected(columns + right, width)
    which = torch.arange(n, device=images.device)[:, None, None]
    # Indices around the channel slice put the channels last: (n, h, w, 3), which the view below turns back.
    return images[which, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _reflected(index: torch.Tensor, size: int) -> torch.Tensor:
    return (size - 1) - ((size - 1) - index.abs()).abs()
