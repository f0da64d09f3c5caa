"""Never worse than the model that is wrapped: trees are grouped, ties go to the mean, crude members cause a warning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from credalens.sklearn import CredalClassifier

X, Y = load_iris(return_X_y=True)
FOREST = RandomForestClassifier(30, random_state=0).fit(X, Y)
TREES = np.stack([tree.predict_proba(X) for tree in FOREST.estimators_])
DIGITS, OTHER_DIGITS = [part[:600:2] for part in load_digits(return_X_y=True)], load_digits().data[1:600:2]
TREE = DecisionTreeClassifier(max_features=1, random_state=0)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 29))
def test_members_are_means_of_disjoint_groups_of_trees_in_their_order(groups):
    credal = CredalClassifier.from_fitted(FOREST, groups=groups, hull=True)
    sizes = [len(group) for group in credal._committee.groups]
    assert len(sizes) == groups
    assert max(sizes) - min(sizes) <= 1
    means = np.stack([part.mean(axis=0) for part in np.split(TREES, np.cumsum(sizes)[:-1])])
    np.testing.assert_allclose(credal._committee.stack(X), means, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("models", "members"),
    [
        (FOREST, 5),
        (RandomForestClassifier(12, random_state=0), 2),
        (RandomForestClassifier(9, random_state=0), 2),
        (RandomForestClassifier(4, random_state=0), 2),
        (RandomForestClassifier(3, random_state=0), 3),
        (ExtraTreesClassifier(20, random_state=0), 4),
        (BaggingClassifier(TREE, 25, random_state=0), 5),
        (BaggingClassifier(make_pipeline(StandardScaler(), TREE), 10, random_state=0), 2),
        (make_pipeline(StandardScaler(), ExtraTreesClassifier(10, random_state=0)), 2),
        (BaggingClassifier(GaussianNB(), 10, random_state=0), 10),
        (BaggingClassifier(LinearSVC(), 10, random_state=0), 2),
        ([TREE.fit(X, Y)] * 10, 2),
        ([TREE.fit(X, Y)] * 10 + [GaussianNB().fit(X, Y)], 11),
    ],
    ids=lambda value: value if isinstance(value, int) else type(value).__name__,
)
def test_trees_and_votes_are_grouped_and_nothing_else(models, members):
    models = models if isinstance(models, list) else models.fit(X, Y)
    assert len(CredalClassifier.from_fitted(models, votes=True)._committee.groups) == members


@pytest.mark.parametrize("around", [lambda credal: credal, make_pipeline], ids=["alone", "in a pipeline"])
@pytest.mark.parametrize(
    ("estimator", "members"),
    [(TREE, 2), (make_pipeline(StandardScaler(), TREE), 2), (LinearSVC(), 2), (GaussianNB(), 10)],
)
def test_trees_and_votes_that_a_credal_classifier_trained_are_grouped(estimator, members, around):
    trained = around(CredalClassifier(estimator, n_members=10, votes=True, random_state=0)).fit(X, Y)
    assert len(CredalClassifier.from_fitted(trained)._committee.groups) == members
    assert len(CredalClassifier.from_fitted(trained, groups=None)._committee.groups) == 10


@pytest.mark.parametrize("groups", [1, 3, "auto"])
@pytest.mark.filterwarnings("ignore:there is a single member")
def test_groups_of_a_credal_classifier_are_kept(groups):
    first = CredalClassifier.from_fitted(FOREST, groups=groups)
    assert CredalClassifier.from_fitted(first)._committee.groups == first._committee.groups


def splits():
    for load in (load_digits, load_wine, load_iris, load_breast_cancer):
        X, y = load(return_X_y=True)
        yield train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)


def accuracy(right):
    return np.concatenate(right).mean()


def test_forests_and_the_default_members_are_as_accurate_as_a_forest():
    own, grouped, default = [], [], []
    for X_train, X_test, y_train, y_test in splits():
        forest = RandomForestClassifier(100, random_state=0).fit(X_train, y_train)
        own.append(forest.predict(X_test) == y_test)
        grouped.append(CredalClassifier.from_fitted(forest).predict(X_test) == y_test)
        default.append(CredalClassifier(random_state=0).fit(X_train, y_train).predict(X_test) == y_test)
    assert accuracy(grouped) > accuracy(own) - 0.01
    assert accuracy(default) > accuracy(own) - 0.01


@pytest.mark.parametrize("trees", [4, 8, 12])
def test_two_groups_of_one_size_predict_as_the_forest_does(trees):
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(trees, max_depth=4, random_state=0).fit(X[::2], y[::2])
    credal = CredalClassifier.from_fitted(forest)
    np.testing.assert_allclose(credal.predict_proba(X), forest.predict_proba(X), rtol=0, atol=1e-12)


def digits_forest(trees, **options):
    return RandomForestClassifier(trees, random_state=0, **options).fit(*DIGITS)


def digits_members(estimator):
    return CredalClassifier(estimator, n_members=10, random_state=0).fit(*DIGITS)


FROM_FITTED = CredalClassifier.from_fitted


@pytest.mark.parametrize(
    ("crude", "words", "mended"),
    [
        (lambda: FROM_FITTED(digits_forest(3)), "train more", lambda: FROM_FITTED(digits_forest(30))),
        (
            lambda: FROM_FITTED(digits_forest(2)),
            "min_samples_leaf",
            lambda: FROM_FITTED(digits_forest(2, min_samples_leaf=5)),
        ),
        (
            lambda: FROM_FITTED(digits_forest(30), groups=None),
            "groups='auto'",
            lambda: FROM_FITTED(digits_forest(30), groups="auto"),
        ),
        (
            lambda: digits_members(TREE),
            "of the list estimators_",
            lambda: FROM_FITTED(digits_members(TREE).estimators_, groups="auto"),
        ),
        (
            lambda: digits_members(TREE),
            "of the forest or CredalClassifier",
            lambda: FROM_FITTED(digits_members(TREE), groups="auto"),
        ),
        (lambda: digits_members(TREE), "train forests", lambda: digits_members(RandomForestClassifier(10))),
        (
            lambda: FROM_FITTED(digits_forest(30), groups=25),
            "fewer groups",
            lambda: FROM_FITTED(digits_forest(30), groups=2),
        ),
        (
            lambda: digits_members(KNeighborsClassifier(1)),
            "CalibratedClassifierCV",
            lambda: digits_members(CalibratedClassifierCV(KNeighborsClassifier(1), cv=2)),
        ),
    ],
)
def test_the_remedy_fits_the_members_and_helps(crude, words, mended):
    with pytest.warns(UserWarning, match="the members are nearly one-hot") as caught:
        crude().predict(OTHER_DIGITS)
    assert words in str(caught[0].message)
    mended().predict(OTHER_DIGITS)  # a warning would be an error


@pytest.mark.filterwarnings("ignore:the members are nearly one-hot")
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_single_trees_vote_as_their_forest(kind):
    forest = kind(30, random_state=0).fit(*DIGITS)
    labels = CredalClassifier.from_fitted(forest, groups=None).predict(OTHER_DIGITS)
    np.testing.assert_array_equal(labels, forest.predict(OTHER_DIGITS))


@pytest.mark.parametrize("hull", [False, True])
def test_members_that_are_the_same_cause_a_warning(hull):
    models = [GaussianNB().fit(X, Y)] * 3
    credal = CredalClassifier.from_fitted(models, hull=hull)
    for predict in (credal.credal_predict, credal.predict_uncertainty):
        with pytest.warns(UserWarning, match="all members predict the same"):
            predict(X)


def test_a_single_member_causes_a_warning_when_it_is_trained_or_wrapped():
    with pytest.warns(UserWarning, match="there is a single member") as trained:
        CredalClassifier(GaussianNB(), n_members=1, random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="there is a single member") as wrapped:
        CredalClassifier.from_fitted(FOREST, groups=1)
    assert [caught[0].filename for caught in (trained, wrapped)] == [__file__] * 2


@pytest.mark.parametrize(("bootstrap", "resample"), [(True, "reseed"), (False, "bootstrap")])
def test_members_that_draw_their_rows_are_given_all(bootstrap, resample):
    estimator = RandomForestClassifier(10, bootstrap=bootstrap)
    auto, chosen = (
        CredalClassifier(estimator, n_members=2, resample=how, random_state=0).fit(X, Y) for how in ("auto", resample)
    )
    np.testing.assert_array_equal(auto.predict_proba(X), chosen.predict_proba(X))
