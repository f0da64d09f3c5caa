"""Bad input is refused with the member, what was expected and what came."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from credalens.sklearn import CredalClassifier

X, Y = load_iris(return_X_y=True)
BAYES = GaussianNB().fit(X, Y)


class Fixed(ClassifierMixin, BaseEstimator):
    """Predicts the same probabilities for every row."""

    def __init__(self, row):
        self.row = row

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.row, (len(X), 1))


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([], ValueError, "list of models is empty"),
        (3, TypeError, "list of fitted classifiers or a fitted ensemble; got int"),
        ("forest", TypeError, "got str"),
        ([BAYES, GaussianNB()], NotFittedError, r"models\[1\] \(GaussianNB\) is not fitted"),
        (RandomForestClassifier(), NotFittedError, "RandomForestClassifier is not fitted"),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), NotFittedError, "Pipeline is not fitted"),
        ([BAYES, LinearRegression().fit(X, Y)], TypeError, r"models\[1\] \(LinearRegression\) has no classes_"),
        ([BAYES, np.ones(3)], TypeError, r"models\[1\] \(ndarray\) is not a classifier"),
        ([BAYES, LinearSVC().fit(X, Y)], ValueError, r"models\[1\] \(LinearSVC\) has no predict_proba.*votes=True"),
        (
            BaggingClassifier(LinearSVC(), 2).fit(X, Y),
            ValueError,
            r"estimators_\[0\] \(LinearSVC\) has no predict_proba",
        ),
        (
            RandomForestRegressor(2).fit(X, Y),
            TypeError,
            "RandomForestRegressor is a regressor; a credal prediction is over classes",
        ),
        (GradientBoostingClassifier(n_estimators=1).fit(X, Y), TypeError, "Expected RandomForestClassifier"),
        (AdaBoostClassifier(n_estimators=1).fit(X, Y), TypeError, "otherwise pass the list"),
        (BAYES, TypeError, "GaussianNB is not an ensemble"),
        (RandomForestClassifier(2).fit(X, np.c_[Y, Y]), ValueError, "RandomForestClassifier predicts 2 outputs"),
        ([MultiOutputClassifier(BAYES).fit(X, np.c_[Y, Y])], ValueError, r"models\[0\] .* predicts 2 outputs"),
        ([BAYES, DecisionTreeClassifier().fit(X, Y * 0)], ValueError, r"models\[1\] .* knows 1 class \(\[.*0.*\]\)"),
    ],
)
def test_what_cannot_be_wrapped(models, error, message):
    with pytest.raises(error, match=message):
        CredalClassifier.from_fitted(models)


def test_members_with_other_classes_are_refused_by_name_with_both_lists():
    pair = GaussianNB().fit(X[Y < 2], Y[Y < 2])
    message = r"models\[1\] \(GaussianNB\) knows the classes \[0, 1\], models\[0\] \(GaussianNB\) knows \[0, 1, 2\].*align=True"
    with pytest.raises(ValueError, match=message):
        CredalClassifier.from_fitted([BAYES, pair])


def test_as_many_other_classes_are_refused_too():
    shifted = GaussianNB().fit(X, Y + 1)
    with pytest.raises(ValueError, match=r"models\[1\] \(GaussianNB\) .*\[1, 2, 3\]"):
        CredalClassifier.from_fitted([BAYES, shifted])


def test_numbers_and_words_as_classes_are_not_joined():
    words = GaussianNB().fit(X, np.array(["a", "b", "c"])[Y])
    with pytest.raises(ValueError, match=r"models\[0\] \(GaussianNB\) .*\[0, 1, 2\].*models\[1\]"):
        CredalClassifier.from_fitted([BAYES, words], align=True)


def test_a_frozen_voter_of_other_classes_is_refused():
    pair = GaussianNB().fit(X[Y > 0], Y[Y > 0] * 10)
    model = VotingClassifier([("one", GaussianNB()), ("two", FrozenEstimator(pair))]).fit(X, Y)
    with pytest.raises(ValueError, match=r"estimators_\[1\] \(FrozenEstimator\) .*\[10, 20\]"):
        CredalClassifier.from_fitted(model)


def test_members_of_other_features_are_refused():
    narrow = GaussianNB().fit(X[:, :2], Y)
    with pytest.raises(ValueError, match=r"models\[1\] .* n_features_in_ = 2 and models\[0\] .* 4"):
        CredalClassifier.from_fitted([BAYES, narrow])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.5, 0.5], r"models\[1\] \(Fixed\): .* sums to 1.5"),
        ([np.nan, 0.5, 0.5], r"models\[1\] \(Fixed\): .* class 0 is nan"),
        ([1.5, -0.5, 0.0], r"models\[1\] \(Fixed\): .* class 1 is -0.5"),
        ([0.5, 0.5], r"models\[1\] \(Fixed\) must predict probabilities of shape \(rows, 3\).* got shape \(150, 2\)"),
    ],
)
def test_a_member_that_predicts_no_distribution_is_named(row, message):
    credal = CredalClassifier.from_fitted([BAYES, Fixed(row).fit(X, Y)])
    for predict in (credal.predict, credal.predict_proba, credal.predict_interval, credal.predict_uncertainty):
        with pytest.raises(ValueError, match=message):
            predict(X)


def test_a_vote_for_an_unknown_class_is_refused():
    class Stray(LinearSVC):
        def predict(self, X):
            return np.full(len(X), 7)

    with pytest.raises(ValueError, match=r"models\[0\] \(Stray\) .*7.* at row 0.*classes_"):
        CredalClassifier.from_fitted([Stray().fit(X, Y), BAYES], votes=True).predict(X)


@pytest.mark.parametrize(
    ("groups", "error", "expected"),
    [
        (0, ValueError, "at least 1; got 0"),
        (6, ValueError, "at most 5; got 6"),
        (-1, ValueError, "at least 1"),
        (True, TypeError, "an integer of at least 1; got True"),
        (2.0, TypeError, "an integer"),
        ("all", TypeError, "an integer of at least 1; got 'all'"),
    ],
)
def test_groups_out_of_range(groups, error, expected):
    model = RandomForestClassifier(5).fit(X, Y)
    with pytest.raises(error, match=rf"groups of 5 models .* must be {expected}"):
        CredalClassifier.from_fitted(model, groups=groups)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_members": 0}, ValueError, "n_members must be at least 1; got 0"),
        ({"n_members": 2.5}, TypeError, r"n_members must be an integer of at least 1; got 2\.5"),
        ({"resample": "jackknife"}, ValueError, "resample must be one of 'auto', 'bootstrap', 'reseed'"),
        ({"base": 1}, ValueError, "base must be finite and above 1"),
        ({"estimator": "tree"}, TypeError, "estimator must be a scikit-learn classifier"),
        ({"estimator": GaussianNB}, TypeError, r"such as SVC\(\); got <class"),
        ({"estimator": LinearRegression()}, TypeError, r"estimators_\[0\] \(LinearRegression\) has no classes_"),
        ({"estimator": LinearSVC()}, ValueError, r"estimators_\[0\] \(LinearSVC\) has no predict_proba"),
        ({"estimator": GaussianNB(), "resample": "reseed"}, ValueError, "GaussianNB has none"),
    ],
)
def test_parameters_that_cannot_be_trained(options, error, message):
    with pytest.raises(error, match=message):
        CredalClassifier(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(150), "sample_weight is zero for every row"),
        (np.ones(149), r"shape \(150,\), one number for each row; got shape \(149,\)"),
        (
            np.where(np.arange(150) == 9, -1.0, 1.0),
            r"1 of 150 values of sample_weight are negative or not finite, .* index \(9,\): -1",
        ),
        (np.where(np.arange(150) == 9, np.nan, 1.0), r"negative or not finite, .* index \(9,\): nan"),
        ((Y == 1).astype(float), "needs at least two classes; y has 1 class.*sample_weight 0"),
    ],
)
def test_weights_that_cannot_be_used(weight, message):
    with pytest.raises(ValueError, match=message):
        CredalClassifier().fit(X, Y, sample_weight=weight)


def test_other_fit_parameters_are_refused():
    with pytest.raises(TypeError, match=r"fit takes sample_weight.*got 'groups'"):
        CredalClassifier().fit(X, Y, groups=Y)


@pytest.mark.parametrize("y", [np.c_[Y, Y], np.eye(3)[Y]])
def test_several_outputs_are_refused(y):
    with pytest.raises(ValueError, match=r"one label for each row; .* shape \(150, "):
        CredalClassifier().fit(X, y)


def test_a_bad_value_is_refused_even_in_a_row_no_member_drew():
    for row in range(20):
        spoiled = X.copy()
        spoiled[row, 0] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            CredalClassifier(LogisticRegression(max_iter=1000), n_members=1, random_state=0).fit(spoiled, Y)


def test_rules_and_unfitted_classifiers():
    with pytest.raises(ValueError, match="rule must be one of"):
        CredalClassifier.from_fitted([BAYES, BAYES]).predict_set(X[:1], rule="best")
    for method in (
        "predict",
        "predict_proba",
        "predict_interval",
        "predict_uncertainty",
        "predict_set",
        "credal_predict",
    ):
        with pytest.raises(NotFittedError):
            getattr(CredalClassifier(), method)(X)


def test_labels_of_another_kind_are_named_and_the_forest_is_proposed():
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    forest = RandomForestClassifier(10, random_state=0).fit(X, names)
    trees = CredalClassifier.from_fitted(list(forest.estimators_))
    with pytest.raises(ValueError, match=r"such as setosa.*such as 0\.0.*wrap the forest"):
        trees.score(X, names)
    with pytest.raises(ValueError, match=r"such as 0.*such as setosa.*classes_\[labels\]"):
        CredalClassifier.from_fitted(forest).score(X, list(Y))
    assert trees.score(X, Y, Y + 1) == pytest.approx(np.average(trees.predict(X) == Y, weights=Y + 1))
    assert CredalClassifier.from_fitted(forest).score(X, names) > 0.9
