"""The response to a request to infer: JSON, and after it the outputs that were asked for as binary data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from credalens.serve.protocol.binary_tensors import tensor_to_bytes
from credalens.serve.protocol.infer_request import WantedOutput
from credalens.serve.protocol.json_tensors import described

HEADER_LENGTH: Final = "Inference-Header-Content-Length"


@dataclass(frozen=True)
class InferResponse:
    """A body and its headers."""

    body: bytes
    headers: dict[str, str]


def write_response(
    about: dict[str, Any], wanted: Sequence[WantedOutput], arrays: dict[str, NDArray], /
) -> InferResponse:
    """The outputs after the fields of ``about``: the model's name and version, and the request's id."""
    outputs, tail = [], []
    for output in wanted:
        array = arrays[output.name]
        if output.binary:
            tail.append(tensor_to_bytes(array))
            form: dict[str, Any] = {"parameters": {"binary_data_size": len(tail[-1])}}
        else:
            form = {"data": array.ravel().tolist()}
        outputs.append(described(array, output.name) | form)
    text = json.dumps(about | {"outputs": outputs}, allow_nan=False).encode()
    if not tail:
        return InferResponse(text, {"Content-Type": "application/json"})
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(text))}
    return InferResponse(b"".join((text, *tail)), headers)
