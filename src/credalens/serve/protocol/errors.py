"""RequestError: what is wrong with a request, in words for the client, and the HTTP status that says so."""

from __future__ import annotations


class RequestError(Exception):
    """A request that gets no answer but ``{"error": message}``: raise it in a model that has something to tell its clients.

    :ivar status: of HTTP, from 400 on.

    >>> def members(x):
    ...     if (x < 0).any():
    ...         raise RequestError("x must be positive; it is in metres.")
    """

    def __init__(self, message: str, /, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
