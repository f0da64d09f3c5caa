"""The README's examples are run, and every number in their comments is checked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from credalens.storage import open_predictions
from tests.doc_blocks import python_blocks, run_block, stand_ins

PAGE = Path(__file__).parents[1] / "README.md"
README = PAGE.read_text()
RESULTS = PAGE.parent / "results"
PRESETS = ("fast", "scratch", "text", "fast-resnet50-128")


def test_it_is_short():
    assert len(README.splitlines()) <= 150


def test_the_thirty_second_example_prints_what_it_says():
    assert run_block(python_blocks(PAGE)[0], {}) == 7


def test_every_other_block_runs_as_it_stands(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = stand_ins()
    assert sum(run_block(block, names) for block in python_blocks(PAGE)[1:]) == 2
    assert names["scores"].shape == (6,)
    assert isinstance(names["scores"], np.ndarray)
    assert names["prediction"].n_members == 5
    assert open_predictions("id.npz").shape == (5, 6, 4)


def test_every_link_to_a_file_leads_somewhere():
    for target in re.findall(r'(?:\]\(|src=")([^)#"]+)', README):
        if "://" not in target:
            assert (Path(__file__).parents[1] / target).exists(), target


def test_the_headline_table_is_the_result_file():
    pytest.importorskip("torch")
    from credalens_paper.pages.write_pages import headline_table
    from credalens_paper.results.records import read_result

    shown = README.partition("<!-- headline -->\n")[2].partition("\n<!-- /headline -->")[0]
    folder = Path(__file__).parents[1] / "results" / "fast"
    assert shown == headline_table([read_result(folder / f"{label}.json") for label in ("OODMain", "OODMainTU")])


def test_the_pages_of_results_are_generated_from_the_result_files():
    pytest.importorskip("torch")
    from credalens_paper.pages.pictures import draw_pictures
    from credalens_paper.pages.write_pages import render_pages
    from credalens_paper.results.records import read_repeated, read_results

    folder, folders = RESULTS, [RESULTS / name for name in PRESETS]
    results = read_results(*folders)
    pictures = draw_pictures(results)
    pages = render_pages(results, read_repeated(*folders), pictured=pictures)
    for name, text in pages.items():
        assert (folder / name).read_text() == f"{text}\n", name
    stored = {str(path.relative_to(folder)) for kind in ("tables", "figures") for path in (folder / kind).iterdir()}
    drawn = {f"tables/{label}.svg" for label in pictures}
    assert stored | {"README.md", "machines.md", "repeated.md", "comparisons.md"} == set(pages) | drawn
