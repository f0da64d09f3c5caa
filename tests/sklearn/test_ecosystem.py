"""A good neighbour: pipelines, searches, cross-validation, clones, files, data frames, sparse rows and text."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from credalens.sklearn import CredalClassifier

X, NUMBERS = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]
NAMES = ["a", "b", "c", "d"]
pytestmark = pytest.mark.filterwarnings("ignore:the members are nearly one-hot")  # single trees
PANDAS, POLARS = pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)


def test_in_a_pipeline_a_search_and_cross_validation():
    pipeline = make_pipeline(StandardScaler(), CredalClassifier(random_state=0))
    grid = {"credalclassifier__n_members": [2, 4], "credalclassifier__estimator": [GaussianNB(), LogisticRegression()]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.9
    assert len(search.best_estimator_[-1].estimators_) == search.best_params_["credalclassifier__n_members"]
    probs = cross_val_predict(search.best_estimator_, X, Y, cv=3, method="predict_proba")
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    assert cross_val_score(CredalClassifier(n_members=2, random_state=0), X, Y, cv=3).mean() > 0.9


def test_parameters_of_the_estimator_are_searched():
    search = GridSearchCV(
        CredalClassifier(GaussianNB(), random_state=0), {"estimator__var_smoothing": [1e-9, 1e-2]}, cv=2
    )
    assert search.fit(X, Y).best_score_ > 0.9


def test_a_clone_has_the_parameters_and_no_members():
    credal = CredalClassifier(GaussianNB(), n_members=3, hull=True, random_state=0).fit(X, Y)
    copy = clone(credal)
    assert not hasattr(copy, "estimators_")
    np.testing.assert_array_equal(copy.fit(X, Y).predict_proba(X), credal.predict_proba(X))


def test_a_clone_of_wrapped_models_trains_the_first_of_them():
    models = [GaussianNB(var_smoothing=s).fit(X, Y) for s in (1e-3, 1e-2)]
    copy = clone(CredalClassifier.from_fitted(models)).fit(X, Y)
    assert [type(member) for member in copy.estimators_] == [GaussianNB] * 2
    assert {member.var_smoothing for member in copy.estimators_} == {1e-3}
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    copy = clone(CredalClassifier.from_fitted(forest)).fit(X, Y)
    assert [type(member) for member in copy.estimators_] == [RandomForestClassifier] * 5


def test_a_wrapped_forest_comes_back_from_a_file(tmp_path):
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, Y)
    credal = CredalClassifier.from_fitted(forest, groups=2)
    joblib.dump(credal, tmp_path / "credal.joblib")
    back = joblib.load(tmp_path / "credal.joblib")
    np.testing.assert_array_equal(back.predict_proba(X), credal.predict_proba(X))


@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
@pytest.mark.parametrize("labels", ["array", "series"])
def test_data_frames_train_and_predict_as_arrays_do(frame, labels):
    y = Y if labels == "array" else type(frame["a"])(Y)
    credal = CredalClassifier(n_members=2, random_state=0).fit(frame, y)
    plain = CredalClassifier(n_members=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(credal.predict_proba(frame), plain.predict_proba(X))
    np.testing.assert_array_equal(credal.predict(frame), plain.predict(X))
    np.testing.assert_array_equal(credal.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="feature names should match"):
        credal.predict(frame[NAMES[::-1]])


@pytest.mark.filterwarnings(
    "ignore:X does not have valid feature names, but (Gaus|Decision|Standard)"
)  # the members' own
@pytest.mark.parametrize("frame", [PANDAS, POLARS], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "ensemble",
    [
        RandomForestClassifier(4, random_state=0),
        BaggingClassifier(GaussianNB(), 4, max_features=3, random_state=0),
        VotingClassifier([("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))], voting="soft"),
        make_pipeline(StandardScaler(), RandomForestClassifier(4, random_state=0)),
    ],
    ids=["forest", "bagging", "voting", "pipeline"],
)
def test_ensembles_trained_on_data_frames_are_wrapped(ensemble, frame):
    credal = CredalClassifier.from_fitted(clone(ensemble).fit(frame, Y))
    plain = CredalClassifier.from_fitted(clone(ensemble).fit(X, Y))
    np.testing.assert_allclose(credal.predict_proba(frame), plain.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(credal.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="feature names should match"):
        credal.predict(frame[NAMES[::-1]])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but CredalClassifier"):
        credal.predict(X)


def test_members_select_columns_of_a_data_frame_by_name():
    frame = PANDAS.assign(colour=np.where(NUMBERS == 0, "red", "blue"))
    steps = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["c", "d"]))
    credal = CredalClassifier(make_pipeline(steps, LogisticRegression()), random_state=0).fit(frame, Y)
    assert credal.score(frame, Y) > 0.9
    assert credal.n_features_in_ == 5


def test_missing_values_are_the_members_business():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    forest = RandomForestClassifier(5, random_state=0).fit(holes, Y)
    assert CredalClassifier.from_fitted(forest).score(holes, Y) > 0.8
    filled = make_pipeline(SimpleImputer(), GaussianNB())
    assert CredalClassifier(filled, random_state=0).fit(holes, Y).score(holes, Y) > 0.8
    with pytest.raises(ValueError, match="GaussianNB does not accept missing values"):
        CredalClassifier(GaussianNB(), random_state=0).fit(holes, Y)


def test_sparse_rows():
    rows = sparse.csr_array(np.where(X > 1, X, 0.0))
    credal = CredalClassifier(random_state=0).fit(rows, Y)
    np.testing.assert_array_equal(credal.predict_proba(rows), credal.predict_proba(rows.toarray()))
    for model in (RandomForestClassifier(4, random_state=0), BaggingClassifier(n_estimators=4, max_features=2)):
        wrapped = CredalClassifier.from_fitted(model.fit(rows, Y))
        np.testing.assert_allclose(
            wrapped.predict_proba(rows.tocsc()), wrapped.predict_proba(rows.toarray()), rtol=0, atol=1e-12
        )


def test_text():
    words = ["good fine great", "bad awful poor", "great good", "poor bad", "fine great fine", "awful awful bad"] * 3
    mood = np.array([1, 0] * 9)
    credal = CredalClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0).fit(words, mood)
    np.testing.assert_array_equal(credal.predict(["a great film", "a poor film"]), [1, 0])


def test_weights_are_routed_through_a_pipeline():
    weight = np.where(NUMBERS == 2, 0.0, 1.0)
    with config_context(enable_metadata_routing=True):
        credal = CredalClassifier(random_state=0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, credal).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(pipeline.classes_, ["setosa", "versicolor"])
