"""What the numbers were measured with: hardware, versions, and how busy the machine was."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from credalens.core.batches import usable_cores
from credalens.storage.provenance import commit, processor

__all__ = ["provenance"]

PACKAGES = ("credalens", "numpy", "numba", "scipy", "torch")


def provenance() -> dict[str, str]:
    """When, which source, versions, processor, cores, and the load when the run began."""
    versions = {name: _version(name) for name in PACKAGES}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit() or "unknown",
        **versions,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": processor(),
        "cores": str(usable_cores()),
        "load_at_start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
