"""A trained random forest made credal by one line: intervals, uncertainty, set-valued predictions.

The forest learns the digits 0 to 7; 8 and 9, which it has never seen, are out of distribution (OOD).

Run: python examples/random_forest.py (a few seconds on one core)
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens.sklearn import CredalClassifier


def main() -> None:
    """Train a forest on the digits 0 to 7, wrap it, and let it predict all ten digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(X_train[y_train < 8], y_train[y_train < 8])

    # Single trees are crude classifiers, so the hundred are averaged in five groups of twenty (groups="auto").
    credal = CredalClassifier.from_fitted(forest)

    is_id = y_test < 8
    uncertainty = credal.predict_uncertainty(X_test)
    sets = credal.predict_set(X_test, rule="maximality")
    set_sizes = sets.sum(axis=1)

    accuracy, forest_accuracy = (model.score(X_test[is_id], y_test[is_id]) for model in (credal, forest))
    coverage = sets[is_id, y_test[is_id]].mean()
    print(f"Accuracy on digits 0 to 7: {accuracy:.1%} (the forest itself: {forest_accuracy:.1%})")
    print(f"Sets that hold the true digit: {coverage:.1%}, with {set_sizes[is_id].mean():.1f} digits on average\n")

    print("                     digits 0 to 7   digits 8 and 9")
    for name, values in (
        ("total uncertainty", uncertainty.total),
        ("epistemic", uncertainty.epistemic),
        ("aleatoric", uncertainty.aleatoric),
        ("digits in the set", set_sizes),
    ):
        print(f"{name:<20} {values[is_id].mean():>13.2f} {values[~is_id].mean():>16.2f}")

    row = int(np.flatnonzero(is_id & (set_sizes > 1))[0])
    image = X_test[row : row + 1]
    (lower,), (upper,) = credal.predict_interval(image)
    print(
        f"\nA doubtful image: a {y_test[row]}, predicted as {credal.predict(image)[0]}, possible {np.flatnonzero(sets[row])}"
    )
    for digit in np.flatnonzero(upper > 0.15):
        print(f"  {digit}: between {lower[digit]:.2f} and {upper[digit]:.2f}")


if __name__ == "__main__":
    main()
