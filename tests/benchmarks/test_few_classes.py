"""The benchmark of few classes runs on a bundled table, goes on where it was, and says what it measured."""

import json

import pytest

pytest.importorskip("sklearn")

from benchmarks.few_classes import POINTS, main
from credalens.core.scores import SCORES


@pytest.mark.parametrize("model", ["forest in groups", "logistic, bootstrap"])
def test_it_measures_a_bundled_table_once(tmp_path, capsys, model):
    out = tmp_path / "few.json"
    given = ["--out", str(out), "--models", model, "--seeds", "1"]
    main([*given, "--tables", "iris"])
    first = json.loads(out.read_text())
    main([*given, "--tables", "iris", "wine"])
    cells = json.loads(out.read_text())["cells"]
    assert cells[:1] == first["cells"]
    assert [cell["table"] for cell in cells] == ["iris", "wine"]
    for cell in cells:
        assert len(cell["points"]) == len(POINTS)
        assert all(0 <= auroc <= 1 for auroc in cell["shuffled"] + cell["held_out"])
        assert {len(column) for column in cell["guards"].values()} == {len(SCORES)}
    capsys.readouterr()
    main(["--out", str(out), "--summary"])
    printed = capsys.readouterr().out
    assert "## Scores, two classes" in printed  # two are left where one of three is held out
    assert all(f"| {name} " in printed for name in (*SCORES, "intersection, through credal"))


def test_a_table_of_the_folder_needs_it(tmp_path):
    with pytest.raises(ValueError, match="--data"):
        main(["--out", str(tmp_path / "few.json"), "--tables", "adult", "--models", "logistic, bootstrap"])
