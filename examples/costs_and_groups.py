"""
Costs and groups
================

Two classes, and errors that are not equally grave: to treat a malignant tumour as benign costs five times a false alarm,
and a person can be asked for half of one. Gradient boosting learns the breast cancer table of scikit-learn. Three rules
decide, and guards promise something about new inputs: one what decisions cost, one an error rate in each of two groups.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from credalens.guard import Guard
from credalens.sklearn import CredalClassifier

ACTIONS = ("treat as malignant", "treat as benign", "ask a person")
COSTS = np.array(
    [
        [0.0, 1.0],  # treat as malignant: a false alarm if it is benign, the second class
        [5.0, 0.0],  # treat as benign
        [0.5, 0.5],  # ask a person
    ]
)
MALIGNANT, BENIGN, ASK = range(3)

X, y = load_breast_cancer(return_X_y=True)
X_train, X_new, y_train, y_new = train_test_split(X, y, train_size=0.3, stratify=y, random_state=0)
boosting = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0)
with threadpool_limits(1):  # members this small are slower on several threads
    credal = CredalClassifier(boosting, n_members=5, random_state=0).fit(X_train, y_train)
    prediction = credal.credal_predict(X_new)
print(f"mean epistemic uncertainty of {len(y_new)} tumours: {prediction.epistemic.mean():.2f} bits")

# %%
# Three rules. The mean of the members takes the action of least expected cost. The cautious rule takes the one of least
# highest cost over the credal set. Maximality leaves all actions that no other one beats under every distribution; where
# it leaves several, we ask. The most probable class knows no costs, and misses more. Caution has a price: it asks more often
# than the mean, and where all members are wrong it does not help.
actions = {"most probable class": prediction.mean.argmax(axis=-1)}
for rule in ("expected_mean", "gamma_minimax", "maximality"):
    left = prediction.predict_set(rule, COSTS)
    actions[rule] = np.where(left.sum(axis=-1) > 1, ASK, left.argmax(axis=-1))
for rule, action in actions.items():
    missed = ((action == BENIGN) & (y_new == MALIGNANT)).sum()
    counts = ", ".join(f"{name} {(action == k).sum()}" for k, name in enumerate(ACTIONS))
    print(f"{rule}: {counts}; {missed} malignant ones missed, mean cost {COSTS[action, y_new].mean():.3f}")

# %%
# Asking costs least between the two lines. Where the interval of a tumour crosses one, it depends on the member what to
# do.
lowest, highest = prediction.lower[:, MALIGNANT], prediction.upper[:, MALIGNANT]
unsure = np.flatnonzero(highest - lowest > 0.02)
order = unsure[np.argsort(prediction.mean[unsure, MALIGNANT])]
figure, axes = plt.subplots(figsize=(6.2, 3.6), layout="constrained")
for k, color in enumerate(("#B5542B", "#0B6E99", "grey")):
    at = np.flatnonzero(actions["maximality"][order] == k)
    axes.vlines(at, lowest[order][at], highest[order][at], color=color, linewidth=1.5, label=ACTIONS[k])
for level in (0.1, 0.5):
    axes.axhline(level, color="black", linewidth=0.8, linestyle=":")
axes.set(xlabel="tumours, from benign to malignant", ylabel="probability that it is malignant")
axes.legend(frameon=False, loc="upper left")
plt.show()

# %%
# The rules take probabilities at their word. A guard learns from calibration data what its decisions cost, and promises
# an expected cost of those that it accepts. Without a promise of false alarms it looks for errors alone. Of the new
# tumours 70 % calibrate, the others judge.
calibration_rows, test_rows = train_test_split(np.arange(len(y_new)), train_size=0.7, stratify=y_new, random_state=0)
calibration, test = prediction[calibration_rows], prediction[test_rows]
y_calibration, y_test = y_new[calibration_rows], y_new[test_rows]
guard = Guard.fit(
    calibration,
    y_calibration,
    costs=COSTS,
    max_cost=0.35,
    false_alarm_rate=None,
    point="mean",
    note="gradient boosting",
)
decisions = guard.decide(test)
paid = COSTS[decisions.action, y_test][decisions.accepted]
print(f"{guard.score}: accepts {decisions.accepted.mean():.0%}, which cost {paid.mean():.3f} on average")
print(f"promised: {guard.cost.max_cost}, and {guard.cost.bound:.3f} would have been possible")

# %%
# A promise about all is none about each group. Tumours with a fine and with a coarse texture stand in for sites or ages.
# The promise in each group accepts less: both groups share one limit, and the smaller or the harder one decides. New
# inputs need no group.
median = np.median(X_train[:, 1])
groups, test_groups = (
    {"texture": np.where(table[:, 1] < median, "fine", "coarse")}
    for table in (X_new[calibration_rows], X_new[test_rows])
)
for columns in (None, groups):
    guard = Guard.fit(calibration, y_calibration, max_error=0.08, groups=columns, false_alarm_rate=None, point="mean")
    print(f"{guard}: accepts {guard.decide(test).accepted.mean():.0%}")
for promise, check in zip(guard.promises, guard.check_promises(test, y_test, test_groups), strict=True):
    print(
        f"  {check.name}: {promise.errors} of {promise.accepted} calibration tumours, now {check.observed:.1%} of {check.n}"
    )
