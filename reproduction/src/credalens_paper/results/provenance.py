"""Where a result comes from: versions, hardware, commit, time."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from credalens.core.batches import usable_cores
from credalens.storage.provenance import commit, processor
from credalens_paper.experiments.presets import Preset
from credalens_paper.results.records import Hardware, Provenance

__all__ = ["hardware", "make_provenance"]

PACKAGES: Final = ("credalens", "numpy", "numba", "scipy", "scikit-learn", "torch", "transformers", "matplotlib")


def make_provenance(preset: Preset, engine: Mapping[str, Any], /) -> Provenance:
    """Everything but the numbers: when, on what, with which versions and settings."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(date, commit(), hardware(), _versions(), preset, engine)


def _versions() -> dict[str, str]:
    """Versions of Python and of the packages that touch the numbers, as far as they are installed."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def hardware() -> Hardware:
    """The processor and how many of its cores this process may use."""
    return Hardware(processor(), usable_cores(), platform.system())
