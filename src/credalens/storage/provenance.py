"""Where a result comes from: time, commit of the source, versions, machine. Each kind of file names its own fields."""

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
class Provenance:
    """Everything about a run but its settings and numbers.

    :ivar commit: of the source, with "-dirty" where files differ from it; None if this is not a checkout.
    :ivar versions: of Python and of the packages that are installed.
    :ivar cores: how many this process may use.
    """

    date: str
    commit: str | None
    versions: dict[str, str]
    processor: str
    cores: int
    system: str


def provenance(packages: Iterable[str] = (), /) -> Provenance:
    """The provenance of what is being made now, with the versions of credalens, NumPy, Numba and ``packages``.

    A copy of the source without its history may name the commit in the environment as CREDALENS_COMMIT.

    >>> provenance().cores >= 1
    True
    """
    return Provenance(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=os.environ.get("CREDALENS_COMMIT") or _commit(),
        versions=_versions(("numpy", "numba", *packages)),
        processor=processor(),
        cores=usable_cores(),
        system=platform.system(),
    )


def _commit() -> str | None:
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


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {"python": platform.python_version(), "credalens": credalens.__version__}  # also of a mere source tree
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def processor() -> str:
    """The processor's name where the system tells it."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
