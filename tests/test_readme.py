"""The README's first example is run, and every number in its comments is checked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from credalens import MemberSummary
from credalens.storage import open_predictions

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


def stand_ins() -> dict[str, object]:
    """Something for every name that the README's blocks leave to the reader."""
    import torch
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    def network(*last: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(9, 4), *last)

    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), size=(5, 6))
    images, (x, y) = torch.rand(6, 1, 3, 3), load_iris(return_X_y=True)
    other = MemberSummary()
    other.update(probs[:2])
    return {
        "model_a": network(), "model_b": network(), "model_c": network(), "network": network(),
        "dropout_network": network(nn.Dropout()), "images": images, "loader": DataLoader(TensorDataset(images), 3),
        "fitted_random_forest": (forest := RandomForestClassifier(10, random_state=0).fit(x, y)), "X": x, "y": y, "x": images,
        "pipeline": make_pipeline(forest), "gradient_boosting": GaussianNB(),
        "probs": probs, "labels": np.arange(6) % 4, "other_machine": other,
        "members": [lambda inputs, row=row: row for row in probs[2:]],
    }  # fmt: skip


def test_every_other_block_runs_as_it_stands(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = stand_ins()
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[1:]:
        exec(block, names)  # noqa: S102 - our own README
    assert names["scores"].shape == (6,)
    assert isinstance(names["scores"], np.ndarray)
    assert names["prediction"].n_members == 5
    assert open_predictions("id.npz").shape == (5, 6, 4)
    for values in (("a", "b"), ("low", "high")):
        (comment,) = re.findall(rf"auroc.{values[0]}, auroc.{values[1]} +# (.*)", README)
        assert numbers(comment) == [round(getattr(names["auroc"], name), 3) for name in values]


def test_every_link_to_a_file_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (Path(__file__).parents[1] / target).exists(), target


def test_the_headline_table_is_the_result_file():
    pytest.importorskip("torch")
    from credalens_paper.findings.headline import headline_table
    from credalens_paper.results.records import read_result

    shown = README.partition("<!-- headline -->\n")[2].partition("\n<!-- /headline -->")[0]
    folder = Path(__file__).parents[1] / "results" / "fast"
    assert shown == headline_table([read_result(folder / f"{label}.json") for label in ("OODMain", "OODMainTU")])


def test_the_tables_of_speed_are_the_result_files():
    from benchmarks.headline import device_table, speed_table

    results = Path(__file__).parents[1] / "results"
    tables = {"speed": speed_table(results / "benchmark.json"), "gpu": device_table(results / "benchmark_gpu.json")}
    for name, table in tables.items():
        assert README.partition(f"<!-- {name} -->\n")[2].partition(f"\n<!-- /{name} -->")[0] == table


def test_the_pages_of_results_are_generated_from_the_result_files():
    pytest.importorskip("torch")
    from credalens_paper.findings.results_pages import render_pages
    from credalens_paper.results.records import read_results

    folder = Path(__file__).parents[1] / "results"
    pages = render_pages(read_results(folder / "fast", folder / "scratch"))
    for name, text in pages.items():
        assert (folder / name).read_text() == f"{text}\n", name
    stored = {str(path.relative_to(folder)) for kind in ("tables", "figures") for path in (folder / kind).iterdir()}
    assert stored | {"README.md", "machines.md"} == set(pages)


def test_the_findings_are_generated_from_the_result_files():
    pytest.importorskip("torch")
    from credalens_paper.findings.document import render_findings
    from credalens_paper.results.records import read_results

    root = Path(__file__).parents[1]
    results = read_results(root / "results" / "fast", root / "results" / "scratch")
    assert (root / "docs" / "findings.md").read_text() == render_findings(results)


def test_the_page_of_entries_measured_twice_is_generated_from_the_result_files():
    pytest.importorskip("torch")
    from credalens_paper.results.records import read_results
    from credalens_paper.results.rendering.pages import render_result

    folder = Path(__file__).parents[1] / "results"
    first = {result.label for result in read_results(folder / "fast")}
    twice = [result for result in read_results(folder / "scratch") if result.label in first]
    assert (folder / "scratch.md").read_text() == "".join(f"{render_result(result)}\n\n" for result in twice)
