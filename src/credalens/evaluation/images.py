"""Pictures of inputs, as users have them: bytes or floats, grey or in colour, channels last or first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.options import escaped_names
from credalens.evaluation.outcome import DataSets

CHANNELS = (1, 3, 4)


def check_images(images: Any, data: DataSets, /) -> dict[str, NDArray[np.uint8]]:
    """Data set -> its images as bytes; ``images`` is such a mapping, or the images of the ID data alone."""
    if images is None:
        return {}
    named = escaped_names(images, "images") if isinstance(images, Mapping) else {data.id.name: images}
    rows = {one.name: one.rows for one in (data.id, *data.ood)}
    unknown = sorted(set(named) - set(rows))
    if unknown:
        known = ", ".join(map(repr, rows))
        raise ValueError(
            f"images were given for {unknown[0]!r}, which is not a data set; there are {known} (--images)."
        )
    return {name: read_images(array, rows[name], name) for name, array in named.items()}


def read_images(images: Any, rows: int, name: str, /) -> NDArray[np.uint8]:
    """Images of all rows of a data set as bytes, (rows, height, width) or (rows, height, width, channels).

    Bytes, or floats from 0 to 1; grey, with the channels last, or with the channels first.
    """
    array, _ = to_numpy(images)
    if array.ndim == 4 and array.shape[-1] not in CHANNELS and array.shape[1] in CHANNELS:
        array = np.moveaxis(array, 1, -1)
    shaped = array.ndim == 3 or (array.ndim == 4 and array.shape[-1] in CHANNELS)
    if not shaped or len(array) != rows:
        raise ValueError(
            f"images of {name!r} must have shape ({rows}, height, width), ({rows}, height, width, channels) or ({rows}, "
            f"channels, height, width), one for each input and 1, 3 or 4 channels; got shape {array.shape} (--images)."
        )
    array = array[..., 0] if array.ndim == 4 and array.shape[-1] == 1 else array
    return array if array.dtype == np.uint8 else _bytes(array, name)


def _bytes(array: NDArray, name: str) -> NDArray[np.uint8]:
    if array.dtype.kind != "f" or not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        raise ValueError(
            f"images of {name!r} must be uint8, or floats from 0 to 1; got {array.dtype}"
            + (f" from {array.min():g} to {array.max():g} (--images)." if array.dtype.kind in "fiu" else " (--images).")
        )
    return np.round(255 * array.astype(np.float64)).astype(np.uint8)
