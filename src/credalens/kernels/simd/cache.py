"""Machine code of kernels on disk: where it lies, for whom it is valid, and how it is read and written.

**Where.** In the folder that the environment variable ``CREDALENS_KERNEL_CACHE`` names, else ``NUMBA_CACHE_DIR``. Without
either, beside the kernels (``__pycache__``) or in the user's cache folder: read where it is found first, written where that
is possible first. A folder that cannot be written is read all the same, so that kernels compiled while an image was built
serve a container whose files are read-only. Where nothing can be written kernels are compiled in every process.

**For whom.** Folders are named after a fingerprint of all kernel files and Numba's version, and after Python's version: a
kernel becomes part of those that call it, so a change of one file makes all of them outdated. Files are named after the
types of the arguments and after the processor, its features included: other processors compile for themselves. One that
``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` name, where kernels are compiled and where they are used, serves as a
baseline. User, host and place of the installation do not matter.

**How.** A file is complete or not there, whoever writes at the same time; one that is damaged is compiled again. It is a
pickle, as Numba's own, so a folder deserves as much trust as the code.
"""

import hashlib
import os
import pickle
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

CACHE_FOLDER: Final = "CREDALENS_KERNEL_CACHE"
ROOT: Final = Path(__file__).parents[1]


def _fingerprint() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


FINGERPRINT: Final = _fingerprint()
"""One hash over the names and contents of all kernel files and the compiler's version."""


def folders() -> list[Path]:
    """Where kernels of this version may lie, in the order in which they are looked for."""
    name = f"credalens-{FINGERPRINT[:16]}-{sys.implementation.cache_tag}"
    named = os.environ.get(CACHE_FOLDER) or numba.config.CACHE_DIR
    places = [named] if named else [ROOT / "__pycache__", AppDirs("numba", appauthor=False).user_cache_dir]
    return [Path(place) / name for place in places]


@final
class KernelCache(_Cache):  # type: ignore[misc]
    """Where Numba looks for the machine code of one kernel before it compiles it, and what it hands the compiled kernel to."""

    def __init__(self, function: Callable[..., Any], /) -> None:
        module = function.__module__.removeprefix("credalens.kernels.")
        self.name = f"{module}.{function.__qualname__}".replace("<", "").replace(">", "")

    @property
    def cache_path(self) -> str:
        """The first folder."""
        return str(folders()[0])

    def _file(self, signature: Any, codegen: Any) -> str:
        key = f"{signature} {codegen.magic_tuple()}"
        return f"{self.name}.{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The kernel compiled for a signature, or None.

        Numba's own cache first prepares for compiling, 0.2 s in every process: only code that counts references needs it.
        """
        name = self._file(signature, target_context.codegen())
        for folder in folders():
            try:
                content = pickle.loads((folder / name).read_bytes())  # noqa: S301 - trusted as the code is
            except (OSError, EOFError, pickle.UnpicklingError):
                continue
            return CompileResult._rebuild(target_context, *content)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write a compiled kernel to the first folder that takes it."""
        name, content = self._file(signature, compiled.codegen), dumps(compiled._reduce())
        for folder in folders():
            part = folder / f"{name}.{uuid.uuid4().hex}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                part.write_bytes(content)
                part.replace(folder / name)
            except OSError:
                with suppress(OSError):
                    part.unlink()
                continue
            return

    def flush(self) -> None:
        """Do nothing: outdated files have other names, and the cache is always on."""

    enable = disable = flush
