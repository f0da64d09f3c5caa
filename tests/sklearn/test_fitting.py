"""Training members: seeds, stratified bootstraps, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.datasets import load_iris, make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from credalens import wrap
from credalens.sklearn import CredalClassifier
from credalens.sklearn.fitting import TrainingData

X, Y = load_iris(return_X_y=True)


def probabilities(credal, rows=X):
    return np.stack([member.predict_proba(rows) for member in credal.estimators_])


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=40), st.integers(0, 2**31 - 1))
def test_a_bootstrap_keeps_the_number_of_rows_of_every_class(labels, seed):
    y = np.array(labels)
    rows = TrainingData(np.arange(len(y))[:, None], y).bootstrap(np.random.RandomState(seed))
    np.testing.assert_array_equal(np.bincount(y[rows], minlength=5), np.bincount(y, minlength=5))


def test_a_bootstrap_draws_rows_of_a_class_alike_and_with_repeats():
    data = TrainingData(np.zeros((8, 1)), np.array([0, 1] * 4))
    rng = np.random.RandomState(0)
    draws = np.stack([data.bootstrap(rng) for _ in range(2000)])
    # Each of the 8 rows is drawn once on average; the standard error of the mean is sqrt(3/4 / 2000) = 0.019.
    np.testing.assert_allclose(np.bincount(draws.ravel()) / 2000, 1, atol=0.1)
    assert (np.array([len(set(draw)) for draw in draws]) < 8).mean() > 0.9


@pytest.mark.parametrize("resample", ["bootstrap", "reseed"])
def test_members_differ_and_a_seed_decides_them(resample):
    estimator = DecisionTreeClassifier(min_samples_leaf=5, max_features=1)
    fitted, again, reseeded = (
        CredalClassifier(estimator, resample=resample, n_members=4, random_state=seed).fit(X, Y) for seed in (1, 1, 2)
    )
    members = probabilities(fitted)
    np.testing.assert_array_equal(members, probabilities(again))
    assert (members != probabilities(reseeded)).any()
    for first in range(4):
        for second in range(first):
            assert (members[first] != members[second]).any()
    np.testing.assert_allclose(fitted.predict_proba(X), wrap(members).mean, rtol=0, atol=1e-12)


def test_members_trained_in_parallel_are_the_same():
    with parallel_config("threading"):  # processes take seconds to start
        serial, parallel = (CredalClassifier(random_state=0, n_jobs=jobs).fit(X, Y) for jobs in (None, 2))
    np.testing.assert_array_equal(probabilities(serial), probabilities(parallel))


def test_reseeding_trains_on_all_rows():
    credal = CredalClassifier(DecisionTreeClassifier(), resample="reseed", random_state=0).fit(X, Y)
    for tree in credal.estimators_:
        assert tree.tree_.n_node_samples[0] == len(X)


class FromElsewhere:
    """A classifier that knows nothing of scikit-learn but fit and predict_proba."""

    def fit(self, X, y):
        self.classes_, self._centre = np.unique(y), X.mean(axis=0)
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.abs(X - self._centre)[:, :3])
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class WithRandomSeed(GaussianNB):
    """Names its seed as CatBoost does."""

    def __init__(self, random_seed=None):
        super().__init__()
        self.random_seed = random_seed


def test_any_estimator_with_probabilities_is_trained():
    credal = CredalClassifier(FromElsewhere(), n_members=3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(credal.predict_proba(X), wrap(probabilities(credal)).mean, rtol=0, atol=1e-12)
    assert (credal.predict_uncertainty(X).epistemic > 0).all()
    with pytest.raises(ValueError, match="FromElsewhere has none"):
        CredalClassifier(FromElsewhere(), resample="reseed").fit(X, Y)


def test_a_random_seed_is_a_seed_too():
    credal = CredalClassifier(WithRandomSeed(), n_members=3, random_state=0).fit(X, Y)
    assert len({member.random_seed for member in credal.estimators_}) == 3


def test_every_random_state_inside_is_set():
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0))
    credal = CredalClassifier(pipeline, resample="reseed", random_state=0).fit(X, Y)
    seeds = {member[-1].random_state for member in credal.estimators_}
    assert len(seeds) == 5
    assert pipeline[-1].random_state == 0


def test_the_estimator_given_is_left_alone():
    estimator = GaussianNB()
    CredalClassifier(estimator, random_state=0).fit(X, Y)
    assert not hasattr(estimator, "classes_")


def test_every_member_knows_a_class_of_one_row():
    y = np.where(np.arange(len(Y)) == 17, 3, Y)
    credal = CredalClassifier(n_members=10, random_state=0).fit(X, y)
    for member in credal.estimators_:
        np.testing.assert_array_equal(member.classes_, [0, 1, 2, 3])


@pytest.mark.parametrize("resample", ["bootstrap", "reseed"])
def test_rows_of_weight_zero_do_not_count(resample):
    weight = np.where(np.arange(len(Y)) % 3 == 0, 0.0, 1.5)
    counted = weight > 0
    options = {"resample": resample, "random_state": 0}
    weighted = CredalClassifier(**options).fit(X, Y, sample_weight=weight)
    without = CredalClassifier(**options).fit(X[counted], Y[counted], sample_weight=weight[counted])
    np.testing.assert_array_equal(probabilities(weighted), probabilities(without))


def test_a_weight_of_two_is_a_row_written_twice_when_members_are_reseeded():
    weight = 1 + (np.arange(len(Y)) % 4 == 0)
    estimator = DecisionTreeClassifier(max_depth=3, max_features=2)
    weighted, repeated = (
        CredalClassifier(estimator, resample="reseed", random_state=0).fit(*arguments, **options)
        for arguments, options in (
            ((X, Y), {"sample_weight": weight}),
            ((X.repeat(weight, axis=0), Y.repeat(weight)), {}),
        )
    )
    np.testing.assert_allclose(probabilities(weighted), probabilities(repeated), atol=1e-12)


@pytest.mark.filterwarnings("ignore:all members predict the same")
def test_a_weight_goes_with_its_row_through_the_bootstrap():
    # Rows of class 1 outnumber those of class 0 at the same place, but weigh a hundredth.
    x, y = np.zeros((100, 1)), np.repeat([0, 1], [20, 80])
    weight = np.where(y == 0, 1.0, 0.01)
    credal = CredalClassifier(DecisionTreeClassifier(), random_state=0).fit(x, y, sample_weight=weight)
    np.testing.assert_allclose(credal.predict_proba([[0.0]]), [[20 / 20.8, 0.8 / 20.8]], atol=1e-12)


def test_a_step_of_a_pipeline_takes_weights_by_its_name():
    weight = np.where(Y == 2, 0.0, 1.0)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    credal = CredalClassifier(pipeline, random_state=0).fit(X, Y, logisticregression__sample_weight=weight)
    np.testing.assert_array_equal(credal.classes_, [0, 1])
    with pytest.raises(TypeError, match=r"sample_weight\. For a pipeline name the step"):
        CredalClassifier(pipeline).fit(X, Y, sample_weight=weight)


def test_epistemic_uncertainty_is_higher_where_there_were_no_rows():
    data, target = make_blobs(120, centers=[[-4, 0], [4, 0]], random_state=0)
    credal = CredalClassifier(LogisticRegression(), n_members=10, random_state=0).fit(data, target)
    near, far = credal.predict_uncertainty(np.array([[-4.0, 0.0], [0.0, 30.0]])).epistemic
    assert far > 10 * near


def test_more_members_of_the_same_seed_only_widen_the_intervals():
    seeds = {"random_state": 3}
    few, many = (CredalClassifier(KNeighborsClassifier(), n_members=n, **seeds).fit(X, Y) for n in (3, 8))
    (low, high), (lower, higher) = few.predict_interval(X), many.predict_interval(X)
    assert (lower <= low).all()
    assert (high <= higher).all()
    assert (lower < low).any()
