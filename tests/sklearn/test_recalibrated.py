"""A recalibrated classifier: temperatures from rows that members did not learn, used by everything it predicts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from credalens import Recalibration, wrap
from credalens.evaluation import calibration_metrics
from credalens.guard import Guard
from credalens.sklearn import CredalClassifier

SURE = GradientBoostingClassifier(n_estimators=40, max_depth=4, learning_rate=0.3)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        900, 12, n_informative=5, n_classes=3, class_sep=0.7, flip_y=0.15, random_state=0, n_clusters_per_class=1
    )
    return X[:400], y[:400], X[400:], y[400:]


@pytest.mark.parametrize("on", [3, 0.25])
def test_members_that_are_too_sure_are_better_calibrated_on_new_rows(data, on):
    X, y, X_new, y_new = data
    plain = CredalClassifier(SURE, n_members=2, random_state=0).fit(X, y)
    recalibrated = CredalClassifier(SURE, n_members=2, random_state=0, recalibrate="credal", recalibrate_on=on).fit(
        X, y
    )
    before, after = (calibration_metrics(model.predict_proba(X_new), y_new) for model in (plain, recalibrated))
    assert recalibrated.recalibration_.temperatures[0] > 1.5
    assert after.nll < 0.9 * before.nll
    assert after.ece < before.ece


def test_folds_train_the_members_on_all_rows_and_a_share_on_the_others(data):
    X, y, _, _ = data
    options = {"estimator": LogisticRegression(), "n_members": 3, "random_state": 0}
    plain = CredalClassifier(**options).fit(X, y)
    folds = CredalClassifier(**options, recalibrate="averaged").fit(X, y)
    share = CredalClassifier(**options, recalibrate="averaged", recalibrate_on=0.5).fit(X, y)
    assert folds.recalibration_.n == len(y)
    assert share.recalibration_.n == len(y) // 2
    np.testing.assert_array_equal(folds.estimators_[0].coef_, plain.estimators_[0].coef_)
    assert not np.array_equal(share.estimators_[0].coef_, plain.estimators_[0].coef_)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("hull", [False, True])
def test_everything_that_is_predicted_is_recalibrated(data, n_jobs, hull):
    X, y, X_new, _ = data
    models = [LogisticRegression(C=10.0**k).fit(X, y) for k in (-3, -1, 1)]
    recalibration = Recalibration.of([0.5, 1.0, 2.0], classes=3)
    model = CredalClassifier.from_fitted(models, recalibration=recalibration, n_jobs=n_jobs, hull=hull)
    expected = wrap(np.stack([m.predict_proba(X_new) for m in models]), recalibration=recalibration)
    prediction = model.credal_predict(X_new)
    np.testing.assert_allclose(prediction.total, expected.total, atol=1e-9)
    assert prediction.temperatures == expected.temperatures
    np.testing.assert_allclose(model.predict_proba(X_new), expected.mean, atol=1e-12)
    np.testing.assert_allclose(model.predict_interval(X_new)[0], expected.lower, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X_new), model.classes_[expected.mean.argmax(-1)])


def test_a_guard_of_its_predictions_knows(data):
    X, y, X_new, _ = data
    model = CredalClassifier(LogisticRegression(), n_members=3, random_state=0, recalibrate="credal").fit(X, y)
    model.guard = Guard.fit(model.credal_predict(X_new), score="mean_total")
    assert model.decide(X_new).accepted.mean() > 0.9
    plain = CredalClassifier.from_fitted(model.estimators_)
    with pytest.raises(ValueError, match="Use the same recalibration"):
        model.guard.decide(plain.credal_predict(X_new))


def test_it_is_cloned_and_labels_may_be_text():
    X, y = load_wine(return_X_y=True)
    names = np.array(["one", "two", "three"])[y]
    model = clone(CredalClassifier(SURE, n_members=2, random_state=0, recalibrate="members", recalibrate_on=2)).fit(
        X, names
    )
    assert len(model.recalibration_.temperatures) == 2
    assert set(model.predict(X)) <= set(names)


def test_weights_reach_the_temperature(data):
    X, y, _, _ = data
    weights = np.where(np.arange(len(y)) % 2, 1.0, 3.0)
    options = {"estimator": LogisticRegression(), "n_members": 2, "random_state": 0, "recalibrate": "credal"}
    one = CredalClassifier(**options).fit(X, y).recalibration_.temperatures[0]
    other = CredalClassifier(**options).fit(X, y, sample_weight=weights).recalibration_.temperatures[0]
    assert one != other


class TestRefusals:
    def test_a_class_of_one_row(self, data):
        X, y, _, _ = data
        y = y.copy()
        y[y == 2] = 1
        y[0] = 2
        for on in (5, 0.2):
            with pytest.raises(ValueError, match="recalibrate=None"):
                CredalClassifier(LogisticRegression(), recalibrate="credal", recalibrate_on=on).fit(X, y)

    @pytest.mark.parametrize("on", [1, 0, -2, 1.5, "five"])
    def test_rows_that_are_none(self, data, on):
        with pytest.raises((ValueError, TypeError), match="recalibrate_on"):
            CredalClassifier(LogisticRegression(), recalibrate="credal", recalibrate_on=on).fit(*data[:2])

    def test_words_that_are_none(self, data):
        with pytest.raises(ValueError, match="recalibrate must be"):
            CredalClassifier(LogisticRegression(), recalibrate="platt").fit(*data[:2])
        with pytest.raises(TypeError, match=r"Recalibration\.fit"):
            CredalClassifier(LogisticRegression(), recalibrate=2.0).fit(*data[:2])

    def test_one_hot_members(self, data):
        with pytest.raises(ValueError, match="one-hot"):
            CredalClassifier(DecisionTreeClassifier(), recalibrate="credal", random_state=0).fit(*data[:2])

    def test_other_members(self, data):
        models = [LogisticRegression().fit(*data[:2])] * 2
        with pytest.raises(ValueError, match="for 3 members and 2 came"):
            CredalClassifier.from_fitted(models, recalibration=Recalibration.of([1.0] * 3, classes=3))


@pytest.mark.parametrize("classes", [3, 10])
def test_the_point_prediction_is_what_was_asked_for_and_follows_the_number_of_classes(classes):
    X, y = make_classification(600, 12, n_informative=8, n_classes=classes, n_clusters_per_class=1, random_state=0)
    models = [LogisticRegression(C=10.0**k).fit(X, y) for k in (-3, 1)]
    expected = wrap(np.stack([m.predict_proba(X) for m in models]))
    auto = expected.mean if classes < 10 else expected.probability
    for point, probs in (("auto", auto), ("mean", expected.mean), ("intersection", expected.probability)):
        model = CredalClassifier.from_fitted(models, point=point)
        np.testing.assert_allclose(model.predict_proba(X), probs, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), probs.argmax(-1))
    with pytest.raises(ValueError, match="point must be one of 'auto'"):
        CredalClassifier.from_fitted(models, point="both")


@pytest.mark.parametrize("rule", ["maximality", "gamma_minimax", "expected_intersection", "expected_mean"])
def test_decisions_under_costs_are_those_of_the_prediction(data, rule):
    X, y, X_new, _ = data
    model = CredalClassifier.from_fitted([LogisticRegression(C=10.0**k).fit(X, y) for k in (-3, 1)])
    costs = [[0, 5, 1], [1, 0, 2], [0.4, 0.4, 0.4]]
    np.testing.assert_array_equal(
        model.predict_set(X_new, rule, costs), model.credal_predict(X_new).predict_set(rule, costs)
    )
