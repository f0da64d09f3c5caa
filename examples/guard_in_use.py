"""
A guard in use
==============

A guard accepts predictions or abstains, with a promise about each. It is fitted on inputs like those it will meet,
saved as a file, and used where the model runs. Here a forest reads the digits 0 to 7, and meets 8 and 9 when it is in
use.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens.guard import Guard
from credalens.sklearn import CredalClassifier

X, y = load_digits(return_X_y=True)
known = y < 8
X_train, X_rest, y_train, y_rest = train_test_split(X[known], y[known], train_size=400, random_state=0)
X_calibration, X_test, y_calibration, y_test = train_test_split(X_rest, y_rest, test_size=0.4, random_state=0)
credal = CredalClassifier.from_fitted(RandomForestClassifier(100, random_state=0).fit(X_train, y_train))

# %%
# Two promises. At most 5 % of digits like these are called unlike the calibration data: on average over calibration
# data, so that this one guard can be above it, and we print where its rate lies with a probability of 95 %. And at most
# 2 % of what is accepted is wrong; this promise is about the guard itself, with a confidence of 95 %. The calibration
# data must not have been used for training.
guard = Guard.fit(
    credal.credal_predict(X_calibration),
    y_calibration,
    false_alarm_rate=0.05,
    max_error=0.02,
    note="a forest of 100 trees",
)
promise = guard.promises[0]
print(guard)
print("rate of digits that this guard calls unlike: {:.1%} to {:.1%}".format(*guard.false_alarm_range))
print(
    f"{promise.errors} of {promise.accepted} accepted calibration digits are wrong; at most {promise.bound:.2%} is promised"
)

# %%
# It is a JSON file that a person can read, and loads to the same bits.
path = Path(tempfile.mkdtemp()) / "guard.json"
guard.save(path)
guard = Guard.load(path)

# %%
# In use: known digits are mostly accepted, and what is accepted is right; unknown ones are mostly turned away, with a
# reason.
prediction, unknown = credal.credal_predict(X_test), credal.credal_predict(X[~known])
decisions, unknown_decisions = guard.decide(prediction), guard.decide(unknown)
wrong = decisions.prediction != y_test
print(f"digits 0 to 7: {decisions.accepted.mean():.0%} accepted, {wrong[decisions.accepted].mean():.1%} of these wrong")
print(f"without the guard {wrong.mean():.1%} would be wrong")
print(f"digits 8 and 9: {unknown_decisions.accepted.mean():.0%} accepted")
for name, batch in (("0 to 7", decisions), ("8 and 9", unknown_decisions)):
    reasons, counts = np.unique(batch.reason, return_counts=True)
    print(name, dict(zip(reasons.tolist(), counts.tolist(), strict=True)))
print(f"epistemic uncertainty of what is accepted: {prediction.epistemic[decisions.accepted].mean():.2f} bits")

# %%
# More than 5 % of the known digits are called unlike here. Does that break the promise? A check allows for the luck of
# calibration and test data: it says up to which rate a promise holds, and calls a sound one broken in at most 2.5 %.
for check in guard.check_promises(prediction, y_test):
    verdict = "holds" if check.kept else "broken"
    print(f"{check.name}: {check.observed:.1%} of {check.n}, {verdict} (up to {check.holds_up_to:.1%})")

# %%
# The guard abstains above the threshold, where a digit is unlike the calibration data, and from the limit on, where it is
# too uncertain for the promised error rate. Here all that is like the calibration data may be accepted: both coincide.
figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
bins = np.linspace(0, 3, 40)
axes.hist(
    [decisions.scores[~wrong], decisions.scores[wrong]],
    bins,
    stacked=True,
    color=("#0B6E99", "#B5542B"),
    label=("0 to 7, right", "0 to 7, wrong"),
)
axes.hist(unknown_decisions.scores, bins, histtype="step", color="black", label="8 and 9")
axes.axvline(guard.threshold, color="black", label="threshold: above it unlike")
axes.axvline(guard.limit, color="grey", linestyle=":", label="limit of the promised error rate")
axes.set(xlabel=f"{guard.score} uncertainty (bits)", ylabel="digits")
axes.legend(frameon=False)
plt.show()
