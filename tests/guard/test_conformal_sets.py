"""Conformal sets: the promised coverage, with ties too; the same in every batch; MAPIE's and crepes' numbers."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from credalens import wrap
from credalens.guard import ConformalSets, Guard, compare_sets
from credalens.guard.binomial import binomial_interval, conformal_quantile, least_samples
from credalens.guard.conformal_sets import NONCONFORMITY, Rows, SetScore, hashed_uniforms
from credalens.storage.saved import SavedFormat
from tests.guard.earlier_files import earlier_fields
from tests.strategies import batch_of, ensembles

METHODS = pytest.mark.parametrize("method", NONCONFORMITY)


def labelled(n, classes, seed, *, tied=False):
    """Members of which the first draws the labels; in tenths where ties are wanted."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(classes, 0.3), n)
    members = truth + 0.3 * (rng.dirichlet(np.ones(classes), (4, n)) - truth)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    if tied:
        members = np.eye(classes)[members.argmax(axis=-1)]
    return wrap(members), labels


def as_rows(prediction, theta, **settings):
    arrays = (prediction.lower, prediction.upper, prediction.probability, prediction.mean)
    return Rows(*arrays, theta, **{"penalty": 0.01, "free_classes": 5, **settings})


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_the_quantile_leaves_at_most_the_promised_share_above(scores, alpha):
    n, quantile = len(scores), conformal_quantile(np.array(scores, float), alpha)
    assert (1 + sum(s > quantile for s in scores)) / (n + 1) <= alpha or quantile == np.inf
    lower = [s for s in scores if s < quantile]
    assert not lower or (1 + sum(s > max(lower) for s in scores)) / (n + 1) > alpha
    assert (quantile < np.inf) == (n >= least_samples(alpha))


def test_the_quantile_survives_rounding_of_alpha():
    assert conformal_quantile(np.arange(1.0, 100.0), 0.29) == 71  # 0.29 * 100 is below 29 in floating point


@METHODS
@pytest.mark.parametrize("tied", [False, True])
def test_coverage_is_promised_and_not_far_exceeded(method, tied):
    n, m = 50, 10_000
    prediction, labels = labelled(n + m, 4, seed=1, tied=tied)
    own = SetScore(method).of(prediction)[np.arange(n + m), labels]
    drawn = own[np.random.default_rng(2).integers(0, n + m, (10_000, n + 1))]  # a calibration set and a new input each
    quantiles = np.sort(drawn[:, :-1])[:, 40]
    assert quantiles[0] == conformal_quantile(drawn[0, :-1], 0.2)
    covered = int((drawn[:, -1] <= quantiles).sum())
    assert binomial_interval(covered, 10_000, level=0.999)[1] >= 0.8
    assert tied or binomial_interval(covered, 10_000, level=0.999)[0] <= 0.8 + 1 / (n + 1)
    sets = ConformalSets.fit(prediction[:5000], labels[:5000], alpha=0.2, method=method, allow_empty=True)
    inside = sets.predict_set(prediction[5000:])[np.arange(5050), labels[5000:]]
    assert tied or 0.77 <= inside.mean() <= 0.83
    assert inside.mean() >= 0.77


def test_by_class_covers_every_class():
    prediction, labels = labelled(8000, 3, seed=3)
    sets = ConformalSets.fit(prediction[:4000], labels[:4000], by_class=True, allow_empty=True)
    inside = sets.predict_set(prediction[4000:])[np.arange(4000), labels[4000:]]
    for k in range(3):
        covered = inside[labels[4000:] == k]
        low, high = binomial_interval(int(covered.sum()), len(covered), level=0.999)
        assert low <= 0.92
        assert high >= 0.88


def distinct(p):
    """Whether no two classes are equal but for rounding."""
    ordered = np.sort(p)
    return bool((np.diff(ordered) > 1e-5 * ordered[1:]).all())


