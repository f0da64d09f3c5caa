"""Networks whose training diverges are left out and said to be; other errors stop the run."""

from __future__ import annotations

import pytest

from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run
from reproduction.tests.tiny_preset import TINY

pytestmark = pytest.mark.usefixtures("hurry")


def test_diverged_networks_are_marked_left_out_and_not_tried_again(tmp_path):
    engine = FakeEngine(diverging={("bnnr", 0)})
    result = run(tmp_path, "ablation BNNsVGG16EU", engine=engine).results[0]
    counts = {cell.keys.method: cell.ours.n for cell in result.cells}
    assert counts == {"BNNR": TINY.bnn_runs - 1, "BNNF": TINY.bnn_runs}
    assert {kind.method: kind.diverged for kind in result.models} == {"BNNR": 1, "BNNF": 0}
    assert len(list((tmp_path / "smoke" / "diverged").iterdir())) == 1
    again = FakeEngine()
    run(tmp_path, "ablation BNNsVGG16EU", engine=again)
    assert again.trainings == []


def test_a_table_whose_runs_all_diverged_says_so(tmp_path):
    engine = FakeEngine(diverging={("bnnr", seed) for seed in range(TINY.bnn_runs)})
    result = run(tmp_path, "1000samplesBNNREU", engine=engine).results[0]
    assert result.status == "not measured"
    assert {cell.reason for cell in result.cells} == {f"all {TINY.long_runs} runs diverged"}


def test_students_of_a_diverged_teacher_are_left_out_too(tmp_path):
    engine = FakeEngine(diverging={("snn", seed) for seed in range(TINY.members)})
    result = run(tmp_path, "UndiserableEDDfair", engine=engine).results[0]
    assert result.status == "not measured"


def test_errors_of_other_kinds_stop_the_run(tmp_path):
    class Broken(FakeEngine):
        def train(self, specs, data, folder):
            raise FloatingPointError("something else")

    with pytest.raises(FloatingPointError, match="something else"):
        run(tmp_path, "OODMainTU", engine=Broken())
