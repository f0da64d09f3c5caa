"""What the files about the project say of each other: versions, ranges, extras, make targets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LIBRARY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAPER = tomllib.loads((ROOT / "reproduction" / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = LIBRARY["project"]["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def requirements(*extras: str) -> list[Requirement]:
    """Those of the base and of some extras, without the extras that an extra names."""
    texts = [*LIBRARY["project"]["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]
    return [found for found in map(Requirement, texts) if found.name != "credalens"]


def pinned(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pairs = (re.split("==|<=", line) for line in lines if not line.startswith("#"))
    return {canonicalize_name(package): version for package, version in pairs}


def test_both_distributions_take_their_version_from_one_line():
    sources = [
        (folder / project["tool"]["hatch"]["version"]["path"]).resolve()
        for folder, project in ((ROOT, LIBRARY), (ROOT / "reproduction", PAPER))
    ]
    assert sources == [ROOT / "src" / "credalens" / "__init__.py"] * 2
    assert LIBRARY["project"]["dynamic"] == PAPER["project"]["dynamic"] == ["version"]


def test_the_oldest_versions_that_are_tested_are_the_lower_bounds():
    oldest = pinned("constraints-oldest.txt")
    for requirement in requirements("cli", "sklearn", "report"):
        (bound,) = (part.version for part in requirement.specifier if part.operator == ">=")
        assert f"{oldest[canonicalize_name(requirement.name)]}.0".startswith(f"{bound}."), requirement.name


def test_the_versions_of_development_are_in_the_ranges():
    pins = pinned("constraints.txt")
    paper = [Requirement(text) for text in PAPER["project"]["dependencies"] if not text.startswith("credalens")]
    for requirement in [*requirements(*EXTRAS), *paper]:
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement.name


def test_the_notices_of_what_pages_carry_are_files_of_the_licence():
    named = LIBRARY["project"]["license-files"]
    assert {"LICENSE", "src/credalens/report/assets/NOTICE.txt"} <= set(named)
    assert all((ROOT / name).is_file() for name in named)


def test_every_extra_has_a_script_that_tries_it():
    scripts = {path.stem for path in (ROOT / "tests" / "smoke").glob("*.py")}
    assert scripts >= {"base", "paper", *EXTRAS.keys() - {"all", "dev", "docs"}}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_only_make_targets(workflow):
    targets = set(re.findall(r"^([a-z%-]+):", MAKEFILE, flags=re.MULTILINE))
    scripts = {f"smoke-{path.stem}" for path in (ROOT / "tests" / "smoke").glob("*.py")} | {"smoke-types"}
    runs = re.findall(r"^ +(?:- )?run: ?(.*)$", workflow.read_text(encoding="utf-8"), flags=re.MULTILINE)
    commands = [run.split() for run in runs if run]
    assert commands
    for make, *words in commands:
        assert make == "make"
        called = {word for word in words if re.fullmatch(r"[a-z-]+", word)}
        assert called
        assert called <= targets | scripts


def test_there_is_a_workflow_for_each_occasion():
    assert {path.stem for path in WORKFLOWS} == {"checks", "weekly", "release"}