@METHODS
@given(ensembles(max_classes=6))
def test_permuted_classes_give_permuted_scores(method, members):
    p, perm = wrap(members[:, None]), np.random.default_rng(0).permutation(members.shape[1])
    q, theta = wrap(members[:, None, perm]), np.array([0.4])
    compute = NONCONFORMITY[method].compute
    if (distinct(p.probability[0]) and distinct(p.mean[0])) or ("cumulative" not in method and "aps" not in method):
        assert compute(as_rows(q, theta))[0] == pytest.approx(compute(as_rows(p, theta))[0, perm], abs=1e-9)


@given(ensembles(max_classes=6))
def test_cumulative_scores_are_lower_and_upper_probabilities_of_the_likeliest_classes(members):
    p = wrap(members[:, None])
    assume(distinct(p.probability[0]))
    low, high, order = p.lower[0], p.upper[0], np.argsort(-p.probability[0])
    below, above = (
        NONCONFORMITY[m].compute(as_rows(p, np.zeros(1)))[0] for m in ("lower_cumulative", "upper_cumulative")
    )
    for rank, k in enumerate(order):
        inside, rest = order[: rank + 1], order[rank + 1 :]
        assert below[k] == pytest.approx(max(low[inside].sum(), 1 - high[rest].sum()), abs=1e-12)
        assert above[k] == pytest.approx(min(high[inside].sum(), 1 - low[rest].sum()), abs=1e-12)
        assert below[k] <= p.mean[0, inside].sum() + 1e-12
        assert above[k] >= p.mean[0, inside].sum() - 1e-12


@METHODS
def test_smaller_alpha_gives_larger_sets(method):
    prediction, labels = labelled(400, 5, seed=4)
    masks = [
        ConformalSets.fit(prediction, labels, alpha=a, method=method).predict_set(prediction) for a in (0.3, 0.1, 0.02)
    ]
    assert not (masks[0] & ~masks[1]).any()
    assert not (masks[1] & ~masks[2]).any()
    assert masks[0].any(axis=1).all(), "no set is empty"


@METHODS
def test_an_input_has_the_same_set_in_every_batch_and_after_loading(method, tmp_path):
    prediction, labels = labelled(300, 5, seed=5)
    sets = ConformalSets.fit(prediction, labels, method=method, seed=9)
    sets.save(tmp_path / "sets.json")
    loaded, whole = ConformalSets.load(tmp_path / "sets.json"), sets.predict_set(prediction)
    parts = [loaded.predict_set(prediction[i : i + 7]) for i in range(0, 300, 7)]
    assert (np.concatenate(parts) == whole).all()
    assert loaded.score == sets.score
    assert loaded.thresholds.tobytes() == sets.thresholds.tobytes()


def test_an_infinite_threshold_can_be_saved(tmp_path):
    prediction, labels = labelled(20, 3, seed=6)
    with pytest.warns(UserWarning, match=r"got 20 samples, fewer than the 99 "):
        sets = ConformalSets.fit(prediction, labels, alpha=0.01)
    sets.save(tmp_path / "sets.json")
    assert ConformalSets.load(tmp_path / "sets.json").predict_set(prediction).all()


def test_a_class_with_too_few_samples_is_in_every_set():
    prediction, labels = labelled(300, 3, seed=7)
    rare = np.where(labels == 1, 0, labels)
    with pytest.warns(UserWarning, match=r"classes 1 have fewer than the 9 "):
        sets = ConformalSets.fit(prediction, rare, by_class=True)
    assert sets.predict_set(prediction)[:, 1].all()
    assert not sets.predict_set(prediction)[:, 0].all()


def test_uniform_numbers_from_hashes_are_uniform_and_follow_the_seed():
    rows = np.random.default_rng(8).dirichlet(np.ones(4), 10_000).astype(np.float32).astype(np.float64)
    theta = hashed_uniforms(rows, 0)
    assert ((theta > 0) & (theta <= 1)).all()
    for hits in np.histogram(theta, 20, (0, 1))[0]:
        low, high = binomial_interval(int(hits), 10_000, level=1 - 1e-4)
        assert low <= 1 / 20 <= high
    assert abs(np.corrcoef(theta, hashed_uniforms(rows, 1))[0, 1]) < 0.05
    assert abs(np.corrcoef(theta, rows[:, 0])[0, 1]) < 0.05
    for of_bits in (False, True):
        zeros = [hashed_uniforms(zero * rows, 0, of_bits=of_bits) for zero in (0.0, -0.0)]
        assert (zeros[0] == zeros[1]).all()


