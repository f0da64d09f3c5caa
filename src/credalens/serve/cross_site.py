"""Pages elsewhere: what a browser sends for them is refused, so that no web page can use a server that its reader can reach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from starlette.responses import JSONResponse

from credalens.checks.options import check_strings

HEALTH: Final = ("/v2/health/live", "/v2/health/ready")  # tell nothing and change nothing: probes ask by any name
READING: Final = ("GET", "HEAD", "OPTIONS")
OF_FORMS: Final = ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded")
OF_CURL: Final = "application/x-www-form-urlencoded"  # what `curl -d` says that it sends
PORTS: Final = {"http": 80, "https": 443}
HOST: Final = re.compile(r"(\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/\\@?#%\[\]]+))(:(?P<port>[0-9]{0,5}))?")
NAME: Final = re.compile(r"(\*|(\*\.)?[^\s*:/@?#\[\]]+)")


def check_hosts(hosts: Any, /) -> tuple[str, ...]:
    """Names that requests may call the server by: whole ones, ``*.`` before a domain, or ``*`` for all."""
    names = check_strings(hosts, "allowed_hosts", "allowed host", example="credalens.example.org")
    for name in names:
        if not NAME.fullmatch(name):
            raise ValueError(
                "allowed_hosts must be names without scheme, port or path, '*' alone, or '*.' before a name; "
                f"got {name!r:.80}."
            )
    return tuple(_plain(name) for name in names)


def path_in_app(scope: Any, /) -> str:
    """The path of a request below where the application is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


class RefuseCrossSite:
    """ASGI middleware that refuses what web pages elsewhere make a browser send.

    - A name in ``Host`` that is neither configured nor a loopback name nor an address gets 403: a page of that name has
      pointed it here (DNS rebinding). It is checked where names are configured, and for connections to a loopback address.
    - A foreign ``Origin`` gets 403: neither that of the server's own pages, nor one whose name is configured.
    - Inference takes no body of a form's content types (415), but for that of ``curl -d``. Whatever else changes a state
      needs a header that no form can send: ``X-Requested-With``, a bearer token, or a content type that forms do not have.
    """

    def __init__(self, app: Any, allowed_hosts: Iterable[str] = ()) -> None:
        self.app = app
        self._names = tuple(allowed_hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on what no page elsewhere has sent."""
        refusal = self._refusal(scope) if scope["type"] == "http" and path_in_app(scope) not in HEALTH else None
        await (refusal or self.app)(scope, receive, send)

    def _refusal(self, scope: Any) -> JSONResponse | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host"), headers.get(b"origin")
        if host is not None and not self._is_host(host, scope.get("server")):
            message = (
                f"this server does not answer to the host {host!r:.80}; allow it with --allow-host or allowed_hosts."
            )
            return _refused(403, message)
        if origin is not None and not self._is_origin(origin, host):
            return _refused(
                403, f"pages of {origin!r:.80} may not ask this server; --allow-host or allowed_hosts allow it."
            )
        return None if scope["method"] in READING else _refused_change(path_in_app(scope), headers)

    def _is_host(self, host: str, server: Any) -> bool:
        if not self._names and not _arrives_at_loopback(server):
            return True
        if (parts := _parts(host)) is None:
            return "*" in self._names
        return _is_address(parts[0]) or _is_loopback_name(parts[0]) or self._allows(parts[0], "*")

    def _is_origin(self, origin: str, host: str | None) -> bool:
        """A page of this server has the name and port that its request is sent to; proxies may end TLS or rename."""
        scheme, _, of_page = origin.lower().partition("://")
        page = _parts(of_page, scheme) if scheme in PORTS else None
        return page is not None and ((host is not None and page == _parts(host, scheme)) or self._allows(page[0]))

    def _allows(self, name: str, *others: str) -> bool:
        """Whether a name was configured; ``*`` allows every host, and no page elsewhere."""
        allowed = (name, *others)
        return any(known in allowed or (known[:2] == "*." and name.endswith(known[1:])) for known in self._names)


def _parts(host: str, scheme: str = "") -> tuple[str, int | None] | None:
    """Name and port of a host; None where it is malformed."""
    if not (found := HOST.fullmatch(host)):
        return None
    return _plain(found["address"] or found["name"]), int(found["port"]) if found["port"] else PORTS.get(scheme)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback_name(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _arrives_at_loopback(server: Any) -> bool:
    """Whether a connection came to a loopback address; where the server does not say, it may have."""
    if not server:
        return True
    try:
        address = ip_address(server[0])
    except ValueError:
        return _is_loopback_name(_plain(server[0]))  # else a name, or the path of a socket that no browser reaches
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _refused_change(path: str, headers: Mapping[bytes, str]) -> JSONResponse | None:
    kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if path.startswith("/v2/models/"):
        refused = kind in OF_FORMS and kind != OF_CURL
        message = f"a body of {kind} is what forms of web pages send; send it as application/json or application/octet-stream."
        return _refused(415, message) if refused else None
    bearer = headers.get(b"authorization", "").lower().startswith("bearer ")
    if bearer or b"x-requested-with" in headers or (kind and kind not in OF_FORMS):
        return None
    return _refused(
        403, "what changes the server needs a header that no web page elsewhere can send: X-Requested-With."
    )


def _refused(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)
