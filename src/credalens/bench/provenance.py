"""What the numbers were measured with: hardware, versions, and how busy the machine was."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from credalens.core.batches import usable_cores

__all__ = ["provenance"]

PACKAGES = ("credalens", "numpy", "numba", "scipy", "torch")


def provenance() -> dict[str, str]:
    """Versions, processor, cores, memory, and the load when the run began."""
    versions = {name: _version(name) for name in PACKAGES}
    return {
        **versions,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(usable_cores()),
        "load_at_start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's name where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
