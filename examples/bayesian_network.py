"""
A Bayesian network
==================

A plain network converted to a Bayesian one, trained with the ELBO, and made credal by sampling its weights. It learns
the digits 0 to 7; 8 and 9, which it has never seen, are out of distribution (OOD).
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from credalens.bayes import elbo_loss, kl, mean_network, to_bayesian
from credalens.torch import CredalWrapper

SAMPLES, EPOCHS = 50, 40

torch.manual_seed(0)
images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
images, is_ood = images.float() / 16, labels >= 8
train, test, train_labels, test_labels = train_test_split(
    images[~is_ood], labels[~is_ood], test_size=0.4, random_state=0
)

# %%
# ``to_bayesian`` gives every weight a Gaussian. The prior has a tenth of its usual weight in the loss: a colder
# posterior, which so few training images need.
network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
bnn = to_bayesian(network, estimator="flipout", initial_std=0.02, prior_std=0.3)
optimizer = torch.optim.Adam(bnn.parameters(), lr=5e-3)
for _ in range(EPOCHS):
    for rows in torch.randperm(len(train)).split(128):
        optimizer.zero_grad()
        elbo_loss(bnn(train[rows]), train_labels[rows], bnn, kl_weight=0.1 / len(train)).backward()
        optimizer.step()
bnn.eval()
print(f"divergence from the prior: {kl(bnn).item():.0f} nats")

# %%
# Fifty draws of the weights are fifty members.
wrapper = CredalWrapper(bnn, samples=SAMPLES)
id_prediction, ood_prediction = wrapper(test), wrapper(images[is_ood])

with mean_network(bnn), torch.no_grad():
    mean_accuracy = (bnn(test).argmax(-1) == test_labels).float().mean()
accuracy = (id_prediction.predict() == test_labels).float().mean()
print(f"accuracy on digits 0 to 7: {accuracy:.1%} from {SAMPLES} samples, {mean_accuracy:.1%} from the mean weights")
id_size, ood_size = (p.predict_set().sum(-1).float().mean() for p in (id_prediction, ood_prediction))
print(f"classes that remain possible, of 8: {id_size:.1f} for digits 0 to 7, {ood_size:.1f} for 8 and 9")

# %%
# All three uncertainties are higher on the digits that it has never seen.
figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.0), sharey=True, layout="constrained")
for ax, name in zip(axes, ("total", "aleatoric", "epistemic"), strict=True):
    id_values, ood_values = id_prediction.score(name), ood_prediction.score(name)
    print(f"{name} uncertainty in bits: {id_values.mean():.2f} for digits 0 to 7, {ood_values.mean():.2f} for 8 and 9")
    ax.boxplot([id_values, ood_values], tick_labels=["0 to 7", "8 and 9"], showfliers=False)
    ax.set_title(name)
axes[0].set_ylabel("bits")
plt.show()
