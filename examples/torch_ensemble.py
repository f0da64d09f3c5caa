"""
Five networks
=============

A list of PyTorch models made credal: five small networks learn scikit-learn's digits and meet images of noise.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from credalens.evaluation import ood_metrics
from credalens.plots import plot_member_bars, plot_uncertainty_histograms
from credalens.torch import CredalWrapper

MEMBERS, EPOCHS = 5, 40


def train_member(images: torch.Tensor, labels: torch.Tensor, seed: int) -> nn.Module:
    """A network whose weights and batches depend on the seed."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images[rows]), labels[rows]).backward()
            optimizer.step()
    return network.eval()


# %%
# Train the members as you always do, and wrap the list. They return logits, which is what the wrapper expects by
# default.
images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
arrays = train_test_split(images.float() / 16, labels, test_size=0.5, random_state=0, stratify=labels)
train, test, train_labels, test_labels = arrays
noise = torch.rand(test.shape, generator=torch.Generator().manual_seed(0))

wrapper = CredalWrapper([train_member(train, train_labels, seed) for seed in range(MEMBERS)])
digits, ood = wrapper(test), wrapper(noise)

accuracy = (digits.predict() == test_labels).float().mean()
print(f"{MEMBERS} members, {len(test)} test digits: accuracy {accuracy:.1%}")
print(f"epistemic uncertainty in bits: digits {digits.epistemic.mean():.3f}, noise {ood.epistemic.mean():.3f}")

# %%
# Epistemic uncertainty tells noise from digits.
auroc = ood_metrics(digits.epistemic, ood.epistemic).auroc
print(f"AUROC of epistemic uncertainty for noise: {auroc:.3f}")

figure, axes = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
plot_uncertainty_histograms(digits.epistemic, {"noise": ood.epistemic}, id_name="digits", ax=axes)
plt.show()

# %%
# The digit on which the members disagree most: what each of them says, the bounds, and both point predictions.
row = int(digits.epistemic.argmax())
classes = digits.predict_set()[row].nonzero().flatten().tolist()
print(f"members disagree most on digit {row}: it is a {int(test_labels[row])}, and {classes} remain possible")

members = torch.stack([member(test[row : row + 1]).softmax(-1)[0] for member in wrapper.each_member]).detach()
figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
plot_member_bars(members, class_names=[str(k) for k in range(10)], true_class=int(test_labels[row]), ax=axes)
plt.show()

# %%
# Members of one architecture can run as one vectorised pass.
vectorised = CredalWrapper(wrapper.each_member, vectorised=True)
difference = (vectorised(test).total - digits.total).abs().max()
kib = vectorised.vectorised_bytes / 1024
print(f"one vectorised pass agrees within {difference:.0e} bits and copies {kib:.0f} KiB of weights")
