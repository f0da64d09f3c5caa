"""A reproduction that is stopped, by its stage, its time or a kill, loses nothing and ends with the same numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from credalens_paper.pipeline import job as job_module
from credalens_paper.pipeline.job import Deadline, Images, TimeIsUp
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run

pytestmark = pytest.mark.usefixtures("hurry")


def test_the_stages_can_be_run_one_by_one_and_the_last_without_data(tmp_path, monkeypatch):
    engine = FakeEngine()
    trained = run(tmp_path, "LabelNoise", engine=engine, stop_after="train")
    assert engine.trainings
    assert not engine.predictions
    assert "stopped after the stage 'train'" in trained.unfinished["LabelNoise"]
    predicted = run(tmp_path, "LabelNoise", engine=(second := FakeEngine()), stop_after="predict")
    assert not second.trainings
    assert second.predictions
    assert predicted.results == []
    monkeypatch.setattr(Images, "_read", Mock(side_effect=FileNotFoundError("no data here")))
    finished = run(tmp_path, "LabelNoise", engine=(third := FakeEngine()))
    assert (third.trainings, third.predictions) == ([], [])
    assert finished.results[0].status == "measured"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A table that is made in one run."""
    return run(tmp_path_factory.mktemp("whole"), "GHComparison", engine=FakeEngine()).results[0]


def test_a_run_of_many_short_ones_ends_with_the_numbers_of_one_long_run(tmp_path, monkeypatch, whole):
    """Time passes by one second at every look at the clock, so each run does a few units of work."""
    ticks = iter(range(100_000))
    monkeypatch.setattr(job_module, "time", SimpleNamespace(time=lambda: next(ticks)))
    engine, attempts = FakeEngine(), 0
    while True:
        attempts += 1
        outcome = run(tmp_path / "short", "GHComparison", engine=engine, time_limit=4)
        if not outcome.unfinished:
            break
        assert "time limit of 4 s has passed" in outcome.unfinished["GHComparison"]
    assert attempts > 5
    assert outcome.results[0].cells == whole.cells


def test_labels_after_the_time_limit_are_named_unfinished(tmp_path, monkeypatch):
    ticks = iter(range(100_000))
    monkeypatch.setattr(job_module, "time", SimpleNamespace(time=lambda: next(ticks)))
    outcome = run(tmp_path, "ACreNNStructure", "OODMain", "PIA", engine=FakeEngine(), time_limit=2)
    assert [result.label for result in outcome.results] == ["ACreNNStructure"]
    assert list(outcome.unfinished) == ["OODMain", "PIA"]


KILLED = """
import os, sys
from reproduction.tests.pipeline.fake_engine import FakeEngine
from reproduction.tests.pipeline.small_runs import run

class Killed(FakeEngine):
    def predict(self, *args, **options):
        if len(self.predictions) == 9:
            os.kill(os.getpid(), 9)
        return super().predict(*args, **options)

run(sys.argv[1], "GHComparison", engine=Killed())
"""


def test_a_run_killed_without_warning_goes_on_and_ends_with_the_same_numbers(tmp_path, whole):
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed")]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert done.returncode == -9
    rest = FakeEngine()
    resumed = run(tmp_path / "killed", "GHComparison", engine=rest).results[0]
    assert rest.trainings == []
    assert resumed.cells == whole.cells


def test_a_figure_stopped_after_training_has_trained_everything_it_needs(tmp_path):
    for label in ("OODEUTUVggRes", "entropy_plots_cifar10", "OODEUTUBNNFullRebuttal", "PIA"):
        first, second = FakeEngine(), FakeEngine()
        run(tmp_path / label, label, engine=first, stop_after="train")
        assert first.trainings
        run(tmp_path / label, label, engine=second, stop_after="predict")
        assert (second.trainings, bool(second.predictions)) == ([], True)
        third = FakeEngine()
        assert run(tmp_path / label, label, engine=third).results[0].status == "measured"
        assert (third.trainings, third.predictions) == ([], [])


def test_deadlines_without_a_limit_never_pass():
    Deadline().check()
    with pytest.raises(TimeIsUp, match="run the same command again"):
        Deadline(1, begun=0).check()
