"""Guards, sets and alarms in files: JSON that a person can read, written whole or not at all, with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from credalens.storage.atomic import atomic_file, check_file
from credalens.storage.formats.files import restoring

T = TypeVar("T")
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class SavedFormat:
    """Format of a saved file: the kind of thing, such as "guard", the version of its fields, and how earlier ones become these.

    >>> import tempfile
    >>> path, saved = tempfile.mkdtemp() + "/rule.json", SavedFormat("rule")
    >>> saved.write(path, {"limit": math.inf, "scores": np.array([0.5, 1.0])})
    >>> print(Path(path).read_text())
    {
      "format": "credalens-rule-1",
      "limit": "inf",
      "scores": [0.5, 1.0],
      "checksum": "ef1e36c310a6f1f5"
    }
    <BLANKLINE>
    >>> saved.read(path, lambda fields: (number(fields["limit"]), numbers(fields["scores"])))
    (inf, array([0.5, 1. ]))
    """

    what: str
    version: int = 1
    earlier: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the format in the file, such as "credalens-guard-1"."""
        return f"credalens-{self.what}-{self.version}"

    def write(self, path: str | os.PathLike[str], fields: Fields, /) -> None:
        """Write ``fields``: numbers, texts, arrays, and lists and dictionaries of these; NaN is refused."""
        plain = {"format": self.name, **plain_fields(fields)}
        text = _indented({**plain, "checksum": checksum(plain)}, "")
        with atomic_file(check_file(path)) as file:
            file.write(text.encode() + b"\n")

    def read(self, path: str | os.PathLike[str], restore: Callable[[dict[str, Any]], T], /) -> T:
        """Read a file and return ``restore(fields)``; whatever is wrong with the fields, the error names the file."""
        with restoring(path, f"{self.what} ({self.name})"):
            content = Path(path).read_bytes()
            return restore(self._checked(json.loads(content.decode(), parse_constant=_refuse)))

    def _checked(self, stored: Any) -> dict[str, Any]:
        if not isinstance(stored, dict):
            raise ValueError("it is not a JSON object, { ... }.")
        name = str(stored.pop("format"))
        if (parsed := re.fullmatch(rf"credalens-{self.what}-(\d{{1,9}})", name)) is None:
            raise ValueError(f"its format is {name!r}.")
        if (version := int(parsed[1])) > self.version:
            raise ValueError(
                f"its format is {name}, of a newer credalens. Update credalens, or make it again with this one."
            )
        if version < self.version and version not in self.earlier:
            raise ValueError(f"its format is {name}, which is no longer read. Make it again.")
        if stored.pop("checksum") != checksum({"format": name, **stored}):
            raise ValueError("its checksum is wrong: it was damaged, or changed by hand. Make it again.")
        return stored if version == self.version else self.earlier[version](stored)


class Saved(ABC):
    """Something that is saved in a format of its own."""

    FORMAT: ClassVar[SavedFormat]

    @abstractmethod
    def saved_fields(self) -> dict[str, Any]:
        """The fields of the file, in their order."""

    @classmethod
    @abstractmethod
    def restored(cls, fields: dict[str, Any], /) -> Self:
        """Make it again from its fields, as they are read from a file; those of earlier versions have become these."""

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON that a person can read; the file appears whole or not at all."""
        self.FORMAT.write(path, self.saved_fields())

    @classmethod
    def load(cls, path: str | os.PathLike[str], /) -> Self:
        """Read what :meth:`save` wrote, to the bit."""
        return cls.FORMAT.read(path, cls.restored)


def checksum(fields: Fields, /) -> str:
    """A short hash of fields as `plain_fields` makes them, whatever their order in the file."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def plain_fields(fields: Fields, /) -> dict[str, Any]:
    """The fields as JSON has them; infinities become the texts "inf" and "-inf"."""
    return {name: _plain(value) for name, value in fields.items()}


def number(value: Any, /) -> float:
    """A number as `SavedFormat.write` wrote it."""
    if isinstance(value, str) and value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"found {value!r} where a number is expected.")
    return float(value)


def numbers(values: Any, /) -> NDArray[np.float64]:
    """One-dimensional numbers as `SavedFormat.write` wrote them, to the bit."""
    if not isinstance(values, list):
        raise TypeError(f"found {values!r} where a list of numbers is expected.")
    return np.array([number(value) for value in values], np.float64)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return plain_fields(value)
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return _refuse("NaN") if math.isnan(value) else str(value)
    return value


def _indented(value: Any, indent: str) -> str:
    """JSON with a line for each field, and lists of numbers on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + "  "
    lines = [f"{inner}{json.dumps(name)}: {_indented(entry, inner)}" for name, entry in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _refuse(constant: str) -> Any:
    raise ValueError(f"found {constant} where a number is expected.")
