"""
Saved predictions
=================

Score a file that need not fit in memory, and look at the row on which members disagree most. Five small networks
predict scikit-learn's digits and the same digits upside down. Their probabilities are saved to files, as a training
script would do. Then the files are scored in chunks.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from credalens import wrap
from credalens.plots import plot_uncertainty_histograms
from credalens.scoring import score_file
from credalens.storage import open_predictions, read_labels, save_predictions

images, labels = load_digits(return_X_y=True)
train, test, train_labels, test_labels = train_test_split(images / 16, labels, random_state=0)
upside_down = test.reshape(-1, 8, 8)[:, ::-1].reshape(-1, 64)
networks = [MLPClassifier((32,), batch_size=64, tol=1e-2, random_state=seed) for seed in range(5)]
members = [network.fit(train, train_labels) for network in networks]

# %%
# Save what the members predict, with labels.
folder = Path(tempfile.mkdtemp())
for name, inputs in (("digits", test), ("upside_down", upside_down)):
    probs = np.stack([member.predict_proba(inputs) for member in members]).astype(np.float32)
    save_predictions(folder / f"{name}.parquet", probs, test_labels)

# %%
# Score: what ``credalens score digits.parquet -o digits-scored.parquet`` does.
epistemic = {}
for name in ("digits", "upside_down"):
    target = folder / f"{name}-scored.parquet"
    summary = score_file(folder / f"{name}.parquet", target, chunk_rows=100)
    print(f"{name}: epistemic uncertainty {summary.means['epistemic']:.3f} bits on average")
    print(f"  a single class is possible in {summary.determinacy:.0%} of {summary.rows} rows")
    epistemic[name] = pq.read_table(target, columns=["epistemic"])["epistemic"].to_numpy()

# %%
# Look at the row that is disputed most; only this row is read.
row = int(np.argmax(epistemic["digits"]))
stored = open_predictions(folder / "digits.parquet")
prediction = wrap(stored.read(row, row + 1))
label = int(prediction.predict()[0])
truth = read_labels(folder / "digits.parquet", rows=stored.rows, classes=stored.classes)[row]
interval = f"{prediction.lower[0, label]:.2f} to {prediction.upper[0, label]:.2f}"
print(f"most disputed: row {row}, a {truth}, predicted as {label} with probability {interval}")

figure, axes = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
plot_uncertainty_histograms(epistemic["digits"], {"upside down": epistemic["upside_down"]}, id_name="digits", ax=axes)
plt.show()
