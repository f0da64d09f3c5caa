"""RequestError: what is wrong with a request, in words for the client, and the HTTP status that says so."""

from __future__ import annotations


class RequestError(Exception):
    """A request that gets no answer but ``{"error": message}``.

    :ivar status: of HTTP, from 400 on.
    """

    def __init__(self, message: str, /, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
