"""Adapters hand decisions out: the guard's own, on the predictions they make."""

import numpy as np
import pytest

from credalens import CredalPrediction, MemberSummary, wrap, wrap_logits
from credalens.arrays import SEVERAL, rounding
from credalens.guard import Guard
from credalens.scoring import score_file
from credalens.storage import open_predictions
from credalens.storage.source import Source, wrap_chunk
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

    with pytest.raises(ValueError, match=r"guard=Guard.fit\(.*got 'guard.json'"):
        CredalWrapper([torch.nn.Linear(4, 3)], guard="guard.json")


def test_training_again_makes_a_guard_one_of_other_members():
    from sklearn.linear_model import LogisticRegression

    from credalens.sklearn import CredalClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + rng.normal(0, 0.3, 200) > 0).astype(int)
    model = CredalClassifier(LogisticRegression(), n_members=3, random_state=0).fit(X, y)
    model.guard = Guard.fit(model.credal_predict(X), score="mean_total")
    with pytest.warns(UserWarning, match=r"before these members were trained.*Fit it again"):
        model.fit(X, y)


HALF_LOGITS = batch_of("peaked", 3, 40, 4, seed=3)
KINDS = pytest.mark.parametrize("outputs", ["logits", "probabilities"])
DTYPES = pytest.mark.parametrize(
    "dtypes", [["float16"] * 3, ["bfloat16"] * 3, ["float32"] * 3, ["float16", "float64", "float64"]]
)


@KINDS
@DTYPES
def test_every_way_to_a_prediction_knows_how_its_members_were_rounded(tmp_path, outputs, dtypes):
    """Also members of several dtypes, whose rounding is that of no dtype."""
    torch = pytest.importorskip("torch")
    from credalens.torch import CredalWrapper

    values = np.log(HALF_LOGITS) if outputs == "logits" else HALF_LOGITS
    tensors = [torch.from_numpy(x).to(getattr(torch, dtype)) for x, dtype in zip(values, dtypes, strict=True)]
    expected = rounding(dtypes[0], logits=outputs == "logits") * (1 if len(set(dtypes)) == 1 else SEVERAL)
    members = [lambda rows, x=x: x[rows] for x in tensors]
    wrap_all, rows = wrap_logits if outputs == "logits" else wrap, torch.arange(40)
    listed = wrap_all(tensors)
    listed.save(tmp_path / "p.npz")
    found = {
        "list": listed,
        "classes elsewhere": wrap_all([x.T for x in tensors], class_axis=1),
        "some": listed[3:9],
        "saved": CredalPrediction.load(tmp_path / "p.npz"),
        "predict": CredalWrapper(members, outputs=outputs).predict(rows, batch_size=13, progress=False),
    }
    for option in ({}, {"hull": True}, {"gradients": True}):
        found[str(option)] = CredalWrapper(members, outputs=outputs, **option)(rows)
    compiled = torch.compile(CredalWrapper(members, outputs=outputs), backend="eager")
    found["compiled"] = compiled(rows)
    if outputs == "probabilities":
        found["summary"] = MemberSummary().update(tensors).prediction()
        found["in parts"] = sum((MemberSummary().update(x[None]) for x in tensors[::-1]), MemberSummary()).prediction()
    if len(set(dtypes)) == 1:
        found["stack"] = wrap_all(torch.stack(tensors))
    assert {name: prediction._rounding for name, prediction in found.items()} == dict.fromkeys(found, expected)


@KINDS
def test_a_file_in_half_precision_is_judged_as_its_members_in_memory(tmp_path, outputs):
    """A guard of other members in float64; of bfloat16 a file is read as float32."""
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    rng, logits = np.random.default_rng(0), outputs == "logits"
    smoothed = 0.9 * np.eye(4)[rng.integers(0, 4, (3, 900))] + 0.025
    values, wrap_all = (np.log(smoothed), wrap_logits) if logits else (smoothed, wrap)
    guard = Guard.fit(wrap_all(values[:, :400]), score="mean_aleatoric")
    tensor = torch.from_numpy(values[:, 400:]).to(torch.bfloat16)
    safetensors.save_file({outputs if logits else "probs": tensor}, tmp_path / "later.safetensors")
    score_file(tmp_path / "later.safetensors", tmp_path / "out.npz", guard=guard, logits=logits)
    decided = guard.decide(wrap_all(tensor))
    assert np.load(tmp_path / "out.npz")["decision"].tolist() == decided.decision.tolist()
    source = Source("later", open_predictions(tmp_path / "later.safetensors", logits=logits), logits)
    assert wrap_chunk(source, source.read(0, 16))._rounding == source.rounding == wrap_all(tensor)._rounding
    assert (np.asarray(decided.accepted)).mean() >= 0.9
