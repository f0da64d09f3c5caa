"""What the numbers were measured with: hardware, versions, and how busy the machine was."""

from __future__ import annotations

import os
import platform

from credalens.storage.provenance import provenance as library_provenance

__all__ = ["provenance"]

PACKAGES = ("scipy", "torch")


def provenance() -> dict[str, str]:
    """When, which source, versions, processor, cores, and the load when the run began."""
    made = library_provenance(PACKAGES)
    return {
        "date": made.date,
        "commit": made.commit or "unknown",
        **dict.fromkeys(PACKAGES, "not installed"),
        **made.versions,
        "system": made.system,
        "machine": platform.machine(),
        "processor": made.processor,
        "cores": str(made.cores),
        "load_at_start": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
    }
