"""Where a result comes from: versions, hardware, commit, time."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any, Final

from credalens.core.batches import usable_cores
from credalens.storage import provenance as library
from credalens_paper.experiments.presets import Preset
from credalens_paper.results.records import Hardware, Provenance

PACKAGES: Final = ("scipy", "scikit-learn", "torch", "transformers", "matplotlib")


def make_provenance(preset: Preset, engine: Mapping[str, Any], /) -> Provenance:
    """Everything but the numbers: when, on what, with which versions and settings."""
    made = library.provenance(PACKAGES)
    return Provenance(made.date, made.commit, hardware(), made.versions, preset, engine)


def hardware() -> Hardware:
    """The processor and how many of its cores this process may use."""
    return Hardware(library.processor(), usable_cores(), platform.system())
