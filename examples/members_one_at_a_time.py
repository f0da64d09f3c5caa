"""Members that are never in memory together: a summary grows by one member at a time, and summaries merge.

Ten small forests learn the digits 0 to 7, five on each of two "machines". A machine trains a forest, adds its prediction to
a summary and deletes the forest. A summary holds the lowest, the highest and the summed probability of each class, so it
is as large as one prediction. Two merged summaries give the prediction of all ten forests.

Run: python examples/members_one_at_a_time.py (a few seconds on one core)
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens import MemberSummary
from credalens.evaluation import ood_metrics


def summarise_forests(seeds: range, images: np.ndarray, labels: np.ndarray, inputs: np.ndarray) -> MemberSummary:
    """Train one forest after the other, and keep only the summary of their predictions."""
    summary = MemberSummary()
    for seed in seeds:
        forest = RandomForestClassifier(10, random_state=seed).fit(images, labels)
        summary.update(forest.predict_proba(inputs), member_axis=None)
    return summary


def main() -> None:
    """Two machines, one prediction."""
    train, test, train_labels, test_labels = train_test_split(*load_digits(return_X_y=True), random_state=0)
    train, train_labels = train[train_labels < 8], train_labels[train_labels < 8]
    is_ood = test_labels >= 8

    first, second = (summarise_forests(seeds, train, train_labels, test) for seeds in (range(5), range(5, 10)))
    for name, summary in (("first machine", first), ("both machines", first.merge(second))):
        prediction = summary.prediction()
        accuracy = (prediction.predict() == test_labels)[~is_ood].mean()
        metrics = ood_metrics(prediction.epistemic[~is_ood], prediction.epistemic[is_ood])
        print(f"{name}: {prediction}")
        print(f"  accuracy on digits 0 to 7: {accuracy:.1%}")
        print(f"  AUROC of epistemic uncertainty for 8 and 9, which no forest has seen: {metrics.auroc:.3f}")


if __name__ == "__main__":
    main()
