"""Where a file comes from: the commit of the source that made it, and the processor it was made on."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

__all__ = ["commit", "processor"]


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


def processor() -> str:
    """The processor's name where the system tells it."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
