"""Settings of a server, its limits, and the content of the files that settings name, read once for all workers.

Workers cannot differ, and one that is replaced gets the same content, even if a file was changed or removed meanwhile.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from credalens.checks.options import check_count, check_real, number_text
from credalens.core.recalibration import Recalibration
from credalens.guard import Guard
from credalens.serve.access import read_tokens
from credalens.storage.formats.onnx import external_files, is_beside

LONGEST: Final = 1e9  # seconds that clocks and timers of servers take


@dataclass(frozen=True)
class Limits:
    """How much one worker accepts at once, and how it joins requests into batches: ``app(..., limits=)``.

    Its requests need at most ``queue`` times ``body_bytes`` of memory, and a few copies of the largest request and answer.
    Long answers that clients have not read yet take 512 MiB at most, or one of them more; short ones (128 KiB) do not count.

    :ivar body_bytes: most bytes in a request.
    :ivar rows: most rows in a request.
    :ivar classes: most classes in members' outputs.
    :ivar members: most members in members' outputs that a request brings.
    :ivar queue: most requests that are accepted and not yet answered; others get 503 with ``Retry-After``.
    :ivar batch_rows: most rows in a batch: small requests are joined, large ones are split.
    :ivar batch_delay: seconds that an idle worker waits for more requests. While it is busy they gather anyway.
    :ivar timeout: seconds until a request gets 504, or 408 if its body has not arrived.
    :ivar values: most values in an answer, and most rows times classes that a request may have computed.

    >>> Limits(rows=1000, timeout=5).batch_rows
    1024
    """

    body_bytes: int = 32 << 20
    rows: int = 10_000
    classes: int = 10_000
    queue: int = 128
    batch_rows: int = 1024
    batch_delay: float = 0.0
    timeout: float = 60.0
    values: int = 10_000_000
    members: int = 10_000

    def __post_init__(self) -> None:
        for name in ("body_bytes", "rows", "classes", "queue", "batch_rows", "values", "members"):
            check_count(getattr(self, name), name)
        if not 0 <= check_real(self.batch_delay, "batch_delay", "a number of seconds") < math.inf:
            raise ValueError(f"batch_delay must be finite and at least 0; got {self.batch_delay!r}.")
        if not 0 < check_real(self.timeout, "timeout", "a number of seconds") <= LONGEST:
            got = number_text(self.timeout)
            raise ValueError(f"timeout must be above 0 and at most {LONGEST:g} seconds; got {got}.")


@dataclass(frozen=True)
class Settings:
    """The settings of a server, as plain values.

    :ivar models: paths of ONNX files; without any, members' outputs are served.
    :ivar output: the name of the files' output that holds the prediction.
    :ivar name: of the model; by default ``credal`` for members' outputs and ``model`` for files.
    """

    models: tuple[str, ...] = ()
    guard: str | None = None
    recalibration: str | None = None
    logits: bool = False
    output: str | None = None
    base: float | None = None
    name: str | None = None
    version: str = "1"
    token_file: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class ModelFile:
    """An ONNX file as it was when the server started, with the files that hold its larger weights.

    :ivar digest: SHA-256 of the file and of its weights.
    :ivar content: of the file; None where another machine reads the path, which must have the digest then.
    :ivar weights: files with weights that the file names, by that name: relative to its folder, and inside it.
    """

    path: str
    digest: str
    content: bytes | None = field(default=None, repr=False)
    weights: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: str | os.PathLike[str], /) -> ModelFile:
        """Read a file, and those beside it that it names. ONNX Runtime says which are missing."""
        path = os.fspath(path)
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file", path) from None
        files = {name: Path(path).parent / name for name in sorted(_external(content)) if is_beside(name)}
        weights = {name: file.read_bytes() for name, file in files.items() if file.is_file()}
        parts = [content, *(part for name in weights for part in (name.encode(), weights[name]))]
        digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
        return cls(path, digest, content, weights)

    @contextmanager
    def opened(self) -> Iterator[str | bytes]:
        """The bytes for ONNX Runtime, or a path in a temporary folder if they name other files."""
        file = self if self.content is not None else ModelFile.read(self.path)
        if file.digest != self.digest:
            raise ValueError(f"{self.path} is not the file that the server was started with; start it anew.")
        content = file.content or b""
        if not _external(content):
            yield content
            return
        with TemporaryDirectory(prefix="credalens-model-", ignore_cleanup_errors=True) as folder:
            for name, part in {Path(self.path).name: content, **file.weights}.items():
                target = Path(folder, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(part)
            yield os.path.join(folder, Path(self.path).name)  # noqa: PTH118 - a text, as ONNX Runtime wants it


def _external(content: bytes) -> set[str]:
    """The files that the bytes of a model name; of a damaged file none: ONNX Runtime says what is wrong with it."""
    try:
        return external_files(content)
    except ValueError:
        return set()


@dataclass(frozen=True)
class Content:
    """The guard, recalibration, tokens and models that settings name, as they were when the server started."""

    guard: Guard | None = None
    recalibration: Recalibration | None = None
    tokens: tuple[str, ...] = field(default=(), repr=False)
    models: tuple[ModelFile, ...] = ()

    @classmethod
    def read(cls, settings: Settings, /) -> Content:
        """Read the files; raises where one is missing or wrong."""
        return cls(
            None if settings.guard is None else Guard.load(settings.guard),
            None if settings.recalibration is None else Recalibration.load(settings.recalibration),
            () if settings.token_file is None else read_tokens(settings.token_file),
            tuple(ModelFile.read(path) for path in settings.models),
        )

    def for_cluster(self) -> Content:
        """Replace the bytes of models by their digests: machines of a cluster read the files themselves."""
        return replace(self, models=tuple(replace(model, content=None, weights={}) for model in self.models))
