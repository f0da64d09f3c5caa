"""
MC-dropout
==========

One network with dropout made credal: fifty passes in which only the dropout layers are switched on.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from credalens.evaluation import accuracy_rejection_curve, calibration_metrics
from credalens.torch import CredalWrapper

SAMPLES, EPOCHS = 50, 30

# %%
# A network with dropout, which is sampled, and batch normalisation, which is not.
torch.manual_seed(0)
images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
arrays = train_test_split(images.float() / 16, labels, test_size=0.5, random_state=0)
train, test, train_labels, test_labels = arrays

network = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
loader = DataLoader(TensorDataset(train, train_labels), batch_size=128, shuffle=True)
for _ in range(EPOCHS):
    for batch, batch_labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(batch), batch_labels).backward()
        optimizer.step()
network.eval()

# %%
# The wrapper switches the dropout layers on for its passes and leaves the network as it was. ``predict`` walks over a
# loader.
wrapper = CredalWrapper(network, samples=SAMPLES)
prediction = wrapper.predict(DataLoader(TensorDataset(test, test_labels), batch_size=256), seed=0, progress=False)
print(prediction)

# %%
# Fifty passes widen the intervals, so look at both point predictions.
truth = test_labels.numpy()
for name, probs in (("intersection probability", prediction.probability), ("mean of the passes", prediction.mean)):
    metrics = calibration_metrics(probs, truth)
    print(f"{name}: accuracy {metrics.accuracy:.1%}, calibration error {metrics.ece:.3f}")

# %%
# Uncertain predictions are wrong more often: turn the most uncertain ones away, and accuracy on the rest grows.
correct = prediction.predict() == truth
epistemic_correct, epistemic_wrong = prediction.epistemic[correct].mean(), prediction.epistemic[~correct].mean()
print(f"epistemic uncertainty in bits: {epistemic_correct:.2f} if correct, {epistemic_wrong:.2f} if wrong")
set_sizes = prediction.predict_set().sum(-1)
print(f"classes that remain possible: {set_sizes.mean():.2f} on average, one for {(set_sizes == 1).mean():.0%}")

figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for name in ("total", "epistemic", "aleatoric"):
    curve = accuracy_rejection_curve(prediction.score(name), correct)
    axes.plot(curve.rejected, curve.accuracy, label=name)
axes.set(xlabel="share of the digits turned away", ylabel="accuracy on the rest")
axes.legend(frameon=False)
plt.show()
