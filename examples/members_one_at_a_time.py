"""Members that never are in memory together: summaries that grow by one member at a time, and merge.

Ten small forests learn the digits 0 to 7, five on each of two "machines". A machine trains a forest, lets it predict,
adds the prediction to its summary and forgets the forest. A summary holds per class the lowest, the highest and the
summed probability, so that it stays as large as one prediction; two of them merged say what all ten forests would.

Run: python examples/members_one_at_a_time.py (a few seconds on one core)
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens import MemberSummary
from credalens.evaluation import ood_metrics


def summary_of(seeds: range, images: np.ndarray, labels: np.ndarray, inputs: np.ndarray) -> MemberSummary:
    """Train forests one after the other, and keep nothing but the summary of their predictions."""
    summary = MemberSummary()
    for seed in seeds:
        member = RandomForestClassifier(10, random_state=seed).fit(images, labels)
        summary.update(member.predict_proba(inputs), member_axis=None)
    return summary


def main() -> None:
    """Two machines, one prediction."""
    images, labels = load_digits(return_X_y=True)
    seen, unseen, seen_labels, unseen_labels = train_test_split(images, labels, random_state=0)
    known, strange = seen_labels < 8, unseen_labels >= 8

    here, there = (summary_of(seeds, seen[known], seen_labels[known], unseen) for seeds in (range(5), range(5, 10)))
    for name, summary in (("one machine", here), ("both", here.merge(there))):
        prediction = summary.prediction()
        right = (prediction.predict() == unseen_labels)[~strange].mean()
        found = ood_metrics(prediction.epistemic[~strange], prediction.epistemic[strange])
        print(f"{name}: {prediction}")
        print(f"  accuracy on digits 0 to 7: {right:.1%}")
        print(f"  unseen 8 and 9 found by epistemic uncertainty with AUROC {found.auroc:.3f}")


if __name__ == "__main__":
    main()
