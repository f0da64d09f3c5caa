"""What the numbers were measured with: hardware, versions, and how busy the machine was."""

from __future__ import annotations

import os
import platform

from credalens_paper import origin

__all__ = ["provenance"]

PACKAGES = ("scipy", "torch")


def provenance() -> dict[str, str]:
    """When, which source, versions, processor, cores, and the load when the run began."""
    machine = origin.hardware()
    return {
        "date": origin.now(),
        "commit": origin.commit() or "unknown",
        **dict.fromkeys(PACKAGES, "not installed"),
        **origin.versions(PACKAGES),
        "system": machine.system,
        "machine": platform.machine(),
        "processor": machine.cpu,
        "cores": str(machine.cores),
        "load_at_start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
    }
