"""Settings: everything that makes an application, as plain values that another process can read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from credalens.serve.limits import Limits


@dataclass(frozen=True)
class Settings:
    """What to serve, and how.

    :ivar models: paths of ONNX files; without any, members' outputs are served.
    :ivar output: the name of the files' output that holds the prediction.
    :ivar name: of the model; by default ``credal`` for members' outputs and ``model`` for files.
    """

    models: tuple[str, ...] = ()
    guard: str | None = None
    logits: bool = False
    output: str | None = None
    base: float | None = None
    name: str | None = None
    version: str = "1"
    token_file: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    limits: Limits = field(default_factory=Limits)

    def to_json(self) -> str:
        """As text, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str, /) -> Settings:
        """What ``to_json`` wrote."""
        fields: dict[str, Any] = json.loads(text)
        tuples = {name: tuple(fields[name]) for name in ("models", "allowed_hosts")}
        return cls(**fields | tuples | {"limits": Limits(**fields["limits"])})
