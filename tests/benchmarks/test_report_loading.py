"""The document shows the loading times that were measured."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report_loading import PAGE, RESULTS, table

ROOT = Path(__file__).parents[2]


def test_the_document_shows_the_measured_times():
    content = json.loads((ROOT / RESULTS).read_text(encoding="utf-8"))
    assert table(content) in (ROOT / PAGE).read_text(encoding="utf-8")
    assert all(row["bytes"] < 3_000_000 for row in content["pages"])
