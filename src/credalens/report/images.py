"""Small pictures of inputs as PNG inside the page, so that it needs no other file."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

from credalens.checks.packages import needing


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
