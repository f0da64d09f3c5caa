"""The body of a request, read up to a limit."""

from __future__ import annotations

from starlette.requests import Request

from credalens.serve.places import Place
from credalens.serve.protocol.errors import RequestError


async def read_body(request: Request, limit: int, place: Place, /) -> bytes:
    """The whole body, or a refusal as soon as it is known to be too large; ``place`` is told of what has arrived."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise RequestError(
            f"a body with Content-Encoding {encoding!r:.40} is not supported; send it uncompressed.", status=415
        )
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    parts, size = [], 0
    async for part in request.stream():
        size = place.received = size + len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> RequestError:
    return RequestError(f"the body is larger than {limit:,} bytes; send fewer rows at a time.", status=413)
