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

SAMPLES, EPOCHS = 50, 30


def train_network(loader: DataLoader) -> nn.Module:
    """A network with dropout, which is sampled, and batch normalisation, which is not."""
    network = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for _ in range(EPOCHS):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
    return network.eval()


def main() -> None:
    """Train, predict a data set by sampling, and compare the credal prediction with the mean of the passes."""
    torch.manual_seed(0)
    images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
    arrays = train_test_split(images.float() / 16, labels, test_size=0.5, random_state=0)
    train, test, train_labels, test_labels = arrays
    network = train_network(DataLoader(TensorDataset(train, train_labels), batch_size=128, shuffle=True))

    wrapper = CredalWrapper(network, samples=SAMPLES)
    prediction = wrapper.predict(DataLoader(TensorDataset(test, test_labels), batch_size=256), seed=0, progress=False)

    labels = test_labels.numpy()
    print(prediction)
    for name, probs in (("intersection probability", prediction.probability), ("mean of the passes", prediction.mean)):
        metrics = calibration_metrics(probs, labels)
        print(f"{name}: accuracy {metrics.accuracy:.1%}, calibration error {metrics.ece:.3f}")
    correct = prediction.predict() == labels
    epistemic_correct, epistemic_wrong = prediction.epistemic[correct].mean(), prediction.epistemic[~correct].mean()
    print(f"epistemic uncertainty in bits: {epistemic_correct:.2f} if correct, {epistemic_wrong:.2f} if wrong")
    set_sizes = prediction.predict_set().sum(-1)
    print(f"classes that remain possible: {set_sizes.mean():.2f} on average, one for {(set_sizes == 1).mean():.0%}")


if __name__ == "__main__":
    main()
