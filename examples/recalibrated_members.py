"""
Recalibrated members
====================

Members that are too sure of themselves give a credal prediction that is. One temperature for all of them, fitted on
labelled inputs before anything is wrapped, puts this right. Here five small networks learn noisy digits from 0 to 7 by
heart; labelled digits that they have not seen are split three ways: for the temperature, for a guard, and to judge both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from credalens import Recalibration, wrap
from credalens.evaluation import calibration_metrics, ood_metrics, reliability_curve
from credalens.guard import Guard

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=5, size=X.shape)
known = y < 8
X_train, X_rest, y_train, y_rest = train_test_split(X[known], y[known], train_size=400, random_state=0)
X_temperature, X_rest, y_temperature, y_rest = train_test_split(X_rest, y_rest, train_size=300, random_state=0)
X_guard, X_test, y_guard, y_test = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0)

networks = [MLPClassifier((32,), solver="lbfgs", alpha=0.0, random_state=seed) for seed in range(5)]
for network in networks:
    network.fit(X_train / 16, y_train)


def members(images):
    """The probabilities of all networks, (members, images, classes)."""
    return np.stack([network.predict_proba(images / 16) for network in networks])


# %%
# The temperature is above 1: the networks were too sure. Its range says where it would lie with other labelled digits.
# Each network alone would need a higher one: where they disagree, the credal prediction is unsure already.
recalibration = Recalibration.fit(members(X_temperature), y_temperature)
alone = Recalibration.fit(members(X_temperature), y_temperature, through="members")
low, high = recalibration.ranges[0]
print(f"temperature {recalibration.temperatures[0]:.2f} ({low:.2f} to {high:.2f}), from {recalibration.n} digits")
print(f"of the networks one by one: {alone.temperatures.min():.2f} to {alone.temperatures.max():.2f}")

# %%
# What it changes, on digits that it was not fitted on. Every network names the class that it named before. The digits 8
# and 9 are unknown to all. Whether they are found better is another question, to which labels of known digits give no
# answer: it must be measured.
before, after = wrap(members(X_test)), wrap(members(X_test), recalibration=recalibration)
unknown = members(X[~known])
of_unknown = wrap(unknown), wrap(unknown, recalibration=recalibration)
print(f"{'':<28} before    after")
for name in ("accuracy", "nll", "ece"):
    values = [getattr(calibration_metrics(one.probability, y_test), name) for one in (before, after)]
    print(f"{name:<28} {values[0]:6.3f}   {values[1]:6.3f}")
for name in ("total", "epistemic"):
    values = [
        ood_metrics(one.score(name), other.score(name)).auroc
        for one, other in zip((before, after), of_unknown, strict=True)
    ]
    print(f"AUROC of 8 and 9, {name:<10} {values[0]:6.3f}   {values[1]:6.3f}")

# %%
# A guard that is fitted on recalibrated predictions knows the temperatures. It decides about predictions with them, and
# refuses those without: their scores mean something else, and its promises would not hold.
guard = Guard.fit(wrap(members(X_guard), recalibration=recalibration), y_guard, max_error=0.1)
decisions = guard.decide(after)
wrong = decisions.prediction != y_test
print(f"{decisions.accepted.mean():.0%} accepted, {wrong[decisions.accepted].mean():.1%} of these wrong")
print(f"without the guard {wrong.mean():.1%} would be wrong")
try:
    guard.decide(before)
except ValueError as error:
    print(f"refused: {error}")

# %%
# Reliability: how often a prediction is right, by how sure it was. On the diagonal both are the same.
figure, axes = plt.subplots(figsize=(4.4, 3.8), layout="constrained")
axes.plot([0, 1], [0, 1], color="#B8C4CE", zorder=0)
for prediction, name, colour in ((before, "as they come", "#B5542B"), (after, "recalibrated", "#0B6E99")):
    curve = reliability_curve(prediction.probability, y_test, bins=6)
    filled = curve.count >= 10
    axes.plot(curve.confidence[filled], curve.accuracy[filled], "o-", color=colour, label=name)
axes.set(xlabel="confidence of the intersection probability", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
axes.legend(frameon=False)
plt.show()
