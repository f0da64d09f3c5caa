"""Imports of the reproduction point one way, and the library never imports it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "reproduction" / "src" / "credalens_paper"

# From the bottom up: a module may import only from layers at or below its own.
LAYERS = [
    {"json_records", "origin", "ray_tasks"},
    {"data", "corruptions", "backbones"},
    {"training"},
    {"experiments"},
    {"measures"},
    {"results"},
    {"pipeline", "pages"},
    {"cli"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or path.stem in DEPTH]


def imports(path: Path) -> set[str]:
    """Absolute names of everything the file imports at any depth."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_upward_only(path):
    layer = DEPTH[path.relative_to(SOURCE).parts[0].removesuffix(".py")]
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("credalens_paper.")}
    assert {room for room in rooms if DEPTH[room] > layer} == set()


def test_the_library_does_not_import_the_reproduction():
    files = (ROOT / "src" / "credalens").rglob("*.py")
    assert [path for path in files if any(name.startswith("credalens_paper") for name in imports(path))] == []
