"""Requests that a browser sends for pages of other sites, to names that point here and to the server's own."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import numpy as np

from attack.case import Case, expect
from credalens import wrap
from credalens.guard import Guard
from credalens.serve import app, member_outputs
from credalens.serve.application import warm_up

REQUESTS = 200  # of a case
OWN_HOSTS = (
    "127.0.0.1:8000",
    "localhost:8000",
    "LocalHost:8000",
    "[::1]:8000",
    "a.localhost:8000",
    "mine.example:8000",
)
FOREIGN = (
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "xmine.example", "mine.example.evil",
    "evil.example#localhost", "evil.example/localhost", "localhost@evil.example", "[::1].evil.example",
    "evil.example?.localhost", "127.0.0.1 .evil.example", "localhost\tevil.example", "0x7f000001.evil", "[::1",
    "]", ":", "localhost:x",
)  # fmt: skip
FOREIGN_ORIGINS = (
    *(f"http://{host}" for host in FOREIGN), *(f"https://{host}:8000" for host in FOREIGN), "null", "file://", "", "http://",
    "http://127.0.0.1:3000", "http://localhost", "http://[::1]:80", "about:blank", "chrome-extension://abcd",
)  # fmt: skip
FORMS = ("text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=b", "Text/Plain ; a=b")
CURL = "application/x-www-form-urlencoded"
PROGRAMS = ("application/json", "application/octet-stream", "APPLICATION/JSON")
INFER, RESTART = "/v2/models/credal/infer", "/drift/restart"


def attack(case: Case) -> None:
    """Pages elsewhere get no answer and change nothing, whatever they send; the server's own pages and programs do."""
    with_tokens, without = _server(True), _server(False)
    for _ in range(REQUESTS):
        tokens = case.between(0, 3) == 0
        path = case.choose(INFER, RESTART, "/v2", "/metrics", "/recent", "/")
        headers, foreign, formlike = _headers(case, path)
        if tokens and case.between(0, 1):
            headers["authorization"] = "Bearer secret"
        status, answer = asyncio.run(_ask(with_tokens if tokens else without, path, headers, case))
        known = not tokens or path == "/" or "authorization" in headers
        formlike = formlike and "authorization" not in headers if path == RESTART else formlike
        described = f"{path} with {headers}: {status}, {answer[:200]!r}"
        if foreign or formlike or not known:
            expect(400 <= status < 500, f"an answer to {described}")
            expect(len(json.loads(answer)["error"]) >= 10, f"too few words for {described}")
        else:
            expect(status == 200, f"no answer to {described}")
        expect("access-control" not in str(answer), described)
    case.count(REQUESTS)


def _headers(case: Case, path: str) -> tuple[dict[str, str], bool, bool]:
    """Headers, whether a page elsewhere has sent them, and whether a form could have sent such a change."""
    host = case.choose(*OWN_HOSTS)
    headers, foreign = {"host": host}, False
    kind = case.between(0, 4)
    if kind == 0:
        headers["host"], foreign = case.choose(*FOREIGN), True
        if case.between(0, 1):
            headers["origin"] = f"http://{headers['host']}"  # the page that has pointed its name here
    elif kind == 1:
        headers["origin"], foreign = case.choose(*FOREIGN_ORIGINS), True
    elif kind == 2:
        headers["origin"] = case.choose(
            f"http://{host}", f"https://{host}", f"HTTP://{host.upper()}", "https://mine.example"
        )
    content = case.choose(None, CURL, *FORMS, *PROGRAMS)
    if content is not None:
        headers["content-type"] = content
    if own_header := case.between(0, 3) == 0:
        headers["x-requested-with"] = case.choose("", "curl")
    if path == INFER:
        return headers, foreign, content in FORMS
    return headers, foreign, path == RESTART and not own_header and content not in PROGRAMS


@cache
def _server(tokens: bool) -> Any:
    warm_up()
    guard = Guard.fit(wrap(np.random.default_rng(0).dirichlet(np.full(2, 30.0), size=(3, 300))), score="mean_total")
    return app(member_outputs(guard), guard, allowed_hosts=["mine.example"], tokens=["secret"] if tokens else [])


async def _ask(server: Any, path: str, headers: dict[str, str], case: Case) -> tuple[int, bytes]:
    tensor = {"name": "probs", "datatype": "FP64", "shape": [3, 1, 2], "data": [0.5] * 6}
    body = json.dumps({"inputs": [tensor], "outputs": [{"name": "total"}]}).encode()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST" if path in (INFER, RESTART) else "GET",
        "path": path,
        "raw_path": path.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "query_string": b"",
        "server": case.choose(("127.0.0.1", 8000), ("::1", 8000), ("10.0.0.7", 8000), None),
    }
    await server(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)
