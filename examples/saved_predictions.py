"""Saved predictions: score a file that need not fit in memory, and find the inputs the members disagree on.

Five small networks predict scikit-learn's digits and upside-down digits; their probabilities go into files, as a
training script would leave them. Then the files are scored in chunks, on disk, and the most uncertain row is looked up.

Run: python examples/saved_predictions.py (a few seconds on one core)
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from credalens import wrap
from credalens.scoring import score_file
from credalens.storage import open_predictions, read_labels, save_predictions


def train_members(images: np.ndarray, labels: np.ndarray, *, members: int = 5) -> list[MLPClassifier]:
    """The same network from different starting weights, stopped early."""
    networks = [MLPClassifier((32,), max_iter=300, tol=1e-3, random_state=seed) for seed in range(members)]
    return [network.fit(images, labels) for network in networks]


def main() -> None:
    """Train, save, score, look."""
    images, labels = load_digits(return_X_y=True)
    seen, unseen, seen_labels, unseen_labels = train_test_split(images / 16, labels, random_state=0)
    members = train_members(seen, seen_labels)
    flipped = unseen.reshape(-1, 8, 8)[:, ::-1].reshape(-1, 64)
    with tempfile.TemporaryDirectory() as folder:
        for name, inputs in (("digits", unseen), ("flipped", flipped)):
            probs = np.stack([member.predict_proba(inputs) for member in members]).astype(np.float32)
            save_predictions(f"{folder}/{name}.parquet", probs, unseen_labels)
            look(Path(folder), name)


def look(folder: Path, name: str) -> None:
    """Score a file and show the row that the members disagree on most."""
    source, target = folder / f"{name}.parquet", folder / f"{name}-scored.parquet"

    # The job behind `credalens score digits.parquet -o digits-scored.parquet`.
    summary = score_file(source, target, chunk_rows=100)
    share = f"a single possible class in {summary.determinacy:.0%} of {summary.rows} rows"
    print(f"{name}: epistemic uncertainty {summary.means['epistemic']:.3f} bits on average, {share}")

    worst = int(np.argmax(pq.read_table(target, columns=["epistemic"])["epistemic"].to_numpy()))
    predictions = open_predictions(source)
    row = wrap(predictions.read(worst, worst + 1))  # nothing but this row is kept in memory
    label = int(row.predict()[0])
    truth = read_labels(source, rows=predictions.rows, classes=predictions.classes)[worst]
    interval = f"{row.lower[0, label]:.2f} to {row.upper[0, label]:.2f}"
    print(f"  most contradictory: row {worst}, a {truth}, taken for a {label} with probability {interval}")


if __name__ == "__main__":
    main()
