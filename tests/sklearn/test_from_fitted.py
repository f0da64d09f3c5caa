"""Wrapping fitted models equals wrap() on their stacked probabilities, whatever they are wrapped in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from credalens import wrap
from credalens.arrays import top_class
from credalens.guard import Guard
from credalens.sklearn import CredalClassifier
from tests.memory_use import with_peak

X, NUMBERS = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])
Y = LABELS[NUMBERS]
ROWS = X[::7]
pytestmark = pytest.mark.filterwarnings("ignore:the members are nearly one-hot")  # single trees, voters
FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic")


def forest(n=12, **options):
    return RandomForestClassifier(n, min_samples_leaf=3, random_state=0, **options).fit(X, Y)


def assert_wraps(credal, probs, rows=ROWS):
    """Every public prediction of ``credal`` follows from the member probabilities ``probs``."""
    expected = wrap(np.asarray(probs, dtype=np.float64))
    got = credal.credal_predict(rows)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=0, atol=1e-10, err_msg=name)
    lower, upper = credal.predict_interval(rows)
    np.testing.assert_allclose(lower, expected.lower, rtol=0, atol=1e-12)
    np.testing.assert_allclose(upper, expected.upper, rtol=0, atol=1e-12)
    np.testing.assert_allclose(credal.predict_proba(rows), expected.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(credal.predict_proba(rows).sum(axis=1), 1, rtol=0, atol=1e-12)
    named = top_class(expected.mean, ties=expected.mean)
    np.testing.assert_array_equal(credal.predict(rows), credal.classes_[named])
    uncertainty = credal.predict_uncertainty(rows)
    for part in ("total", "aleatoric", "epistemic"):
        np.testing.assert_allclose(getattr(uncertainty, part), getattr(expected, part), rtol=0, atol=1e-9)
        classical, oracle = getattr(uncertainty.classical, part), getattr(expected.classical, part)
        np.testing.assert_allclose(classical, oracle, rtol=0, atol=1e-9)
    for rule in ("maximality", "e_admissibility", "gamma_maximin"):
        np.testing.assert_array_equal(credal.predict_set(rows, rule=rule), expected.predict_set(rule))
    np.testing.assert_array_equal(credal.predict_set(rows), expected.predict_set("maximality"))
    costs = np.vstack([1 - np.eye(len(credal.classes_)), np.full(len(credal.classes_), 0.3)])
    np.testing.assert_array_equal(credal.predict_set(rows, costs=costs), expected.predict_set(costs=costs))


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_a_forest_is_its_trees_with_the_forests_labels(kind):
    model = kind(12, min_samples_leaf=3, random_state=0).fit(X, Y)
    credal = CredalClassifier.from_fitted(model, groups=None)
    assert_wraps(credal, [tree.predict_proba(ROWS.astype(np.float32)) for tree in model.estimators_])
    np.testing.assert_array_equal(credal.classes_, LABELS)
    assert credal.estimators_ == model.estimators_
    assert credal.n_features_in_ == 4
    np.testing.assert_allclose(credal.credal_predict(ROWS).mean, model.predict_proba(ROWS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("jobs", [1, 3, 50])
def test_any_number_of_jobs_folds_to_the_same_prediction(jobs):
    model = forest()
    credal = CredalClassifier.from_fitted(model, groups=None, n_jobs=jobs)
    assert_wraps(credal, [tree.predict_proba(ROWS.astype(np.float32)) for tree in model.estimators_])


def test_bagging_gives_each_member_its_own_columns():
    model = BaggingClassifier(GaussianNB(), 6, max_features=2, random_state=1).fit(X, Y)
    probs = [
        m.predict_proba(ROWS[:, columns])
        for m, columns in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    credal = CredalClassifier.from_fitted(model)
    assert_wraps(credal, probs)
    np.testing.assert_allclose(credal.credal_predict(ROWS).mean, model.predict_proba(ROWS), rtol=0, atol=1e-12)


def test_a_bagged_member_that_missed_a_class_gives_it_zero():
    rare = np.concatenate([np.flatnonzero(NUMBERS < 2), np.flatnonzero(NUMBERS == 2)[:2]])
    model = BaggingClassifier(KNeighborsClassifier(), 8, random_state=0).fit(X[rare], Y[rare])
    missing = [n for n, m in enumerate(model.estimators_) if len(m.classes_) == 2]
    assert missing
    assert len(missing) < 8
    prediction = CredalClassifier.from_fitted(model, hull=True).credal_predict(ROWS)
    np.testing.assert_allclose(prediction.mean, model.predict_proba(ROWS), rtol=0, atol=1e-12)
    assert (prediction.lower[:, 2] == 0).all()


def test_voting_members_predict_the_voters_labels():
    parts = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2)), ("dropped", "drop")]
    model = VotingClassifier(parts, voting="soft").fit(X, Y)
    credal = CredalClassifier.from_fitted(model)
    fresh = [estimator.fit(X, Y).predict_proba(ROWS) for _, estimator in parts[:2]]
    assert_wraps(credal, fresh)
    np.testing.assert_array_equal(credal.classes_, LABELS)


WRAPPERS = ["pipeline", "bare pipeline", "nested pipelines", "search", "frozen", "search of a pipeline"]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_ensemble_inside_is_found(wrapper):
    inner = RandomForestClassifier(6, min_samples_leaf=3, random_state=0)
    model = {
        "pipeline": make_pipeline(StandardScaler(), inner),
        "bare pipeline": make_pipeline(inner),
        "nested pipelines": make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), inner)),
        "search": GridSearchCV(inner, {"max_depth": [2, 3]}, cv=2),
        "frozen": FrozenEstimator(inner.fit(X, Y)),
        "search of a pipeline": GridSearchCV(
            make_pipeline(StandardScaler(), inner), {"standardscaler__with_mean": [True]}
        ),
    }[wrapper].fit(X, Y)
    credal = CredalClassifier.from_fitted(model, groups=None)
    best = model.best_estimator_ if "search" in wrapper else model
    rows = ROWS
    while isinstance(best, Pipeline):
        rows, best = best[:-1].transform(rows) if len(best) > 1 else rows, best[-1]
    trees = best.estimators_
    assert_wraps(credal, [tree.predict_proba(rows.astype(np.float32)) for tree in trees])
    assert credal.n_features_in_ == 4


def test_a_list_keeps_every_model_as_one_member():
    models = [forest(5), GaussianNB().fit(X, Y), make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)]
    credal = CredalClassifier.from_fitted(model for model in models)
    assert_wraps(credal, [model.predict_proba(ROWS) for model in models])
    assert credal.estimators_ == models


def test_models_from_elsewhere_need_only_classes_and_probabilities():
    class Elsewhere:
        classes_ = LABELS

        def predict_proba(self, X):
            return np.tile(np.float32([0.2, 0.3, 0.5]), (len(X), 1))

    bayes = GaussianNB().fit(X, Y)
    credal = CredalClassifier.from_fitted([Elsewhere(), bayes])
    assert_wraps(credal, [Elsewhere().predict_proba(ROWS), bayes.predict_proba(ROWS)])
    assert credal.n_features_in_ == 4


def test_one_model_has_no_epistemic_uncertainty():
    with pytest.warns(UserWarning, match="there is a single member, so .* epistemic uncertainty is zero"):
        credal = CredalClassifier.from_fitted([GaussianNB().fit(X, Y)])
    np.testing.assert_allclose(credal.predict_uncertainty(ROWS).epistemic, 0, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(credal.predict_set(ROWS).sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore:there is a single member")
def test_groups_are_averaged_before_they_are_compared():
    model = forest(10)
    trees = np.stack([tree.predict_proba(ROWS.astype(np.float32)) for tree in model.estimators_])
    credal = CredalClassifier.from_fitted(model, groups=3)
    assert_wraps(credal, [trees[:3].mean(0), trees[3:6].mean(0), trees[6:].mean(0)])
    assert credal.estimators_ == model.estimators_
    assert_wraps(CredalClassifier.from_fitted(model, groups=10), trees)
    np.testing.assert_allclose(
        CredalClassifier.from_fitted(model, groups=1).predict_proba(ROWS), model.predict_proba(ROWS), rtol=0, atol=1e-12
    )


def test_groups_lie_inside_the_intervals_of_single_trees():
    model = forest(20)
    (low, high), (inner_low, inner_high) = (
        CredalClassifier.from_fitted(model, groups=groups).predict_interval(ROWS) for groups in (None, 4)
    )
    assert (low <= inner_low + 1e-12).all()
    assert (inner_high <= high + 1e-12).all()
    assert (inner_high - inner_low).sum() < 0.9 * (high - low).sum()


def test_alignment_joins_the_classes_and_gives_zero_to_unknown_ones():
    two, last = (GaussianNB().fit(X[keep], Y[keep]) for keep in (Y != "virginica", Y != "setosa"))
    credal = CredalClassifier.from_fitted([two, last], align=True)
    np.testing.assert_array_equal(credal.classes_, LABELS)
    zero = np.zeros((len(ROWS), 1))
    assert_wraps(credal, [np.hstack([two.predict_proba(ROWS), zero]), np.hstack([zero, last.predict_proba(ROWS)])])


@pytest.mark.filterwarnings("ignore:all members predict the same")
def test_classes_in_another_order_are_put_in_order():
    class Reversed(GaussianNB):
        def fit(self, X, y):
            super().fit(X, y)
            self.order_ = self.classes_[::-1]
            return self

        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    model, swapped = GaussianNB().fit(X, Y), Reversed().fit(X, Y)
    straight = model.predict_proba(ROWS)
    swapped.classes_ = swapped.order_
    np.testing.assert_allclose(CredalClassifier.from_fitted([model, swapped]).predict_proba(ROWS), straight, atol=1e-12)


def test_votes_are_one_hot_rows_of_the_predicted_class():
    machine, bayes = LinearSVC(random_state=0).fit(X, Y), GaussianNB().fit(X, Y)
    credal = CredalClassifier.from_fitted([bayes, machine], votes=True)
    votes = (machine.predict(ROWS)[:, None] == LABELS).astype(float)
    assert_wraps(credal, [bayes.predict_proba(ROWS), votes])


def test_votes_inside_an_ensemble_map_to_its_labels():
    model = VotingClassifier([("one", LinearSVC(random_state=0)), ("two", LinearSVC(C=0.01, random_state=0))]).fit(X, Y)
    votes = [(LABELS[m.predict(ROWS)][:, None] == LABELS).astype(float) for m in model.estimators_]
    assert_wraps(CredalClassifier.from_fitted(model, votes=True), votes)


def test_the_hull_needs_the_members_and_keeps_the_intervals():
    model = forest(4)
    kept = CredalClassifier.from_fitted(model, groups=None, hull=True)
    assert_wraps(kept, [tree.predict_proba(ROWS.astype(np.float32)) for tree in model.estimators_])
    hull = kept.credal_predict(ROWS).hull.upper_entropy()
    assert (hull <= kept.predict_uncertainty(ROWS).total + 1e-9).all()
    with pytest.raises(ValueError, match="hull needs the members"):
        _ = CredalClassifier.from_fitted(model).credal_predict(ROWS).hull


def test_it_decides_by_the_guard_it_is_given():
    guard = Guard.fit(CredalClassifier.from_fitted(forest()).credal_predict(X[::2]), NUMBERS[::2], max_error=0.2)
    credal = CredalClassifier.from_fitted(forest(), guard=guard)
    expected = guard.decide(credal.credal_predict(X))
    np.testing.assert_array_equal(credal.decide(X).accepted, expected.accepted)
    with pytest.raises(ValueError, match="there is no guard to decide with"):
        CredalClassifier.from_fitted(credal).decide(X)  # a guard belongs to its members; groups can change them


def test_base_changes_only_the_unit():
    bits, nats = (CredalClassifier.from_fitted(forest(), base=base).predict_uncertainty(ROWS) for base in (2, np.e))
    np.testing.assert_allclose(nats.epistemic, bits.epistemic * np.log(2), atol=1e-12)


def peak_memory(work):
    work()
    return with_peak(work)[1]


def test_memory_does_not_grow_with_the_number_of_trees():
    data, target = make_classification(200, 8, n_informative=6, n_classes=10, n_clusters_per_class=1, random_state=0)
    rows = np.tile(data, (20, 1))
    one_state = len(rows) * 10 * 8
    peaks = []
    for trees in (10, 80):
        model = RandomForestClassifier(trees, max_depth=4, random_state=0).fit(data, target)
        peaks.append(
            peak_memory(lambda model=model: CredalClassifier.from_fitted(model, groups=None).credal_predict(rows))
        )
    assert peaks[1] < 1.5 * peaks[0]  # eight times the trees
    assert peaks[1] < 20 * one_state
    assert (
        peak_memory(lambda: CredalClassifier.from_fitted(model, groups=None, hull=True).credal_predict(rows))
        > 80 * one_state
    )
