"""The README's first example is run, and every number in its comments is checked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


def numbers(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"(?<![\w.])\d+\.\d+", text)]


def test_the_thirty_second_example_prints_what_it_says():
    block = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[0]
    setup, _, lines = block.partition("# (members, *batch, classes)\n")
    names: dict[str, object] = {}
    exec(setup, names)  # noqa: S102 - our own README
    checked = 0
    for line in filter(str.strip, lines.splitlines()):
        code, _, comment = line.partition("#")
        value = np.concatenate([np.ravel(np.asarray(x, dtype=float)) for x in np.atleast_1d(eval(code, names))])  # noqa: S307
        if "True" in comment:
            assert comment.split("]")[0].count("True") == value.sum() == 3
        else:
            shown = numbers(comment)
            np.testing.assert_allclose(
                value, shown, atol=0.6 * 10.0 ** -min(len(str(x).partition(".")[2]) for x in shown)
            )
        checked += 1
    assert checked == 7


def test_every_link_to_a_file_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (Path(__file__).parents[1] / target).exists(), target


def test_the_headline_table_is_the_result_file():
    pytest.importorskip("torch")
    from credalens.paper.headline import headline

    root = Path(__file__).parents[1]
    shown = README.partition("<!-- headline -->\n")[2].partition("\n<!-- /headline -->")[0]
    assert shown == headline(root / "results" / "fast" / "OODMain.json")


def test_the_tables_of_speed_are_the_result_files():
    from credalens.bench.headline import device_table, speed_table

    results = Path(__file__).parents[1] / "results"
    tables = {"speed": speed_table(results / "benchmark.json"), "gpu": device_table(results / "benchmark_gpu.json")}
    for name, table in tables.items():
        assert README.partition(f"<!-- {name} -->\n")[2].partition(f"\n<!-- /{name} -->")[0] == table


def test_the_results_page_is_generated_from_the_result_files():
    pytest.importorskip("torch")
    from credalens.paper.rendering import render_results
    from credalens.paper.reproduce import read_results

    root = Path(__file__).parents[1]
    page = (root / "results" / "README.md").read_text()
    assert page.strip() == render_results(read_results(root / "results" / "fast")).strip()


def test_the_findings_are_generated_from_the_result_files():
    pytest.importorskip("torch")
    from credalens.paper.findings import render_findings
    from credalens.paper.reproduce import read_results

    root = Path(__file__).parents[1]
    assert (root / "docs" / "findings.md").read_text() == render_findings(read_results(root / "results" / "fast"))
