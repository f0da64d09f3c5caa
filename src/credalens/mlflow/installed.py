"""What the running credalens was installed from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Wheel:
    """The archive that credalens was installed from.

    :ivar name: of the file, without folders and hosts, which are nobody else's business.
    :ivar sha256: as the installer wrote it down.
    """

    name: str
    sha256: str

    @classmethod
    def installed(cls) -> Wheel | None:
        """The archive of the running credalens, or None: installers record it for files and addresses, not for an index."""
        try:
            recorded = json.loads(metadata.distribution("credalens").read_text("direct_url.json") or "{}")
        except metadata.PackageNotFoundError:
            return None
        archive = recorded.get("archive_info", {})
        sha256 = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").removeprefix("sha256=")
        return cls(PurePosixPath(unquote(urlsplit(recorded["url"]).path)).name, sha256) if sha256 else None
