"""Where a result comes from: versions, hardware, commit, time."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

__all__ = ["commit", "hardware", "provenance", "versions"]

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
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": _processor(), "cores": cores, "system": platform.system()}


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the source, with "-dirty" where files differ from it; None where this is no checkout.

    A copy without its history may name the commit in the environment as CREDALENS_COMMIT.
    """
    given = os.environ.get("CREDALENS_COMMIT")
    if given:
        return given
    here = Path(__file__)
    if _git("-C", str(here.parent), "ls-files", "--error-unmatch", here.name) is None:
        return None  # installed, perhaps inside some other repository
    return _git("-C", str(here.parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(*arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or None if done.returncode == 0 else None
