"""The document shows the runs that were made; answers of other servers are read as they come."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.serve import credal_part
from benchmarks.serve.client import body
from benchmarks.serve.load import RESULTS, table
from benchmarks.serve.publish import PAGE, publish

ROOT = Path(__file__).parents[2]


def test_the_document_shows_the_measured_ratios():
    content = json.loads((ROOT / RESULTS).read_text(encoding="utf-8"))
    assert table(content) in (ROOT / PAGE).read_text(encoding="utf-8")
    assert not any(server["failures"] for cell in content["cells"] for server in cell["servers"].values())


def test_the_document_shows_the_measured_credal_part():
    content = json.loads((ROOT / credal_part.RESULTS).read_text(encoding="utf-8"))
    assert credal_part.table(content) in (ROOT / PAGE).read_text(encoding="utf-8")


def test_a_table_takes_the_place_of_the_one_with_its_headings(tmp_path):
    page, results = tmp_path / "page.md", tmp_path / "results.json"
    page.write_text("# Page\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n")
    before = page.read_text()
    publish({"a": 4}, "| a | b |\n|---|---|\n| 4 | 5 |", results, dry=True, page=page)
    assert page.read_text() == before
    assert not results.exists()
    publish({"a": 4}, "| a | b |\n|---|---|\n| 4 | 5 |", results, dry=False, page=page)
    assert page.read_text() == before.replace("| 1 | 2 |", "| 4 | 5 |")
    assert json.loads(results.read_text()) == {"a": 4}


def test_bodies_in_one_piece_and_in_chunks():
    assert body(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") == b"hello"
    chunks = b"3\r\nhel\r\n4\r\nlo\r\n\r\n0\r\n\r\n"
    assert body(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks) == b"hello\r\n"
