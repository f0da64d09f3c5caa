"""Requests as any client of the protocol writes them, and answers as it reads them: written from the protocol's text."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np

NAMES = {"float16": "FP16", "float32": "FP32", "float64": "FP64", "int64": "INT64", "bool": "BOOL", "object": "BYTES"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


@dataclass(frozen=True)
class Message:
    """A body and its headers."""

    content: bytes
    headers: dict[str, str]


def request(
    arrays: dict[str, np.ndarray], outputs: Sequence[str] | None = None, *, binary: bool = False, **fields: Any
) -> Message:
    """A request with all tensors, in and out, as JSON or as binary data."""
    tail = [raw(array) if binary else b"" for array in arrays.values()]
    inputs = [
        {"name": name, "datatype": NAMES[array.dtype.name], "shape": list(array.shape)}
        | ({"parameters": {"binary_data_size": len(part)}} if binary else {"data": array.ravel().tolist()})
        for (name, array), part in zip(arrays.items(), tail, strict=True)
    ]
    content = {"inputs": inputs, "parameters": {"binary_data_output": binary}} | fields
    if outputs is not None:
        content["outputs"] = [{"name": name} for name in outputs]
    head = json.dumps(content).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))} if binary else {}
    return Message(head + b"".join(tail), headers)


def raw(array: np.ndarray) -> bytes:
    if array.dtype != object:
        return array.tobytes()
    return b"".join(struct.pack("<I", len(word.encode())) + word.encode() for word in array.ravel())


def answers(response: httpx.Response) -> dict[str, np.ndarray]:
    """The outputs of an answer by name."""
    assert response.status_code == 200, response.text
    length = int(response.headers.get("Inference-Header-Content-Length", len(response.content)))
    head, tail, arrays = json.loads(response.content[:length]), response.content[length:], {}
    for output in head["outputs"]:
        dtype = DTYPES[output["datatype"]]
        if "data" in output:
            values = np.array(output["data"], dtype)
        else:
            size = output["parameters"]["binary_data_size"]
            part, tail = tail[:size], tail[size:]
            values = np.array(list(words(part)), object) if dtype == "object" else np.frombuffer(part, dtype)
        arrays[output["name"]] = values.reshape(output["shape"])
    assert tail == b""
    return arrays


def words(part: bytes) -> Any:
    while part:
        (size,) = struct.unpack("<I", part[:4])
        yield part[4 : 4 + size].decode()
        part = part[4 + size :]


async def ask(app: Any, message: Message, model: str = "credal", **headers: str) -> httpx.Response:
    """The application's answer, without a network."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        url = f"/v2/models/{model}/infer"
        return await client.post(url, content=message.content, headers=message.headers | headers)


def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """What several calls return that are made at the same time."""

    async def run() -> list[Any]:
        return list(await asyncio.gather(*calls))

    return asyncio.run(run())


def infer(app: Any, message: Message, model: str = "credal", **headers: str) -> httpx.Response:
    """One call."""
    return together(ask(app, message, model, **headers))[0]
