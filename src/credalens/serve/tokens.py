"""Bearer tokens: who may ask. Health stays open to everybody, for the probes of whatever runs the server."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from starlette.responses import JSONResponse

from credalens.checks.options import check_strings
from credalens.serve.cross_site import HEALTH, path_in_app

OPEN: Final = ("/", *HEALTH)  # the page holds no numbers: it asks for them with a token


def read_tokens(path: str | os.PathLike[str], /) -> tuple[str, ...]:
    """The tokens of a file, one on each line; empty lines and lines that begin with ``#`` are left out."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # a byte-order mark is no part of the first token
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8; {error}. Save it as UTF-8.") from error
    lines = (line.strip() for line in text.splitlines())
    tokens = tuple(line for line in lines if line and not line.startswith("#"))
    if not tokens:
        raise ValueError(f"{path}: holds no token; write one on a line of its own.")
    return tokens


def check_tokens(tokens: Any, /) -> tuple[str, ...]:
    """Tokens that a request can hold."""
    return check_strings(tokens, "tokens", "token", example="a-long-secret")


class BearerTokens:
    """ASGI middleware that answers 401 unless the request has one of the tokens."""

    def __init__(self, app: Any, tokens: Iterable[str]) -> None:
        self.app = app
        self._digests = [_digest(token.encode()) for token in tokens]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on what is allowed."""
        if scope["type"] != "http" or path_in_app(scope) in OPEN or self._allowed(dict(scope["headers"])):
            await self.app(scope, receive, send)
            return
        headers = {"WWW-Authenticate": "Bearer"}
        refusal = JSONResponse({"error": "a valid bearer token is needed."}, status_code=401, headers=headers)
        await refusal(scope, receive, send)

    def _allowed(self, headers: dict[bytes, bytes]) -> bool:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        digest = _digest(token.strip())
        matches = [hmac.compare_digest(digest, known) for known in self._digests]  # all of them: the time tells nothing
        return scheme.lower() == b"bearer" and any(matches)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
