"""One network with dropout made credal: fifty passes in which only the dropout layers are switched on.

Run: python examples/mc_dropout.py (a few seconds on one core)
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from credalens.evaluation import calibration_metrics
from credalens.torch import CredalWrapper

SAMPLES, EPOCHS = 50, 60


def train_network(loader: DataLoader) -> nn.Module:
    """A network with batch normalisation, which must stay still, and dropout, which must not."""
    network = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for _ in range(EPOCHS):
        for x, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x), labels).backward()
            optimizer.step()
    return network.eval()


def main() -> None:
    """Train, sample over a data set, and look at what dropout adds."""
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(images / 16).float(), torch.tensor(labels))
    train, test = train_test_split(data, test_size=0.5, random_state=0)
    network = train_network(DataLoader(train, batch_size=128, shuffle=True))
    test_labels = torch.stack([label for _, label in test]).numpy()

    wrapper = CredalWrapper(network, samples=SAMPLES)
    prediction = wrapper.predict(DataLoader(test, batch_size=256), seed=0, progress=False)

    still = not any(layer.training for layer in network.modules())
    print(f"{prediction}; the network is back in evaluation mode: {still}")
    for name, probs in (("intersection probability", prediction.probability), ("mean of the passes", prediction.mean)):
        metrics = calibration_metrics(probs, test_labels)
        print(f"{name}: accuracy {metrics.accuracy:.1%}, calibration error {metrics.ece:.3f}")
    wrong = prediction.predict() != test_labels
    right_eu, wrong_eu = prediction.epistemic[~wrong].mean(), prediction.epistemic[wrong].mean()
    print(
        f"epistemic uncertainty in bits: {right_eu:.2f} where the prediction is right, {wrong_eu:.2f} where it is wrong"
    )
    sizes = prediction.predict_set().sum(-1)
    print(
        f"classes that remain possible: one for {(sizes == 1).mean():.0%} of the digits, {sizes.mean():.2f} on average"
    )


if __name__ == "__main__":
    main()
