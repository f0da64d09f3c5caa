"""Small pictures of inputs as PNG inside the page, so that it needs no other file."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy
from credalens.checks.packages import needing

CHANNELS = (1, 3, 4)


def png_uri(image: NDArray[np.uint8], /) -> str:
    """An image (height, width) or (height, width, 3 or 4) of bytes as a ``data:`` address.

    >>> png_uri(np.zeros((2, 2), np.uint8))[:22]
    'data:image/png;base64,'
    """
    with needing("PIL", part="pictures in the report", extra="report"):
        from PIL import Image
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


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
