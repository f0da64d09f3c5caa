"""Content: what the files of some settings held when the server started, for all of its processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from credalens.guard import Guard
from credalens.serve.models.model_file import ModelFile
from credalens.serve.settings import Settings
from credalens.serve.tokens import read_tokens


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
