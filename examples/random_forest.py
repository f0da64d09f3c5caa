"""
A random forest
===============

A trained random forest made credal by one line: intervals, uncertainty, set-valued predictions. It learns the digits
0 to 7; 8 and 9, which it has never seen, are out of distribution (OOD).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens.sklearn import CredalClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
forest = RandomForestClassifier(100, random_state=0).fit(X_train[y_train < 8], y_train[y_train < 8])

# %%
# Single trees are crude classifiers, so the hundred are averaged in five groups of twenty (``groups="auto"``).
credal = CredalClassifier.from_fitted(forest)

is_id = y_test < 8
accuracy, forest_accuracy = (model.score(X_test[is_id], y_test[is_id]) for model in (credal, forest))
print(f"Accuracy on digits 0 to 7: {accuracy:.1%} (the forest itself: {forest_accuracy:.1%})")

# %%
# What it says about digits that it knows, and about those that it does not.
uncertainty = credal.predict_uncertainty(X_test)
sets = credal.predict_set(X_test, rule="maximality")
set_sizes = sets.sum(axis=1)
print(f"Sets that hold the true digit: {sets[is_id, y_test[is_id]].mean():.1%}\n")
print("                     digits 0 to 7   digits 8 and 9")
for name, values in (
    ("total uncertainty", uncertainty.total),
    ("epistemic", uncertainty.epistemic),
    ("aleatoric", uncertainty.aleatoric),
    ("digits in the set", set_sizes),
):
    print(f"{name:<20} {values[is_id].mean():>13.2f} {values[~is_id].mean():>16.2f}")

# %%
# A doubtful image, with the interval of each digit.
row = int(np.flatnonzero(is_id & (set_sizes > 1))[0])
image = X_test[row : row + 1]
(lower,), (upper,) = credal.predict_interval(image)
print(f"a {y_test[row]}, predicted as {credal.predict(image)[0]}, possible {np.flatnonzero(sets[row])}")

figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 2.8), width_ratios=(1, 2), layout="constrained")
left.imshow(image.reshape(8, 8), cmap="gray_r")
left.set_axis_off()
right.vlines(credal.classes_, lower, upper, linewidth=8, color=np.where(sets[row], "#0B6E99", "#B8C4CE"))
right.plot(credal.classes_, credal.predict_proba(image)[0], "D", color="#B5542B", label="intersection probability")
right.set(xlabel="digit", ylabel="probability", xticks=credal.classes_)
right.legend(frameon=False)
plt.show()
