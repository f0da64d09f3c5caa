"""The extra ``ray``: a folder of Parquet scored by workers on this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from credalens.engines import score_folder_on_ray
from credalens.storage import save_predictions

if __name__ == "__main__":
    probs = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 50))
    with tempfile.TemporaryDirectory() as name:
        (table := Path(name) / "table").mkdir()
        for part in range(2):
            save_predictions(table / f"part-{part}.parquet", probs)
        assert score_folder_on_ray(table, Path(name) / "scores", workers=1).scores.rows == 100
