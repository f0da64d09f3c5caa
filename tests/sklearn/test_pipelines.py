"""A pipeline hides predict_uncertainty; both ways around it give what the classifier inside predicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from credalens.sklearn import CredalClassifier

X, Y = load_iris(return_X_y=True)
SCORES = ("total", "aleatoric", "epistemic")


def assert_same_uncertainty(credal, expected):
    for name in SCORES:
        np.testing.assert_array_equal(getattr(credal.predict_uncertainty(X), name), getattr(expected, name))


def test_a_fitted_pipeline_that_ends_in_a_credal_classifier():
    inner = CredalClassifier(LogisticRegression(), n_members=3, hull=True, base=math.e, random_state=0)
    pipeline = make_pipeline(StandardScaler(), inner).fit(X, Y)
    assert not hasattr(pipeline, "predict_uncertainty")
    credal = CredalClassifier.from_fitted(pipeline)
    assert_same_uncertainty(credal, pipeline[-1].predict_uncertainty(pipeline[:-1].transform(X)))
    np.testing.assert_array_equal(credal.predict_proba(X), pipeline.predict_proba(X))
    assert (credal.base, credal.hull) == (math.e, True)
    assert CredalClassifier.from_fitted(pipeline, base=2, hull=False).get_params()["base"] == 2


@pytest.mark.filterwarnings("ignore:the members are nearly one-hot")
def test_without_groups_its_members_stay_as_they_are():
    pipeline = make_pipeline(StandardScaler(), CredalClassifier(DecisionTreeClassifier(), n_members=12)).fit(X, Y)
    credal = CredalClassifier.from_fitted(pipeline, groups=None)
    assert credal.credal_predict(X).n_members == 12
    np.testing.assert_array_equal(credal.predict_proba(X), pipeline.predict_proba(X))
    assert CredalClassifier.from_fitted(pipeline, groups=4).credal_predict(X).n_members == 4


def test_a_pipeline_inside_is_part_of_every_member():
    credal = CredalClassifier(make_pipeline(StandardScaler(), LogisticRegression()), n_members=2, random_state=0)
    members = [member.predict_proba(X) for member in credal.fit(X, Y).estimators_]
    expected = np.min(members, axis=0), np.max(members, axis=0)
    np.testing.assert_allclose(credal.predict_interval(X), expected, rtol=0, atol=1e-12)


def test_a_search_and_a_wrapped_forest_inside_a_pipeline():
    forest = make_pipeline(MinMaxScaler(), RandomForestClassifier(10, random_state=0))
    scaled = StandardScaler().fit_transform(X)
    wrapped = CredalClassifier.from_fitted(forest.fit(scaled, Y))
    pipeline = make_pipeline(StandardScaler(), CredalClassifier(n_members=2))
    pipeline[0].fit(X)
    pipeline.steps[-1] = ("credal", wrapped)
    assert_same_uncertainty(CredalClassifier.from_fitted(pipeline), wrapped.predict_uncertainty(scaled))
    search = GridSearchCV(CredalClassifier(GaussianNB(), random_state=0), {"n_members": [2]}, cv=2).fit(X, Y)
    assert_same_uncertainty(CredalClassifier.from_fitted(search), search.best_estimator_.predict_uncertainty(X))


def test_an_unfitted_one_is_refused():
    with pytest.raises(NotFittedError, match="CredalClassifier is not fitted"):
        CredalClassifier.from_fitted(CredalClassifier())


def test_short_representations():
    credal = CredalClassifier(GaussianNB(), n_members=2, random_state=0).fit(X, Y)
    assert repr(credal) == "CredalClassifier(estimator=GaussianNB(), n_members=2, random_state=0)"
    assert repr(credal.predict_uncertainty(X)) == "CredalUncertainty(rows=150)"
