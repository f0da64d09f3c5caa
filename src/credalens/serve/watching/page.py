"""The page at ``/``: one file with its style and script inside, which asks its own server for numbers and nobody else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from credalens.look import STROKES, css_variables

ASSETS: Final = files("credalens.serve.watching") / "assets"
SHOWN: Final = ("total", "epistemic")


async def page_response(request: Request) -> Response:
    """The page, with a policy that lets it run its own script and talk to its own server."""
    content, headers = _page()
    return Response(content, media_type="text/html", headers=headers)


@cache
def _page() -> tuple[str, dict[str, str]]:
    variables = "".join(f"--{name}: {value};" for name, value in css_variables().items())
    style = f":root {{ {variables} }}\n{_asset('page.css')}{_strokes()}"
    script = _asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return _asset("page.html").replace("STYLE", style).replace("SCRIPT", script), headers


def _strokes() -> str:
    """The lines of scores, as in every chart."""
    dashes = {name: " ".join(f"{length:g}" for length in STROKES[name].dash) or "none" for name in SHOWN}
    return "".join(
        f".line.{name} {{ stroke: var(--{STROKES[name].role}); stroke-dasharray: {dash}; }}\n"
        for name, dash in dashes.items()
    )


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
