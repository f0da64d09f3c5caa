"""The extra ``serve``: members' outputs in, a credal prediction out, as a server answers them."""

from __future__ import annotations

import asyncio
import json

import numpy as np

from credalens import wrap
from credalens.serve import app, member_outputs


async def answer(probs: np.ndarray) -> dict[str, object]:
    """The answer of the application to one request, without a network."""
    tensor = {"name": "probs", "datatype": "FP64", "shape": list(probs.shape), "data": probs.ravel().tolist()}
    body = json.dumps({"inputs": [tensor], "outputs": [{"name": "epistemic"}]}).encode()
    path, parts = "/v2/models/credal/infer", []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, object]) -> None:
        parts.append(message.get("body", b""))

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "headers": [],
        "query_string": b"",
    }
    await app(member_outputs())(scope, receive, send)
    return json.loads(b"".join(parts))


if __name__ == "__main__":
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 5))
    (output,) = asyncio.run(answer(probs))["outputs"]
    assert output["data"] == wrap(probs).epistemic.tolist()
