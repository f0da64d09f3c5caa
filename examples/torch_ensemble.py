"""A list of PyTorch models made credal: five small networks on scikit-learn's digits.

Run: python examples/torch_ensemble.py (a few seconds on one core)
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from credalens.evaluation import ood_metrics
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


def main() -> None:
    """Train, wrap, and compare digits with images of noise."""
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    arrays = train_test_split(images.float() / 16, labels, test_size=0.5, random_state=0, stratify=labels)
    train, test, train_labels, test_labels = arrays
    noise = torch.rand(test.shape, generator=torch.Generator().manual_seed(0))

    wrapper = CredalWrapper([train_member(train, train_labels, seed) for seed in range(MEMBERS)])
    digits, ood = wrapper(test), wrapper(noise)

    accuracy = (digits.predict() == test_labels).float().mean()
    print(f"{MEMBERS} members, {len(test)} test digits: accuracy {accuracy:.1%}")
    row = int(digits.epistemic.argmax())
    classes = digits.predict_set()[row].nonzero().flatten().tolist()
    print(f"members disagree most on digit {row}: it is a {int(test_labels[row])}, and {classes} remain possible")
    print(f"epistemic uncertainty in bits: digits {digits.epistemic.mean():.3f}, noise {ood.epistemic.mean():.3f}")
    auroc = ood_metrics(digits.epistemic.numpy(), ood.epistemic.numpy()).auroc
    print(f"AUROC of epistemic uncertainty for noise: {auroc:.3f}")

    vectorised = CredalWrapper(wrapper.members, vectorised=True)
    difference = (vectorised(test).total - digits.total).abs().max()
    kib = vectorised.vectorised_bytes / 1024
    print(f"one vectorised pass agrees within {difference:.0e} bits and copies {kib:.0f} KiB of weights")


if __name__ == "__main__":
    main()
