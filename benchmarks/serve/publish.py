"""What a run measured: printed as a table, written as a file and into the document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path("docs/serving.md")


def publish(content: dict[str, Any], table: str, results: Path, /, *, dry: bool, page: Path = PAGE) -> None:
    """Print the table; unless ``dry``, write the file, and the table in place of the one with the same headings."""
    print(table)  # noqa: T201
    if dry:
        return
    results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    headings, _, _ = table.partition("\n")
    document = page.read_text(encoding="utf-8")
    page.write_text(re.sub(re.escape(headings) + r"(\n\|.*)*", lambda _: table, document), encoding="utf-8")
