"""Adapters hand decisions out: the guard's own, on the predictions they make."""

import numpy as np
import pytest

from credalens import wrap
from credalens.guard import Guard
from tests.strategies import batch_of

NAMES_THE_REMEDY = (
    r"mean_pairwise_kl needs the members themselves.*pass hull=True to CredalWrapper or CredalClassifier.*wrap\(probs\)"
)


def guard_with_pairwise_kl(members, classes):
    """A guard as ``credalens evaluate`` writes it where this score is best."""
    probs = np.random.default_rng(0).dirichlet(np.ones(classes), (members, 60))
    return Guard.fit(wrap(probs), score="mean_pairwise_kl")


def test_a_guard_that_needs_the_members_names_the_option_of_the_wrapper():
    torch = pytest.importorskip("torch")
    from credalens.torch import CredalWrapper

    members, x = [torch.nn.Linear(4, 3) for _ in range(5)], torch.randn(6, 4)
    guard = guard_with_pairwise_kl(5, 3)
    with pytest.raises(ValueError, match=NAMES_THE_REMEDY):
        CredalWrapper(members, guard=guard).decide(x)
    assert CredalWrapper(members, guard=guard, hull=True).decide(x).accepted.shape == (6,)


def test_a_guard_that_needs_the_members_names_the_option_of_the_classifier():
    pytest.importorskip("sklearn")
    from sklearn.datasets import load_iris
    from sklearn.naive_bayes import GaussianNB

    from credalens.sklearn import CredalClassifier

    X, y = load_iris(return_X_y=True)
    models, guard = [GaussianNB().fit(X[n::3], y[n::3]) for n in range(3)], guard_with_pairwise_kl(3, 3)
    with pytest.raises(ValueError, match=NAMES_THE_REMEDY):
        CredalClassifier.from_fitted(models, guard=guard).decide(X)
    assert CredalClassifier.from_fitted(models, hull=True, guard=guard).decide(X).accepted.shape == (150,)


def test_a_wrapper_decides_as_its_guard():
    torch = pytest.importorskip("torch")
    from credalens.torch import CredalWrapper

    torch.manual_seed(0)
    members, x = [torch.nn.Linear(4, 3) for _ in range(5)], torch.randn(60, 4)
    guard = Guard.fit(CredalWrapper(members).predict_batch(x), score="mean_total", false_alarm_rate=0.2)
    wrapper = CredalWrapper(members, guard=guard)
    decided = wrapper.decide(3 * x)
    np.testing.assert_array_equal(decided.accepted, guard.decide(wrapper.predict_batch(3 * x)).accepted)
    assert isinstance(decided.p_value, torch.Tensor)
    with pytest.raises(ValueError, match=r"there is no guard to decide with: pass guard=Guard.fit"):
        CredalWrapper(members).decide(x)


def test_a_classifier_decides_as_its_guard():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.datasets import load_iris

    from credalens.sklearn import CredalClassifier

    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = CredalClassifier(random_state=0).fit(X[::2], names[::2])
    places = np.searchsorted(model.classes_, names[1::2])
    model.guard = Guard.fit(model.credal_predict(X[1::2]), places, max_error=0.1, false_alarm_rate=0.1)
    decided = model.decide(X)
    np.testing.assert_array_equal(model.classes_[decided.prediction], model.predict(X))
    np.testing.assert_array_equal(decided.accepted, model.guard.decide(model.credal_predict(X)).accepted)
    assert clone(model).guard.digest == model.guard.digest
    with pytest.raises(ValueError, match="there is no guard to decide with"):
        CredalClassifier(random_state=0).fit(X, y).decide(X)


def test_members_that_are_not_wrapped_are_named():
    with pytest.raises(TypeError, match=r"expected a CredalPrediction; got ndarray. Use wrap\(probs\)"):
        Guard.fit(batch_of("peaked", 4, 90, 3))


def test_a_path_is_no_guard():
    torch = pytest.importorskip("torch")
    from credalens.torch import CredalWrapper

    with pytest.raises(
        ValueError, match=r"pass guard=Guard.fit\(prediction, labels\), or Guard.load\(path\); got 'guard.json'"
    ):
        CredalWrapper([torch.nn.Linear(4, 3)], guard="guard.json")


def test_training_again_makes_a_guard_one_of_other_members():
    from sklearn.linear_model import LogisticRegression

    from credalens.sklearn import CredalClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + rng.normal(0, 0.3, 200) > 0).astype(int)
    model = CredalClassifier(LogisticRegression(), n_members=3, random_state=0).fit(X, y)
    model.guard = Guard.fit(model.credal_predict(X), score="mean_total")
    with pytest.warns(UserWarning, match=r"the guard was fitted before these members were trained.*Fit it again"):
        model.fit(X, y)
