"""scikit-learn's own checks, with no expected failures, for every way to train members."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from credalens.sklearn import CredalClassifier

CLASSIFIERS = [
    CredalClassifier(),
    CredalClassifier(n_members=1),  # one bootstrap misses a third of the rows: bad values in them must still be refused
    CredalClassifier(resample="reseed", hull=True, n_members=3),
    CredalClassifier(LogisticRegression(), n_members=2),
    CredalClassifier(LinearSVC(), n_members=2, votes=True),
]


@parametrize_with_checks(CLASSIFIERS)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
