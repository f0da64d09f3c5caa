"""Requests to a server that are damaged, hostile or make no sense."""

from __future__ import annotations

import asyncio
import gc
import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attack.case import Case, expect
from attack.damage import damaged
from attack.ensembles import ensemble
from credalens.serve import Limits, app, member_outputs
from credalens.serve.application import warm_up

REQUESTS = 50  # of a case
GROWTH = 64 << 20  # of this process's memory within a case
LIMITS = Limits(body_bytes=1 << 20, rows=200, classes=500)
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, 10**300, 1.5, 1e308, float("nan"), float("inf"), "", "FP64", "FP32", "BYTES",
    "BOOL", "INT64", "probs", "total", "\x00", "a" * 5000, [], [[]], [[], [1]], {}, {"name": "probs"}, [0.5] * 1000, ["x"] * 9,
)  # fmt: skip


def attack(case: Case) -> None:
    """Malformed bodies to the infer endpoint: a 4xx with words, or a right answer; never a 5xx, and memory stays flat."""
    server, before = _server(), _resident()
    for _ in range(REQUESTS):
        cause, body, headers = _request(case)
        status, answer = asyncio.run(_ask(server, body, headers))
        if status == 200:
            _check_answer(answer, cause)
        else:
            expect(400 <= status < 500, f"{cause}: status {status}, {answer[:300]!r}")
            expect(len(json.loads(answer)["error"]) >= 10, f"{cause}: the error says too little: {answer[:300]!r}")
    gc.collect()
    expect(_resident() - before < GROWTH, f"memory grew by {_resident() - before} bytes over {REQUESTS} requests")


@cache
def _server() -> Any:
    warm_up()
    return app(member_outputs(), limits=LIMITS)


def _request(case: Case) -> tuple[str, bytes, dict[str, str]]:
    """What is wrong, the body and the headers."""
    probs = ensemble(case, rows=case.between(1, 4), classes=(2, 6)).astype(case.choose("float32", "float64"))
    binary = bool(case.between(0, 1))
    tensor: dict[str, Any] = {"name": "probs", "shape": list(probs.shape), "datatype": f"FP{8 * probs.itemsize}"}
    tensor |= {"parameters": {"binary_data_size": probs.nbytes}} if binary else {"data": probs.ravel().tolist()}
    fields: dict[str, Any] = {"id": "7", "inputs": [tensor], "outputs": [{"name": "total"}]}
    cause = "fields"
    for _ in range(case.between(1, 3)):
        _replace_one(case, fields)
    head = json.dumps(fields).encode()
    headers = {"inference-header-content-length": str(len(head))} if binary else {}
    body = head + (probs.tobytes() if binary else b"")
    if case.between(0, 1):
        cause, body = damaged(case, body)
    if case.between(0, 9) == 0:
        headers = {"inference-header-content-length": str(case.choose(*HOSTILE))[:100]}
    return cause, body, headers


def _replace_one(case: Case, fields: dict[str, Any]) -> None:
    """Put a hostile value somewhere, take a field away, or leave all as it is."""
    places = list(_places(fields))
    container, key = places[case.between(0, len(places) - 1)]
    kind = case.between(0, 3)
    if kind == 0 and isinstance(container, dict):
        del container[key]
    elif kind > 1:
        container[key] = deepcopy(HOSTILE[case.between(0, len(HOSTILE) - 1)])


def _places(value: Any) -> Any:
    """Every place of a value that can be replaced: its container and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:5])
    for key, part in items:
        yield value, key
        if isinstance(part, dict | list):
            yield from _places(part)


async def _ask(server: Any, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    path, sent = "/v2/models/credal/infer", []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "headers": raw,
        "query_string": b"",
    }
    await server(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def _check_answer(answer: bytes, cause: str) -> None:
    """No number of an answer is negative or not finite."""
    head = json.JSONDecoder().raw_decode(answer.decode("latin-1"))[0]
    for output in head["outputs"]:
        values = np.array(output.get("data", []), float)
        expect(np.isfinite(values).all(), f"{cause}: {output}")
        expect((values >= 0).all(), f"{cause}: {output}")


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
