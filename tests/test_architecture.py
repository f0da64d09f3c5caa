"""Imports point one way, and `import credalens` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "credalens"

# From the bottom up: a module may import only from layers at or below its own.
LAYERS = [
    {"arrays"},
    {"checks"},
    {"kernels"},
    {"core"},
    {"cuda"},
    {"prediction", "datasets", "theme"},
    {"storage"},
    {"guard"},
    {"evaluation", "scoring", "bayes", "sklearn"},
    {"plots", "torch", "engines"},
    {"report"},
    {"serve"},
    {"mlflow"},
    {"demo"},
    {"cli"},
    {"__main__"},
]
FRAMEWORKS = {"torch", "jax", "cupy", "matplotlib", "pandas", "polars", "pyarrow", "ray", "transformers", "sklearn"}


def layer(module: str) -> int:
    for depth, names in enumerate(LAYERS):
        if module in names:
            return depth
    pytest.fail(f"credalens.{module} has no place in the import order; give it one in LAYERS")


def imports(path: Path) -> set[str]:
    """Absolute names of everything the file imports at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            found.add(node.module)
    return found


def own_part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = [p for p in sorted(SOURCE.rglob("*.py")) if own_part(p) != "__init__"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_upward_only(path):
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "credalens" or len(parts) == 1:
            continue
        allowed = layer(parts[1]) <= layer(own_part(path)) or (own_part(path), parts[1]) in LAZY
        assert allowed, f"{path.relative_to(SOURCE)} imports {name}"


# A summary offers its prediction as a method, a prediction its file, an evaluation its report; the import happens in the call.
LAZY = {("core", "prediction"), ("core", "storage"), ("prediction", "storage"), ("evaluation", "report")}


@pytest.mark.parametrize("path", [p for p in FILES if own_part(p) in ("core", "arrays", "checks", "prediction")])
def test_the_core_imports_no_framework(path):
    assert not {name.split(".")[0] for name in imports(path)} & FRAMEWORKS


def test_importing_credalens_is_light():
    heavy = sorted(FRAMEWORKS | {"numba", "scipy", "typer", "rich"})
    code = f"import sys, credalens; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_parts_are_found_by_name_and_names_by_keyword():
    code = """
import credalens, sys
assert "credalens.evaluation" not in sys.modules
assert credalens.evaluate is credalens.evaluation.evaluate
print(credalens.evaluation.ood_metrics(id_scores=[0.1, 0.2], ood_scores=[0.3]).auroc)
print(credalens.wrap(probs=[[0.5, 0.5]]).n_members, credalens.sklearn.CredalClassifier.__name__)
low = high = [0.5, 0.5]
print(credalens.lower_entropy(lower=low, upper=high), credalens.generalized_hartley(lower=low, upper=high))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1.0", "1", "CredalClassifier", "1.0", "0.0"]


# Where a module names another one that needs it: results whose methods call a later room, or types of the object they serve.
BACKWARD = {
    ("credalens.core.summary", "credalens.prediction"),
    ("credalens.core.recalibration", "credalens.storage.saved"),
    ("credalens.prediction", "credalens.storage.prediction_file"),
    ("credalens.evaluation.evaluate", "credalens.evaluation.sentences"),
    ("credalens.evaluation.evaluate", "credalens.report.page"),
    ("credalens.evaluation.evaluate", "credalens.report.terminal"),
}


def imported_modules(path: Path) -> set[str]:
    """The modules of the library that a file imports at any depth, also lazily and for types."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_there_is_no_knot_of_imports():
    """Nor would there be one if what is imported late were imported at once."""
    names = {".".join(p.relative_to(SOURCE.parent).with_suffix("").parts): p for p in FILES if p.name != "__init__.py"}
    edges = {name: (imported_modules(path) & names.keys()) - {name} for name, path in names.items()}
    assert all(target in edges[source] for source, target in BACKWARD), "an entry of BACKWARD is no longer needed"
    edges = {name: {to for to in targets if (name, to) not in BACKWARD} for name, targets in edges.items()}
    while free := [name for name, targets in edges.items() if not targets]:
        edges = {name: targets.difference(free) for name, targets in edges.items() if name not in free}
    assert not edges, f"these import one another, directly or by others: {sorted(edges)}"
