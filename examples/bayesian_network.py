"""A plain network converted to a Bayesian one, trained with the ELBO, and made credal by sampling its weights.

The network learns the digits 0 to 7; 8 and 9, which it has never seen, are out of distribution (OOD).

Run: python examples/bayesian_network.py (a few seconds on one core)
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from credalens.bayes import elbo_loss, kl, mean_network, to_bayesian
from credalens.torch import CredalWrapper

SAMPLES, EPOCHS = 50, 40


def train_bayesian(network: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """The network with a Gaussian for each weight, after training."""
    bnn = to_bayesian(network, estimator="flipout", initial_std=0.02, prior_std=0.3)
    optimizer = torch.optim.Adam(bnn.parameters(), lr=5e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(128):
            optimizer.zero_grad()
            # A tenth of the usual weight of the prior: a colder posterior, which so few training images need.
            elbo_loss(bnn(images[rows]), labels[rows], bnn, kl_weight=0.1 / len(images)).backward()
            optimizer.step()
    return bnn.eval()


def main() -> None:
    """Train on the digits 0 to 7, and compare test images of them with images of 8 and 9."""
    torch.manual_seed(0)
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    images, is_ood = images.float() / 16, labels >= 8
    train, test, train_labels, test_labels = train_test_split(
        images[~is_ood], labels[~is_ood], test_size=0.4, random_state=0
    )
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    bnn = train_bayesian(network, train, train_labels)

    wrapper = CredalWrapper(bnn, samples=SAMPLES)
    id_prediction, ood_prediction = wrapper(test), wrapper(images[is_ood])

    with mean_network(bnn), torch.no_grad():
        mean_accuracy = (bnn(test).argmax(-1) == test_labels).float().mean()
    accuracy = (id_prediction.predict() == test_labels).float().mean()
    print(
        f"accuracy on digits 0 to 7: {accuracy:.1%} from {SAMPLES} samples, {mean_accuracy:.1%} from the mean weights"
    )
    print(f"divergence from the prior: {kl(bnn).item():.0f} nats")
    for name in ("total", "aleatoric", "epistemic"):
        id_mean, ood_mean = getattr(id_prediction, name).mean(), getattr(ood_prediction, name).mean()
        print(f"{name} uncertainty in bits: {id_mean:.2f} for digits 0 to 7, {ood_mean:.2f} for 8 and 9")
    id_size, ood_size = (p.predict_set().sum(-1).float().mean() for p in (id_prediction, ood_prediction))
    print(f"classes that remain possible, of 8: {id_size:.1f} for digits 0 to 7, {ood_size:.1f} for 8 and 9")


if __name__ == "__main__":
    main()