VOTES = {
    "one-hot": lambda rng: rng.multinomial(5, np.full(3, 1 / 3), 4000) / 5,
    "tenths": lambda rng: rng.multinomial(50, np.full(4, 0.25), 4000) / 50,
    "sevenths": lambda rng: rng.multinomial(7, np.full(2, 0.5), 4000) / 7,
    "smoothed": lambda rng: 0.9 * rng.multinomial(5, np.full(3, 1 / 3), 4000) / 5 + 0.1 / 3,
    "continuous": lambda rng: rng.dirichlet(np.full(10, 0.2), 4000),
    "sure": lambda rng: rng.dirichlet([100, *[1e-4] * 9], 4000),
    "many classes": lambda rng: rng.dirichlet(np.full(1000, 0.5), 400),
}


@pytest.mark.parametrize("kind", VOTES)
@pytest.mark.parametrize("seed", [0, 1])
def test_uniform_numbers_do_not_depend_on_the_last_digits(kind, seed):
    rows = VOTES[kind](np.random.default_rng(9))
    expected = hashed_uniforms(rows, seed)
    noisy = rows * (1 + 2e-7 * np.random.default_rng(10).uniform(-1, 1, rows.shape))
    softmaxed = np.exp(np.log(np.maximum(rows, 1e-30)))
    for same in (rows.astype(np.float32).astype(np.float64), noisy, softmaxed):
        assert (hashed_uniforms(same, seed) != expected).mean() <= 1e-3
    if kind in ("one-hot", "tenths", "sevenths", "smoothed"):
        for dtype, share in ((np.float16, 0.05), (np.float32, 0)):
            assert (hashed_uniforms(rows.astype(dtype).astype(np.float64), seed) != expected).mean() <= share
    distinct = len(np.unique(rows.round(9), axis=0))
    assert len(np.unique(expected)) >= min(0.9 * distinct, 350)


def test_sets_of_earlier_versions_draw_as_they_were_fitted(tmp_path):
    prediction, labels = labelled(400, 4, seed=13, tied=True)
    older = SetScore("aps", of_bits=True)
    sets = ConformalSets.fit(prediction, labels, method="aps")
    own = np.take_along_axis(older.of(prediction), labels[:, None], axis=1)[:, 0]
    sets = replace(sets, score=older, thresholds=np.full(4, conformal_quantile(own, sets.alpha)))
    guard = Guard.fit(prediction, sets=sets)
    for what, made, fields in (
        ("conformal-sets", sets, sets.saved_fields()),
        ("guard", guard, earlier_fields(guard, 2)),
    ):
        of_sets = fields["sets"] if what == "guard" else fields
        of_sets["score"] = {name: value for name, value in of_sets["score"].items() if name != "of_bits"}
        SavedFormat(what, 2).write(tmp_path / f"{what}.json", fields)
        restored = type(made).load(tmp_path / f"{what}.json")
        read = restored.sets if what == "guard" else restored
        assert read.score == older
        assert (read.predict_set(prediction) == sets.predict_set(prediction)).all()
        restored.save(tmp_path / "again.json")
        again = type(made).load(tmp_path / "again.json")
        assert (again.sets if what == "guard" else again).score == older


@pytest.mark.parametrize("classes", [2, 5])
def test_classes_that_tie_but_for_rounding_are_in_the_order_of_their_indices(classes):
    rng = np.random.default_rng(14)
    exact = rng.multinomial(6, np.full(classes, 1 / classes), 500) / 6
    order = np.argsort(-exact.round(6), axis=1, kind="stable")
    noisy = exact * (1 + 3e-7 * rng.uniform(-1, 1, exact.shape))
    found = NONCONFORMITY["aps"].compute(Rows(noisy, noisy, noisy, noisy, np.zeros(500), 0.0, 0))
    sums = np.empty_like(exact)
    np.put_along_axis(sums, order, np.take_along_axis(exact, order, axis=1).cumsum(axis=1), axis=1)
    np.testing.assert_allclose(found, sums, atol=1e-5)


