"""Where a result comes from: versions, hardware, commit, time."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from credalens.core.batches import usable_cores
from credalens.storage.provenance import commit, processor

__all__ = ["hardware", "provenance", "versions"]

PACKAGES: Final = ("credalens", "numpy", "numba", "scipy", "scikit-learn", "torch", "transformers", "matplotlib")


def provenance(**more: Any) -> dict[str, Any]:
    """Everything but the numbers: when, on what, with which versions, and what the caller adds."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "hardware": hardware(),
        "versions": versions(),
        **more,
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that touch the numbers, as far as they are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """The processor and how many of its cores this process may use."""
    return {"cpu": processor(), "cores": usable_cores(), "system": platform.system()}
