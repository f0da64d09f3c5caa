"""Small pictures of inputs as PNG inside the page, so that it needs no other file."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import to_numpy

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB = 0, 2


def png_uri(image: NDArray, /) -> str:
    """An image (height, width) or (height, width, 3) of bytes as a ``data:`` address.

    >>> png_uri(np.zeros((2, 2), np.uint8))[:22]
    'data:image/png;base64,'
    """
    height, width = image.shape[:2]
    rows = np.ascontiguousarray(image).reshape(height, -1)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)  # a zero in front of each row: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, GREY if image.ndim == 2 else RGB, 0, 0, 0)
    png = SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(raw, 9)) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def check_images(images: Any, rows: int, name: str, /) -> NDArray[np.uint8]:
    """Images of all rows of a data set, (rows, height, width) or (rows, height, width, 3), as bytes."""
    array, _ = to_numpy(images)
    shaped = array.ndim == 3 or (array.ndim == 4 and array.shape[-1] == 3)
    if array.dtype != np.uint8 or not shaped or len(array) != rows:
        raise ValueError(
            f"images of {name!r} must be uint8 of shape ({rows}, height, width) or ({rows}, height, width, 3); got "
            f"{array.dtype} of shape {array.shape}."
        )
    return array