def test_shapes_and_libraries_come_back():
    torch = pytest.importorskip("torch")
    members = torch.tensor(batch_of("peaked", 3, 12, 4))
    labels = torch.arange(12) % 4
    masks = ConformalSets.fit(wrap(members), labels, alpha=0.2).predict_set(wrap(members))
    assert masks.shape == (12, 4)
    assert masks.dtype == torch.bool


def test_equal_size_compares_at_the_same_coverage():
    (a, la), (b, lb) = labelled(500, 5, seed=9), labelled(500, 5, seed=10)
    rows = compare_sets(a, la, b, lb, alphas=(0.1, 0.2), methods=("lac", "lower", "aps"))
    assert [(r.alpha, r.method) for r in rows[:3]] == [(0.1, "lac"), (0.1, "lower"), (0.1, "aps")]
    scores = SetScore("lower").of(b)
    for r in rows:
        assert r.worst_class_coverage <= r.coverage
        assert 1 <= r.mean_size <= 5
    own = scores[np.arange(500), lb]
    sizes = {(own <= t).sum(): (scores <= t).sum(axis=1).mean() for t in own}
    assert rows[1].equal_size == pytest.approx(sizes[450])


class Fixed:
    """An estimator whose probabilities are its inputs, for MAPIE."""

    def __init__(self, classes):
        self.classes_, self.n_features_in_, self.is_fitted_ = np.arange(classes), classes, True

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, x, y):
        return self

    def predict(self, x):
        return x.argmax(axis=1)

    def predict_proba(self, x):
        return x

    def get_params(self, deep=True):
        return {"classes": len(self.classes_)}


def mapie_sets(score, calibration, labels, test, level, **predict):
    """MAPIE's fitted score, and its sets."""
    classification = pytest.importorskip("mapie.classification")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        conformal = classification.SplitConformalClassifier(
            Fixed(test.shape[1]), confidence_level=level, prefit=True, conformity_score=score, random_state=0
        )
        conformal.conformalize(calibration, labels)
        sets = conformal.predict_set(test, conformity_score_params=predict)[1][:, :, 0]
    return conformal._mapie_classifier.conformity_score_function_, sets


@pytest.fixture
def halves():
    (a, la), (b, _) = labelled(300, 5, seed=11), labelled(200, 5, seed=12)
    return a, la, b


def theta_of(n):
    return np.random.RandomState(0).uniform(size=n)  # what MAPIE draws with random_state=0


ALPHAS = pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])


@ALPHAS
def test_lac_is_that_of_mapie(halves, alpha):
    a, la, b = halves
    ours = ConformalSets.fit(a, la, alpha=alpha, allow_empty=True).predict_set(b)
    assert (mapie_sets("lac", a.mean, la, b.mean, 1 - alpha)[1] == ours).all()


@ALPHAS
def test_aps_is_that_of_mapie(halves, alpha):
    a, la, b = halves
    fitted, theirs = mapie_sets("aps", a.mean, la, b.mean, 1 - alpha, include_last_label="randomized")
    own = NONCONFORMITY["aps"].compute(as_rows(a, theta_of(300)))[np.arange(300), la]
    assert conformal_quantile(own, alpha) == pytest.approx(fitted.quantiles_[0], rel=1e-12)
    assert ((NONCONFORMITY["aps"].compute(as_rows(b, theta_of(200))) <= conformal_quantile(own, alpha)) == theirs).all()


