"""The extra ``report``: a chart, and a page that has charts in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import credalens
from credalens.plots import plot_simplex, save_figure

if __name__ == "__main__":
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 50))
    found = credalens.evaluate(probs, ood={"same": probs}, replicates=40)
    with tempfile.TemporaryDirectory() as name:
        page = found.report(name) / "report.html"
        assert "<svg" in page.read_text(encoding="utf-8")
        save_figure(plot_simplex(probs[:, 0], labels=["a", "b", "c"]).figure, Path(name) / "simplex.svg")
