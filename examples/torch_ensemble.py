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


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images and labels, test images and labels."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.5, random_state=0, stratify=labels)
    train, test, train_labels, test_labels = (torch.tensor(part) for part in parts)
    return train.float(), train_labels, test.float(), test_labels


def train_member(x: torch.Tensor, labels: torch.Tensor, seed: int) -> nn.Module:
    """One network from its own seed."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[rows]), labels[rows]).backward()
            optimizer.step()
    return network.eval()


def main() -> None:
    """Train, wrap, and compare digits with images of noise."""
    x, labels, test, test_labels = digits()
    noise = torch.rand(test.shape, generator=torch.Generator().manual_seed(0))

    wrapper = CredalWrapper([train_member(x, labels, seed) for seed in range(MEMBERS)])
    seen, unseen = wrapper(test), wrapper(noise)

    accuracy = (seen.predict() == test_labels).float().mean().item()
    print(f"{MEMBERS} members, {len(test)} test digits: accuracy {accuracy:.1%}")
    hardest = int(seen.epistemic.argmax())
    classes = seen.predict_set()[hardest].nonzero().flatten().tolist()
    print(
        f"digit {hardest} divides the members most: it is a {int(test_labels[hardest])}, and {classes} remain possible"
    )
    print(f"epistemic uncertainty in bits: digits {seen.epistemic.mean():.3f}, noise {unseen.epistemic.mean():.3f}")
    auroc = ood_metrics(seen.epistemic.numpy(), unseen.epistemic.numpy()).auroc
    print(f"noise told from digits by epistemic uncertainty: AUROC {auroc:.3f}")
    together = CredalWrapper(wrapper.members, vectorised=True)
    gap, kib = (together(test).total - seen.total).abs().max().item(), together.vectorised_bytes / 1024
    print(f"one vectorised pass agrees within {gap:.0e} bits and copies {kib:.0f} KiB of weights")


if __name__ == "__main__":
    main()
