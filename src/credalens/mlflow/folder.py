"""The files of a saved model: its description, its members and its guard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from credalens import __version__
from credalens.guard import Guard

DESCRIPTION: Final = "credal.json"
GUARD: Final = "guard.json"
WEIGHTS: Final = "weights.safetensors"


@dataclass(frozen=True)
class Description:
    """What makes a model of the files beside it.

    :ivar kind: "torch" or "onnx".
    :ivar scores: of the catalogue, one column each.
    :ivar options: of ``CredalWrapper``, or of ``onnx_members``.
    :ivar members: how many there are.
    :ivar factory: "module:function" that builds one member for torch, with ``factory_options`` as its keywords.
    """

    kind: str
    scores: tuple[str, ...]
    options: dict[str, Any]
    members: int
    factory: str = ""
    factory_options: dict[str, Any] = field(default_factory=dict)
    version: str = __version__

    def write(self, folder: Path, /) -> None:
        """Write it into a folder."""
        (folder / DESCRIPTION).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, /) -> Description:
        """Read what :meth:`write` wrote."""
        values = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        return cls(**values | {"scores": tuple(values["scores"])})


def member_files(count: int, /) -> Sequence[str]:
    """The names of the ONNX files."""
    return [f"member_{n}.onnx" for n in range(count)]


def read_guard(folder: Path, /) -> Guard | None:
    """The guard, where there is one."""
    return Guard.load(folder / GUARD) if (folder / GUARD).exists() else None
