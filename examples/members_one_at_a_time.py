"""
Members from several machines
=============================

Members that are never in memory together: a summary grows by one member at a time, and summaries merge. Ten small
forests learn the digits 0 to 7, five on each of two "machines". A machine trains a forest, adds its prediction to a
summary and deletes the forest. A summary holds the lowest, the highest and the summed probability of each class, so
it is as large as one prediction. Merged summaries give the prediction of all ten forests.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens import MemberSummary, wrap
from credalens.evaluation import ood_metrics


def predictions(seeds: range, images: np.ndarray, labels: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Train one forest after the other; here their predictions are kept, to compare with in the end."""
    return [RandomForestClassifier(10, random_state=seed).fit(images, labels).predict_proba(inputs) for seed in seeds]


train, test, train_labels, test_labels = train_test_split(*load_digits(return_X_y=True), random_state=0)
train, train_labels = train[train_labels < 8], train_labels[train_labels < 8]
is_ood = test_labels >= 8
machines = [predictions(seeds, train, train_labels, test) for seeds in (range(5), range(5, 10))]

# %%
# Each machine has a summary; watch the AUROC of epistemic uncertainty for 8 and 9, which no forest has seen, as the
# members arrive.
summaries, curves = [MemberSummary(), MemberSummary()], [[], []]
for summary, curve, members in zip(summaries, curves, machines, strict=True):
    for member in members:
        summary.update(member, member_axis=None)
        epistemic = summary.prediction().epistemic
        curve.append(ood_metrics(epistemic[~is_ood], epistemic[is_ood]).auroc)

# %%
# Merging needs only the summaries. It gives the same prediction as all ten members at once. With these crude members,
# forests of ten trees, more of them need not find more: merged, they can lie below one machine's own curve.
merged = summaries[0].merge(summaries[1]).prediction()
at_once = wrap(np.stack([member for members in machines for member in members]))
difference = np.abs(merged.epistemic - at_once.epistemic).max()
print(f"merged: {merged}")
print(f"epistemic uncertainty differs from that of all ten at once by at most {difference:.0e} bits")
accuracy = (merged.predict() == test_labels)[~is_ood].mean()
both = ood_metrics(merged.epistemic[~is_ood], merged.epistemic[is_ood]).auroc
print(f"accuracy on digits 0 to 7: {accuracy:.1%}; AUROC for 8 and 9: {both:.3f}")

figure, axes = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
for number, curve in enumerate(curves, start=1):
    axes.plot(range(1, 6), curve, "o-", label=f"machine {number}")
axes.axhline(both, color="black", linestyle=":", label="both, merged")
axes.set(xlabel="members seen", ylabel="AUROC of epistemic uncertainty", xticks=range(1, 6))
axes.legend(frameon=False)
plt.show()
