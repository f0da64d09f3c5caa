"""What a server was started with: guard, tokens and models, read once for all of its processes.

A model is an ONNX file as it was then, with the files that hold its larger weights.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from credalens.guard import Guard
from credalens.serve.settings import Settings
from credalens.serve.tokens import read_tokens
from credalens.storage.formats.onnx import external_files, is_beside


@dataclass(frozen=True)
class ModelFile:
    """Bytes that every process loads, whatever happens to the file meanwhile.

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
        """Read a file, and those that it names."""
        path = os.fspath(path)
        try:
            content = Path(path).read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file", path) from None
        weights = {name: file.read_bytes() for name, file in _external(Path(path).parent, content)}
        return cls(path, _digest(content, weights), content, weights)

    def without_content(self) -> ModelFile:
        """What another machine needs to know, which has the same file."""
        return replace(self, content=None, weights={})

    @contextmanager
    def opened(self) -> Iterator[str | bytes]:
        """What ONNX Runtime loads: the bytes, or, where these name other files, a path in a folder of the moment."""
        file = self if self.content is not None else self._read_again()
        content = file.content or b""
        if not _locations(content):
            yield content
            return
        with TemporaryDirectory(prefix="credalens-model-", ignore_cleanup_errors=True) as folder:
            for name, part in {Path(self.path).name: content, **file.weights}.items():
                target = Path(folder, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(part)
            yield os.path.join(folder, Path(self.path).name)  # noqa: PTH118 - a text, as ONNX Runtime wants it

    def _read_again(self) -> ModelFile:
        file = ModelFile.read(self.path)
        if file.digest != self.digest:
            raise ValueError(f"{self.path} is not the file that the server was started with; start it anew.")
        return file


def _external(folder: Path, content: bytes) -> Iterator[tuple[str, Path]]:
    """Files in the folder that the bytes of a model name. ONNX Runtime says which it misses."""
    for name in sorted(_locations(content)):
        if is_beside(name) and (folder / name).is_file():
            yield name, folder / name


def _locations(content: bytes) -> set[str]:
    """Of a damaged file none: ONNX Runtime says what is wrong with it."""
    with suppress(ValueError):
        return external_files(content)
    return set()


def _digest(content: bytes, weights: Mapping[str, bytes]) -> str:
    parts = [content, *(part for name in sorted(weights) for part in (name.encode(), weights[name]))]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@dataclass(frozen=True)
class Content:
    """The guard, the tokens and the models of a server: read once, so that workers cannot differ.

    A worker that is replaced gets the same again, even if a file was changed, damaged or removed meanwhile.
    """

    guard: Guard | None = None
    tokens: tuple[str, ...] = field(default=(), repr=False)
    models: tuple[ModelFile, ...] = ()

    @classmethod
    def read(cls, settings: Settings, /) -> Content:
        """Read the files; raises where one is missing or wrong."""
        return cls(
            None if settings.guard is None else Guard.load(settings.guard),
            () if settings.token_file is None else read_tokens(settings.token_file),
            tuple(ModelFile.read(path) for path in settings.models),
        )

    def for_cluster(self) -> Content:
        """With the digests of models instead of their bytes: machines of a cluster read the files themselves."""
        return replace(self, models=tuple(model.without_content() for model in self.models))
