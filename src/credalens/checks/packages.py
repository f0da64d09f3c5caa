"""Packages that only some parts of the library need: named where they are missing, and imported with their telemetry off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TELEMETRY: Final = {"mlflow": ("MLFLOW_DISABLE_TELEMETRY", "true"), "onnxruntime": ("ORT_DISABLE_TELEMETRY", "1")}
"""The environment variable that stops a package from sending statistics, and its value; read when the package is imported."""


@contextmanager
def needing(package: str, /, *, part: str, extra: str) -> Iterator[None]:
    """Reword the error of an import inside the block that fails because ``package``, or a module of it, does not exist.

    The telemetry of the package is switched off before the import.

    >>> with needing("no_such_package", part="credalens.example", extra="example"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: credalens.example needs no_such_package, which is missing or too old: pip install 'credalens[example]'
    """
    switch_off_telemetry(package)
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ImportError(
            f"{part} needs {package}, which is missing or too old: pip install 'credalens[{extra}]'"
        ) from error


def switch_off_telemetry(package: str, /) -> None:
    """Set the variable that keeps a package from sending statistics, for this process and those that it starts."""
    if package in TELEMETRY:
        name, value = TELEMETRY[package]
        os.environ[name] = value
