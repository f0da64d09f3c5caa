"""Access control: bearer tokens, and refusal of requests that web pages elsewhere make a browser send.

Health checks stay open to everybody, for the probes of whatever runs the server.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final

from starlette.responses import JSONResponse

from credalens.checks.options import check_strings

HEALTH: Final = ("/v2/health/live", "/v2/health/ready")  # tell nothing and change nothing: probes ask by any name
PAGE: Final = "/"  # holds no numbers: it asks for them with a token
READING: Final = ("GET", "HEAD", "OPTIONS")
OF_CURL: Final = "application/x-www-form-urlencoded"  # what `curl -d` says that it sends
OF_FORMS: Final = ("text/plain", "multipart/form-data", OF_CURL)
PORTS: Final = {"http": 80, "https": 443}
HOST: Final = re.compile(r"(\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/\\@?#%\[\]]+))(:(?P<port>[0-9]{0,5}))?")
NAME: Final = re.compile(r"(\*|(\*\.)?[^\s*:/@?#\[\]]+)")


def read_tokens(path: str | os.PathLike[str], /) -> tuple[str, ...]:
    """Read the tokens of a file, one on each line; empty lines and lines that begin with ``#`` are left out."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # a byte-order mark is no part of the first token
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8; {error}. Save it as UTF-8.") from error
    lines = (line.strip() for line in text.splitlines())
    if not (tokens := tuple(line for line in lines if line and not line.startswith("#"))):
        raise ValueError(f"{path}: holds no token; write one on a line of its own.")
    return tokens


def check_hosts(hosts: Any, /) -> tuple[str, ...]:
    """Refuse what is no name that requests may call the server by: a whole one, ``*.`` before a domain, or ``*``."""
    names = check_strings(hosts, "allowed_hosts", "allowed host", example="credalens.example.org")
    for name in names:
        if not NAME.fullmatch(name):
            raise ValueError(
                "allowed_hosts must be names without scheme, port or path, '*' alone, or '*.' before a name; "
                f"got {name!r:.80}."
            )
    return tuple(_plain(name) for name in names)


class Access:
    """ASGI middleware that refuses what web pages elsewhere make a browser send, and requests without one of the tokens.

    - A name in ``Host`` that is neither configured nor a loopback name nor an address gets 403: a page of that name has
      pointed it here (DNS rebinding). It is checked where names are configured, and for connections to a loopback address.
    - A foreign ``Origin`` gets 403: neither that of the server's own pages, nor one whose name is configured.
    - Inference takes no body of a form's content types (415), but for that of ``curl -d``. Whatever else changes a state
      needs a header that no form can send: ``X-Requested-With``, a bearer token, or a content type that forms do not have.
    - Where there are tokens, a request without one of them gets 401.
    """

    def __init__(self, app: Any, tokens: Iterable[str] = (), allowed_hosts: Iterable[str] = ()) -> None:
        self.app = app
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]
        self._names = tuple(allowed_hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on what is allowed."""
        refused = self._refused(scope) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    def _refused(self, scope: Any) -> JSONResponse | None:
        path = str(scope["path"]).removeprefix(scope.get("root_path", ""))  # below where the application is mounted
        if path in HEALTH:
            return None
        headers = {name.lower(): value for name, value in scope["headers"]}
        host, origin = (headers[x].decode("latin-1") if x in headers else None for x in (b"host", b"origin"))
        if host is not None and not self._is_host(host, scope.get("server")):
            message = f"this server does not answer to the host {host!r:.80}"
            return refusal(403, f"{message}; allow it with --allow-host or allowed_hosts.")
        if origin is not None and not self._is_origin(origin, host):
            message = f"pages of {origin!r:.80} may not ask this server"
            return refusal(403, f"{message}; --allow-host or allowed_hosts allow it.")
        if scope["method"] not in READING and (refused := _refused_change(path, headers)):
            return refused
        if self._digests and path != PAGE and not self._has_token(headers):
            return refusal(401, "a valid bearer token is needed.", {"WWW-Authenticate": "Bearer"})
        return None

    def _has_token(self, headers: Mapping[bytes, bytes]) -> bool:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        digest = hashlib.sha256(token.strip()).digest()
        matches = [hmac.compare_digest(digest, each) for each in self._digests]  # all of them: the time tells nothing
        return scheme.lower() == b"bearer" and any(matches)

    def _is_host(self, host: str, server: Any) -> bool:
        """Whether the name is known, if names are checked; a server that does not say where it listens may be local."""
        if not self._names and server and not is_loopback(server[0]):
            return True
        if (parts := _parts(host)) is None:
            return "*" in self._names
        return _address(parts[0]) is not None or is_loopback(parts[0]) or self._allows(parts[0], "*")

    def _is_origin(self, origin: str, host: str | None) -> bool:
        """Whether a page is of this server: it has the name and port of the request, but a proxy may end TLS or rename."""
        scheme, _, of_page = origin.lower().partition("://")
        page = _parts(of_page, scheme) if scheme in PORTS else None
        return page is not None and ((host is not None and page == _parts(host, scheme)) or self._allows(page[0]))

    def _allows(self, *names: str) -> bool:
        """Whether one of the names was configured; ``*`` allows every host, and no page elsewhere."""
        return any(each in names or (each[:2] == "*." and names[0].endswith(each[1:])) for each in self._names)


def _parts(host: str, scheme: str = "") -> tuple[str, int | None] | None:
    """Name and port of a host; None where it is malformed."""
    if not (match := HOST.fullmatch(host)):
        return None
    return _plain(match["address"] or match["name"]), int(match["port"]) if match["port"] else PORTS.get(scheme)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _address(name: str) -> Any:
    """The address that a name is, as IPv4 where IPv6 only maps it; None where it is none."""
    try:
        address = ip_address(name)
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def is_loopback(host: str, /) -> bool:
    """Whether an address or a name is reached from this machine only."""
    if (address := _address(host)) is not None:
        return bool(address.is_loopback)
    return f".{_plain(host)}".endswith(".localhost")


def _refused_change(path: str, headers: Mapping[bytes, bytes]) -> JSONResponse | None:
    """The refusal of a request that a form could send to a path that computes or changes something."""
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    of_form = kind in OF_FORMS
    if path.startswith("/v2/models/"):
        message = f"a body of {kind} is what forms of web pages send; send it as application/json or application/octet-stream."
        return refusal(415, message) if of_form and kind != OF_CURL else None
    bearer = headers.get(b"authorization", b"").lower().startswith(b"bearer ")
    if bearer or b"x-requested-with" in headers or (kind and not of_form):
        return None
    return refusal(403, "what changes the server needs a header that no web page elsewhere can send: X-Requested-With.")


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An answer that says what is wrong, in the form of the protocol."""
    return JSONResponse({"error": message}, status_code=status, headers=headers)
