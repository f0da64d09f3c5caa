"""Reproductions write many small files and draw many panels; tests of their numbers need not wait for disk and ink."""

from __future__ import annotations

import os

import pytest
from filelock import FileLock

from reproduction.tests.tiny_preset import TINY


@pytest.fixture
def hurry(monkeypatch):
    _hurry(monkeypatch)


def _hurry(patch):
    """Leave out what would take most of the time: the disk after each small file, and all panels of a figure but one."""
    from credalens.plots import save_figure
    from credalens_paper.results import drawing

    def save_one_panel(panels, path, **options):
        for axes in panels.axes[1:]:
            axes.remove()
        return save_figure(panels, path, **options)

    patch.setattr(os, "fsync", lambda handle: None)
    patch.setattr(drawing, "save_figure", save_one_panel)


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory, worker_id):
    """The store of one run of everything with real networks, made by the first process that asks for it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "smoke-run"
    with FileLock(f"{folder}.lock"):
        if not (folder / "finished").exists():
            _reproduce_everything(folder)
            (folder / "finished").touch()
    return folder / "smoke"


def _reproduce_everything(folder):
    """On one thread, so that tests side by side do not fight for cores."""
    import torch

    from credalens_paper.pipeline.engines import TorchEngine
    from credalens_paper.pipeline.measure_entries import reproduce
    from credalens_paper.results import drawing

    def draw_first_panel(panels, *options, draw_grid=drawing._draw_grid):
        return draw_grid(panels[:1], *options)

    options = {"preset": TINY, "out": folder, "measures": ["GH"], "paper_solver": True, "threads": 1}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with pytest.MonkeyPatch.context() as patch:
            _hurry(patch)
            patch.setattr(drawing, "_draw_grid", draw_first_panel)
            outcome = reproduce(["all"], engine=TorchEngine(device="cpu"), **options)
    finally:
        torch.set_num_threads(threads)
    assert outcome.unfinished == {}


@pytest.fixture(scope="session")
def smoke_results(smoke_run):
    """The results of that run by their labels."""
    from credalens_paper.results.records import read_results

    return {result.label: result for result in read_results(smoke_run / "results")}
