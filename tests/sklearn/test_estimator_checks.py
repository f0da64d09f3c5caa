"""scikit-learn's own checks, with no expected failures, for every way to train members."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from credalens.sklearn import CredalClassifier

TREE = DecisionTreeClassifier(min_samples_leaf=5, max_features="sqrt")
CLASSIFIERS = [
    CredalClassifier(n_members=2),
    CredalClassifier(TREE, n_members=1),  # one bootstrap misses a third of the rows: bad values there are still refused
    CredalClassifier(TREE, resample="reseed", hull=True, n_members=3),
    CredalClassifier(LogisticRegression(), n_members=2),
    CredalClassifier(LinearSVC(), n_members=2, votes=True),
]


@pytest.mark.filterwarnings("ignore:there is a single member", "ignore:all members predict", "ignore:the members are")
@parametrize_with_checks(CLASSIFIERS)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
