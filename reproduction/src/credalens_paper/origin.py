"""Where something that is made here comes from: time, commit of the source, versions, machine. Files name their own fields."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import credalens
from credalens.core.batches import usable_cores


@dataclass(frozen=True)
class Hardware:
    """The processor and how many of its cores the process could use."""

    cpu: str
    cores: int
    system: str


def hardware() -> Hardware:
    """The processor's name where the system tells it, and how many of its cores this process may use."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    return Hardware(cpu, usable_cores(), platform.system())


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str | None:
    """The commit of the source, with "-dirty" where files differ from it; None if this is not a checkout.

    A copy of the source without its history may name the commit in the environment as CREDALENS_COMMIT.
    """
    folder, name = str(Path(__file__).parent), Path(__file__).name
    if told := os.environ.get("CREDALENS_COMMIT"):
        return told
    if _git("-C", folder, "ls-files", "--error-unmatch", name) is None:
        return None  # installed, perhaps inside some other repository
    return _git("-C", folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(*arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() or None if done.returncode == 0 else None


def versions(packages: Iterable[str] = (), /) -> dict[str, str]:
    """The versions of Python, credalens, NumPy, Numba and those of the packages that are installed."""
    found = {"python": platform.python_version(), "credalens": credalens.__version__}  # also of a mere source tree
    for package in ("numpy", "numba", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
