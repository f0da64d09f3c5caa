"""A plain network converted to a Bayesian one, trained with the ELBO, and made credal by sampling its weights.

Run: python examples/bayesian_network.py (a few seconds on one core)
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from credalens.bayes import elbo_loss, kl, mean_network, to_bayesian
from credalens.torch import CredalWrapper

SAMPLES, EPOCHS = 50, 60


def train_bayesian(network: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """The network with a Gaussian for each weight, after training."""
    bnn = to_bayesian(network, estimator="flipout", initial_std=0.02, prior_std=0.3)
    optimizer = torch.optim.Adam(bnn.parameters(), lr=5e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            # A tenth of the usual weight of the prior: a colder posterior, which so few training images need.
            elbo_loss(bnn(x[rows]), labels[rows], bnn, kl_weight=0.1 / len(x)).backward()
            optimizer.step()
    return bnn.eval()


def main() -> None:
    """Train on the digits 0 to 7 and ask about 8 and 9, which the network has never seen."""
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    known = labels < 8
    parts = train_test_split(images[known] / 16, labels[known], test_size=0.4, random_state=0)
    x, test, train_labels, test_labels = (torch.tensor(part) for part in parts)
    x, test, unknown = x.float(), test.float(), torch.tensor(images[~known] / 16).float()

    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    bnn = train_bayesian(network, x, train_labels)
    wrapper = CredalWrapper(bnn, samples=SAMPLES)
    seen, unseen = wrapper(test), wrapper(unknown)

    with mean_network(bnn), torch.no_grad():
        plain = (bnn(test).argmax(-1) == test_labels).float().mean()
    accuracy = (seen.predict() == test_labels).float().mean()
    print(f"accuracy on digits 0 to 7: {accuracy:.1%} from {SAMPLES} samples, {plain:.1%} from the mean weights")
    print(f"divergence from the prior: {kl(bnn).item():.0f} nats")
    for name in ("total", "aleatoric", "epistemic"):
        before, after = getattr(seen, name).mean(), getattr(unseen, name).mean()
        print(f"{name} uncertainty in bits: {before:.2f} for known digits, {after:.2f} for the unseen 8 and 9")
    sizes = [prediction.predict_set().sum(-1).float().mean() for prediction in (seen, unseen)]
    print(f"classes that remain possible: {sizes[0]:.1f} of 8 for known digits, {sizes[1]:.1f} for the unseen")


if __name__ == "__main__":
    main()
