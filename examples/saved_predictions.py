"""Saved predictions: score a file that need not fit in memory, and look at the row on which members disagree most.

Five small networks predict scikit-learn's digits and the same digits upside down. Their probabilities are saved to files,
as a training script would do. Then the files are scored in chunks.

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
    """Networks from different starting weights, stopped early."""
    networks = [MLPClassifier((32,), batch_size=64, tol=1e-2, random_state=seed) for seed in range(members)]
    return [network.fit(images, labels) for network in networks]


def score_and_look(folder: Path, name: str) -> None:
    """Score a file and print the row with the highest epistemic uncertainty."""
    source, target = folder / f"{name}.parquet", folder / f"{name}-scored.parquet"

    # What `credalens score digits.parquet -o digits-scored.parquet` does.
    summary = score_file(source, target, chunk_rows=100)
    print(f"{name}: epistemic uncertainty {summary.means['epistemic']:.3f} bits on average")
    print(f"  a single class is possible in {summary.determinacy:.0%} of {summary.rows} rows")

    epistemic = pq.read_table(target, columns=["epistemic"])["epistemic"].to_numpy()
    row = int(np.argmax(epistemic))
    predictions = open_predictions(source)
    prediction = wrap(predictions.read(row, row + 1))  # reads only this row
    label = int(prediction.predict()[0])
    truth = read_labels(source, rows=predictions.rows, classes=predictions.classes)[row]
    interval = f"{prediction.lower[0, label]:.2f} to {prediction.upper[0, label]:.2f}"
    print(f"  most disputed: row {row}, a {truth}, predicted as {label} with probability {interval}")


def main() -> None:
    """Train, save, score, look."""
    images, labels = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(images / 16, labels, random_state=0)
    upside_down = test.reshape(-1, 8, 8)[:, ::-1].reshape(-1, 64)
    members = train_members(train, train_labels)
    with tempfile.TemporaryDirectory() as folder:
        for name, inputs in (("digits", test), ("upside_down", upside_down)):
            probs = np.stack([member.predict_proba(inputs) for member in members]).astype(np.float32)
            save_predictions(f"{folder}/{name}.parquet", probs, test_labels)
            score_and_look(Path(folder), name)


if __name__ == "__main__":
    main()