@ALPHAS
def test_raps_is_that_of_mapie(halves, alpha):
    """With the penalty that MAPIE chose, its quantile, and its sets without a random last class."""
    split = pytest.importorskip("sklearn.model_selection").StratifiedShuffleSplit(1, random_state=0)
    a, la, b = halves
    fitted, theirs = mapie_sets("raps", a.mean, la, b.mean, 1 - alpha, include_last_label=False)
    settings = {"penalty": float(fitted.lambda_star), "free_classes": int(fitted.k_star[0])}
    kept, _ = next(split.split(a.mean, la))
    scores = NONCONFORMITY["raps"].compute(as_rows(a[kept], theta_of(len(kept)), **settings))
    quantile = conformal_quantile(scores[np.arange(len(kept)), la[kept]], alpha)
    assert quantile == pytest.approx(fitted.quantiles_[0], rel=1e-12)
    ours = NONCONFORMITY["raps"].compute(as_rows(b, np.zeros(200), **settings))
    assert (((ours <= quantile) | (ours == ours.min(axis=1, keepdims=True))) == theirs).all()


def test_sets_are_those_of_crepes(halves):
    base, (a, la, b) = pytest.importorskip("crepes.base"), halves
    own = SetScore("upper").of(a)[np.arange(300), la]
    p_values = base.p_values_batch(own, SetScore("upper").of(b), smoothing=False)
    ours = ConformalSets.fit(a, la, alpha=0.15, method="upper", allow_empty=True).predict_set(b)
    assert (ours == (p_values > 0.15)).all()


def bad_calls():
    prediction, labels = labelled(30, 3, seed=13)
    fit = ConformalSets.fit
    other = labelled(30, 4, seed=13)[0]
    return [
        (lambda: fit(prediction, labels, method="best"), "method must be one of 'lac', 'aps'"),
        (lambda: fit(prediction, labels, alpha=1.5), "alpha"),
        (lambda: fit(prediction, labels, seed=-1), "seed"),
        (lambda: fit(prediction, labels, penalty=-1), "penalty must be finite"),
        (lambda: fit(prediction, labels[:5]), "labels must have shape"),
        (lambda: fit(prediction, labels + 1), "out of range"),
        (lambda: fit(prediction[:0], labels[:0]), r"the batch is empty: its shape is \(0,\)"),
        (lambda: fit(prediction, labels).predict_set(prediction[:0]), "the batch is empty"),
        (lambda: fit(prediction, labels).predict_set(other), "fitted with 3 classes and the prediction has 4"),
    ]


@pytest.mark.parametrize("case", range(len(bad_calls())))
def test_bad_input_is_refused(case):
    call, message = bad_calls()[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_arrays_and_other_members_are_refused():
    prediction, labels = labelled(30, 3, seed=14)
    with pytest.raises(TypeError, match="CredalPrediction; got ndarray"):
        ConformalSets.fit(prediction.mean, labels)
    with pytest.raises(ValueError, match="fitted with 4 members and the prediction has 1"):
        ConformalSets.fit(prediction, labels).predict_set(wrap(prediction.mean[None]))
    trimmed = wrap(np.random.default_rng(0).dirichlet([1, 1, 1], (4, 30)), trim=0.25)
    with pytest.raises(ValueError, match=r"trim=0 and the prediction has trim=0\.25; use wrap"):
        ConformalSets.fit(prediction, labels).predict_set(trimmed)


@pytest.mark.parametrize("fit", [ConformalSets.fit, partial(Guard.fit, score="mean_total")])
def test_labels_that_are_no_indices_say_how_to_make_them(fit):
    prediction, remedy = wrap(batch_of("peaked", 4, 90, 3, seed=2)), r"np\.searchsorted\(model\.classes_, labels\)"
    labels = prediction.predict()
    with pytest.raises(TypeError, match=f"got dtype <U1 from ndarray.*{remedy}"):
        fit(prediction, np.array(["a", "b", "c"])[labels])
    with pytest.raises(ValueError, match=f"labels are out of range.*{remedy}"):
        fit(prediction, labels + 1)
    like = labels < 2  # classes 1, 2 and 3, and no row of the last
    with pytest.warns(UserWarning, match=f"do the labels begin at 1.*{remedy}") as caught:
        fit(prediction[like], labels[like] + 1)
    assert "None is 0; 0 of" in str(caught[0].message)
    assert caught[0].filename == __file__
    fit(prediction[labels > 0], labels[labels > 0])  # no row of class 0, and right
