"""Packages that only some parts of the library need: a missing one is an error that names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needing(package: str, /, *, part: str, extra: str) -> Iterator[None]:
    """Reword the error of an import inside the block that fails because ``package``, or a module of it, does not exist.

    >>> with needing("no_such_package", part="credalens.example", extra="example"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: credalens.example needs no_such_package, which is missing or too old: pip install 'credalens[example]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ImportError(
            f"{part} needs {package}, which is missing or too old: pip install 'credalens[{extra}]'"
        ) from error
