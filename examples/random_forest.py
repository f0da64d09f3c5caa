"""A random forest that is already trained becomes credal in one line: intervals, uncertainty, set-valued predictions.

The forest learns the digits 0 to 7 and then meets 8 and 9 as well, which it has never seen.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from credalens.sklearn import CredalClassifier


def main() -> None:
    """Train a forest on some of the digits, wrap it, and ask it about all of them."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(X_train[y_train < 8], y_train[y_train < 8])

    # The line that matters. Single trees are crude, so the hundred are averaged in ten groups of ten.
    credal = CredalClassifier.from_fitted(forest, groups=10)

    known = y_test < 8
    uncertainty = credal.predict_uncertainty(X_test)
    possible = credal.predict_set(X_test, rule="maximality")
    sizes = possible.sum(axis=1)

    accuracy, covered = credal.score(X_test[known], y_test[known]), possible[known, y_test[known]].mean()
    print(
        f"Accuracy on digits it knows: {accuracy:.1%} (the forest itself: {forest.score(X_test[known], y_test[known]):.1%})"
    )
    print(f"Sets that hold the true digit: {covered:.1%}, with {sizes[known].mean():.1f} digits on average\n")

    print("                      known digits   digits 8 and 9")
    for name, values in (
        ("total uncertainty", uncertainty.total),
        ("epistemic", uncertainty.epistemic),
        ("aleatoric", uncertainty.aleatoric),
        ("digits in the set", sizes),
    ):
        print(f"{name:<20} {values[known].mean():>12.2f} {values[~known].mean():>16.2f}")

    row = int(np.flatnonzero(known & (sizes > 1))[0])
    lower, upper = (bound[0] for bound in credal.predict_interval(X_test[row : row + 1]))
    best, truth = credal.predict(X_test[row : row + 1])[0], y_test[row]
    print(f"\nOne doubtful image: a {truth}, best guess {best}, possible {credal.classes_[possible[row]].tolist()}")
    for digit in credal.classes_[upper > 0.15]:
        print(f"  {digit}: between {lower[digit]:.2f} and {upper[digit]:.2f}")


if __name__ == "__main__":
    main()
