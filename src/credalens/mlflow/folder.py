"""The files of a saved model: its description, which has the digests of the others, its members, guard and recalibration."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from credalens import __version__
from credalens.checks.options import check_choice, check_count
from credalens.core.scores import SCORES
from credalens.storage.formats.onnx import is_beside

DESCRIPTION: Final = "credal.json"
GUARD: Final = "guard.json"
RECALIBRATION: Final = "recalibration.json"
WEIGHTS: Final = "weights.safetensors"
MOST_MEMBERS: Final = 100_000
Types = dict[str, tuple[type, ...]]
NONE: Final = type(None)
OPTIONS: Final[dict[str, Types]] = {
    "torch": {
        "samples": (int, NONE), "outputs": (str,), "class_axis": (int,), "hull": (bool,), "vectorised": (bool,),
        "member_chunk": (int, NONE), "base": (int, float), "max_nodes": (int,), "tolerance": (int, float),
    },
    "onnx": {"logits": (bool,), "output": (str, NONE)},
}  # fmt: skip
"""The kinds of models, and the types that each option of ``CredalWrapper`` and of ``onnx_members`` has in the file."""
FIELDS: Final[Types] = {
    "kind": (str,), "scores": (list,), "options": (dict,), "members": (int,), "factory": (str,),
    "factory_options": (dict,), "version": (str,), "files": (dict, NONE), "wheel": (dict, NONE),
}  # fmt: skip
"""The types that the fields of a ``Description`` have in the file."""


def installed_wheel() -> dict[str, str] | None:
    """Name and SHA-256 of the archive that credalens was installed from, as the installer wrote them down.

    The name is without folders and hosts, which are nobody else's business. Of an index installers record none.
    """
    try:
        recorded = json.loads(metadata.distribution("credalens").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return None
    archive = recorded.get("archive_info", {})
    sha256 = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").removeprefix("sha256=")
    name = PurePosixPath(unquote(urlsplit(recorded.get("url", "")).path)).name
    return {"name": name, "sha256": sha256} if sha256 else None


@dataclass(frozen=True)
class Description:
    """The description of a saved model, which makes a model of the files beside it.

    :ivar kind: "torch" or "onnx".
    :ivar scores: of the catalogue, one column each.
    :ivar options: of ``CredalWrapper``, or of ``onnx_members``.
    :ivar factory: "module:function" that builds one member for torch, with ``factory_options`` as its keywords.
    :ivar files: SHA-256 of every other file, by its path in the folder; None in models of earlier versions.
    :ivar wheel: what credalens was installed from, or None where the installation does not say.
    """

    kind: str
    scores: tuple[str, ...]
    options: dict[str, Any]
    members: int
    factory: str = ""
    factory_options: dict[str, Any] = field(default_factory=dict)
    version: str = __version__
    files: dict[str, str] | None = field(default_factory=dict)
    wheel: dict[str, str] | None = None

    def write(self, folder: Path, /) -> None:
        """Write the description into a folder, as the last file, with the digests of the others."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        files = {path.relative_to(folder).as_posix(): _digest(path) for path in paths}
        text = json.dumps(asdict(replace(self, files=files, wheel=installed_wheel())), indent=1)
        (folder / DESCRIPTION).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, /) -> Description:
        """Read what :meth:`write` wrote, and refuse a folder whose other files are not those that were saved."""
        path = folder / DESCRIPTION
        try:
            description = cls._checked({"files": None, "wheel": None} | json.loads(path.read_bytes()))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{path} describes no model that this version of credalens, {__version__}, can load: {error!r}. If a newer one "
                "saved the model, update credalens."
            ) from error
        description._check_files(folder)
        return description

    @classmethod
    def _checked(cls, values: dict[str, Any]) -> Description:
        """Check all fields of the file, and make a description of them; nothing is built before."""
        _check_types(values, FIELDS, "")
        _check_types(values["options"], OPTIONS[check_choice(values["kind"], tuple(OPTIONS), "kind")], "options.")
        for name in values["scores"]:
            check_choice(name, tuple(SCORES), "a score")
        check_count(values["members"], "members", most=MOST_MEMBERS)
        for name, digest in (values["files"] or {}).items():
            if not is_beside(name) or "\0" in name:
                raise ValueError(f"files names {name!r:.80}, which is not in the folder")
            if not isinstance(digest, str):
                raise ValueError(f"files has {digest!r:.80} for {name!r:.80}, expected a SHA-256")
        if values["files"] is not None and values["kind"] == "onnx":
            saved = sum(name.endswith("/member.onnx") and name.count("/") == 1 for name in values["files"])
            if values["members"] != saved:
                raise ValueError(f"members is {values['members']}, and files names those of {saved}")
        if values["wheel"] is not None:
            _check_types(values["wheel"], {"name": (str,), "sha256": (str,)}, "wheel.")
            if len(values["wheel"]) < 2:
                raise ValueError("wheel needs a name and a sha256")
        return cls(**values | {"scores": tuple(values["scores"])})

    def member_files(self) -> Sequence[str]:
        """The ONNX files. Each has a folder of its own, for its external data; earlier versions had neither."""
        earlier = self.files is None
        return [f"member_{n}.onnx" if earlier else f"member_{n}/member.onnx" for n in range(self.members)]

    def _check_files(self, folder: Path) -> None:
        if self.files is None:
            warnings.warn(
                f"the model in {folder} was saved without digests of its files, by an earlier version of credalens: nothing "
                "shows whether its guard was removed or exchanged. Save it again.",
                stacklevel=4,
            )
            return
        files_to_read = {WEIGHTS} if self.kind == "torch" else {*self.member_files()}
        files_to_read |= {name for name in (GUARD, RECALIBRATION) if (folder / name).exists()}
        for name in sorted({*self.files, *files_to_read}):
            if name not in self.files:
                raise ValueError(f"{folder / name} does not belong to the saved model: it was saved without that file.")
            if not (folder / name).is_file():
                raise ValueError(f"{folder / name} is missing, and belongs to the saved model. Copy all of its files.")
            if _digest(folder / name) != self.files[name]:
                raise ValueError(
                    f"{folder / name} is not the file that was saved: its SHA-256 is not that in {DESCRIPTION}. Save the model "
                    "again if the file was exchanged on purpose."
                )


def _check_types(values: dict[str, Any], types: Types, prefix: str) -> None:
    """Refuse names that are not known, and values of other types; a boolean is no integer."""
    for name, value in values.items():
        if name not in types:
            raise ValueError(f"{prefix}{name!r:.80} is not known")
        if type(value) not in types[name]:
            expected = " or ".join("null" if x is NONE else x.__name__ for x in types[name])
            raise ValueError(f"{prefix}{name} is of type {type(value).__name__}, expected {expected}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
