"""Temperatures are those of the lowest loss, valleys and kinks included, and change what they shall change and nothing else."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalens import CredalPrediction, MemberSummary, Recalibration, wrap, wrap_logits
from credalens.core.temperature_search import LabelledMembers, best_log_b
from credalens.guard import ConformalSets, Guard
from tests.strategies import batch_of, ensembles

FEW = "ignore:.*(leave the temperature between|predicted wrong)"
END = "ignore:the best temperature of"


def overconfident(rows, classes=4, members=5, factor=2.0, seed=0):
    """Logits of members that are too sure by a factor, and labels drawn from what they share."""
    rng = np.random.default_rng(seed)
    shared = 1.5 * rng.normal(size=(rows, classes))
    labels = (shared + rng.gumbel(size=shared.shape)).argmax(-1)
    return factor * (shared + 0.7 * rng.normal(size=(members, rows, classes))), labels


def loss_of(p, labels, temperature, through):
    """The slow truth: each row by itself, by the prediction that users get."""
    scaled = [[row ** (1 / temperature) / (row ** (1 / temperature)).sum() for row in member] for member in p]
    prediction = wrap(scaled)
    point = prediction.probability if through == "credal" else prediction.mean
    return -np.mean([np.log(point[i, y]) for i, y in enumerate(labels)])


@pytest.mark.parametrize("through", ["credal", "averaged"])
@pytest.mark.parametrize(("rows", "classes", "factor"), [(40, 2, 2.0), (60, 5, 0.5), (25, 3, 1.0)])
@pytest.mark.filterwarnings(FEW)
def test_no_temperature_anywhere_has_a_lower_loss(through, rows, classes, factor):
    logits, labels = overconfident(rows, classes, factor=factor)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    fitted = Recalibration.fit(p, labels, through=through)
    t = fitted.temperatures[0]
    lowest = loss_of(p, labels, t, through)
    assert fitted.nll_after == pytest.approx(lowest, abs=1e-12)
    assert fitted.nll_before == pytest.approx(loss_of(p, labels, 1.0, through), abs=1e-12)
    elsewhere = np.exp(np.linspace(-3, 3, 400))
    assert min(loss_of(p, labels, other, through) for other in elsewhere) >= lowest - 1e-12
    near = [loss_of(p, labels, t * (1 + step), through) for step in (-1e-5, 1e-5)]
    assert min(near) >= lowest


def few_rows(seed):
    """A few rows of three members, some of which are sure and wrong."""
    rng = np.random.default_rng(seed)
    rows, classes = rng.integers(2, 7), rng.integers(2, 5)
    logs = rng.normal(size=(3, rows, classes)) * np.exp(1.5 * rng.normal(size=(1, rows, 1)))
    logs -= logs.max(-1, keepdims=True)
    return LabelledMembers(logs, rng.integers(0, classes, rows), np.ones(rows), "credal", 1)


@pytest.mark.parametrize("seed", [3, 10, 24, 28, 29, 36, 47, 49, 53, 62, 71, 72])
def test_the_deepest_of_several_valleys_is_found(seed):
    """Through p* the loss of these rows has several, far apart, of which the deepest is now the left and now the right one."""
    data = few_rows(seed)
    losses = np.array([data.loss(log_b) for log_b in np.linspace(-3, 3, 1201)])
    beyond = np.concatenate([[np.inf], losses, [np.inf]])
    assert ((losses < beyond[:-2]) & (losses < beyond[2:])).sum() > 1
    assert data.loss(best_log_b(data)) <= losses.min()


def test_each_member_alone_gets_the_temperature_of_its_own_loss():
    logits, labels = overconfident(400)
    logits *= np.array([0.5, 1, 2, 3, 1])[:, None, None]
    together = Recalibration.fit(logits, labels, logits=True, through="members")
    alone = [Recalibration.fit(z[None], labels, logits=True, through="averaged").temperatures[0] for z in logits]
    np.testing.assert_allclose(together.temperatures, alone, rtol=1e-6)


def test_many_rows_have_the_temperature_that_all_of_them_have():
    """Valleys are sought on a share of the rows, and followed to the bottom on all."""
    logits, labels = overconfident(40_000, 6)
    fitted = Recalibration.fit(logits, labels, logits=True)
    data = LabelledMembers(logits - logits.max(-1, keepdims=True), labels, np.ones(40_000), "credal")
    log_b = -np.log(fitted.temperatures[0])
    near = [data.loss(log_b + step) for step in (-1e-3, -1e-5, 0, 1e-5, 1e-3)]
    assert np.argmin(near) == 2


@given(ensembles(max_classes=6), st.floats(0.06, 19))
def test_zero_stays_zero_ties_stay_ties_and_the_named_class_stays(p, temperature):
    q = Recalibration.of([temperature] * len(p), classes=p.shape[1]).apply(p)
    assert (q[p == 0] == 0).all()
    np.testing.assert_allclose(q.sum(-1), 1)
    for before, after in zip(p, q, strict=True):
        order = np.argsort(before, kind="stable")
        assert (np.diff(after[order]) >= 0).all()
        assert (np.diff(after[order])[np.diff(before[order]) == 0] == 0).all()
        assert after[before.argmax()] == after.max()


@given(ensembles(max_classes=6), st.floats(0.1, 10))
def test_logits_and_probabilities_are_recalibrated_alike(p, temperature):
    recalibration = Recalibration.of([temperature] * len(p), classes=p.shape[1])
    with np.errstate(divide="ignore"):
        logits = np.log(p)
    np.testing.assert_allclose(recalibration.apply(logits, logits=True), recalibration.apply(p), atol=1e-12)
    np.testing.assert_allclose(
        wrap_logits(logits[:, None], recalibration=recalibration).total,
        wrap(recalibration.apply(p)[:, None]).total,
        atol=1e-9,
    )


def test_temperature_one_changes_nothing():
    p = batch_of("peaked", 5, 50, 4)
    plain, same = wrap(p), wrap(p, recalibration=Recalibration.of([1.0] * 5, classes=4))
    np.testing.assert_allclose(same.total, plain.total, atol=1e-12)
    np.testing.assert_allclose(same.lower, plain.lower, atol=1e-15)


def test_logits_times_a_factor_have_the_temperature_times_the_factor():
    logits, labels = overconfident(500, factor=1.0)
    one, two = (Recalibration.fit(c * logits, labels, logits=True).temperatures[0] for c in (1, 2))
    assert two == pytest.approx(2 * one, rel=1e-6)


def test_order_of_members_rows_and_classes_does_not_matter():
    logits, labels = overconfident(300)
    rng = np.random.default_rng(1)
    expected = Recalibration.fit(logits, labels, logits=True).temperatures[0]
    rows, classes = rng.permutation(300), rng.permutation(4)
    shuffled = logits[::-1][:, rows][..., classes]
    there = np.argsort(classes)[labels[rows]]
    assert Recalibration.fit(shuffled, there, logits=True).temperatures[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings(FEW)
def test_a_weight_counts_a_row_as_often():
    logits, labels = overconfident(120)
    weights = np.arange(120) % 3
    weighted = Recalibration.fit(logits, labels, logits=True, weights=weights)
    repeated = Recalibration.fit(logits.repeat(weights, axis=1), labels.repeat(weights), logits=True)
    assert weighted.temperatures[0] == pytest.approx(repeated.temperatures[0], rel=1e-6)


def test_axes_may_lie_anywhere():
    logits, labels = overconfident(300)
    expected = Recalibration.fit(logits, labels, logits=True)
    moved = Recalibration.fit(logits.transpose(1, 2, 0), labels, logits=True, member_axis=2, class_axis=1)
    assert moved.temperatures.tolist() == expected.temperatures.tolist()
    p = expected.apply(logits, logits=True)
    assert p.shape == logits.shape
    again = expected.apply(logits.transpose(1, 2, 0), logits=True, member_axis=2, class_axis=1)
    np.testing.assert_array_equal(again, p.transpose(1, 2, 0))
    maps = Recalibration.fit(logits.reshape(5, 20, 15, 4), labels.reshape(20, 15), logits=True)
    assert maps.temperatures.tolist() == expected.temperatures.tolist()


@pytest.mark.parametrize("through", ["credal", "averaged"])
def test_the_range_holds_the_temperature_of_all_data_as_often_as_it_says(through):
    """Of 100 draws of 300 inputs 95 are expected; fewer than 85 come once in ten thousand such tests."""
    logits, labels = overconfident(10_000, 3)
    truth = Recalibration.fit(logits, labels, logits=True, through=through).temperatures[0]
    rng, held = np.random.default_rng(2), 0
    for _ in range(100):
        rows = rng.integers(0, 10_000, 300)
        low, high = Recalibration.fit(logits[:, rows], labels[rows], logits=True, through=through).ranges[0]
        held += low <= truth <= high
    assert held >= 85


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_precision_and_library_gives_the_same(dtype):
    torch = pytest.importorskip("torch")
    logits, labels = overconfident(400, factor=1.0)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = Recalibration.fit(p, labels).temperatures
    rtol = {"float16": 5e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    for values in (p.astype(dtype), torch.from_numpy(p.astype(dtype))):
        np.testing.assert_allclose(Recalibration.fit(values, labels).temperatures, expected, rtol=rtol)
    q = Recalibration.of(expected, classes=4).apply(torch.from_numpy(p.astype(dtype)))
    assert isinstance(q, torch.Tensor)
    assert q.dtype == (torch.float64 if dtype == "float64" else torch.float32)


class TestRefusals:
    def test_labels_of_one_class(self):
        logits, _ = overconfident(50)
        with pytest.raises(ValueError, match="at least two classes"):
            Recalibration.fit(logits, np.ones(50, int), logits=True)

    def test_one_hot_members(self):
        p = np.eye(3)[np.random.default_rng(0).integers(0, 3, (5, 40))]
        with pytest.raises(ValueError, match="own probabilities or logits"):
            Recalibration.fit(p, np.arange(40) % 3)

    def test_labels_that_are_no_indices(self):
        logits, labels = overconfident(50)
        with pytest.raises(ValueError, match=r"argmax\(-1\)"):
            Recalibration.fit(logits, np.eye(4)[labels], logits=True)
        with pytest.raises(ValueError, match="run from 0 to 3"):
            Recalibration.fit(logits, labels + 1, logits=True)

    def test_labels_to_which_every_member_gives_zero(self):
        p = np.array([[[0.6, 0.4, 0.0], [0.0, 0.7, 0.3]]] * 2)
        with pytest.raises(ValueError, match="every input"):
            Recalibration.fit(p, [2, 0])

    @pytest.mark.parametrize("weights", [[-1.0] + [1.0] * 49, [0.0] * 50, [1.0] * 49, [np.inf] * 50])
    def test_weights_that_are_none(self, weights):
        logits, labels = overconfident(50)
        with pytest.raises(ValueError, match="weight"):
            Recalibration.fit(logits, labels, logits=True, weights=weights)

    def test_logits_taken_for_probabilities(self):
        logits, labels = overconfident(50)
        with pytest.raises(ValueError, match="logits=True"):
            Recalibration.fit(logits, labels)

    @pytest.mark.parametrize("temperatures", [[], [0.0, 1.0], [-1.0], [np.nan], [[1.0]], 2.0])
    def test_temperatures_that_are_none(self, temperatures):
        with pytest.raises(ValueError, match="positive, finite"):
            Recalibration.of(temperatures, classes=3)

    def test_other_members_and_classes(self):
        recalibration = Recalibration.of([2.0] * 5, classes=3)
        with pytest.raises(ValueError, match="Fit it again"):
            recalibration.apply(np.full((4, 1, 3), 1 / 3))
        with pytest.raises(ValueError, match="for 3 classes"):
            wrap(np.full((5, 1, 4), 0.25), recalibration=recalibration)

    def test_what_is_no_recalibration(self):
        with pytest.raises(TypeError, match=r"Recalibration\.of"):
            wrap(np.full((5, 1, 4), 0.25), recalibration=2.0)


class TestWarnings:
    def test_few_inputs(self):
        logits, labels = overconfident(45)
        with pytest.warns(UserWarning, match="Bring more of them"):
            Recalibration.fit(logits, labels, logits=True)

    def test_few_errors(self):
        logits, labels = overconfident(400)
        p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        right = p.mean(0).argmax(-1) == labels
        rows = np.flatnonzero(right | (np.cumsum(~right) <= 5))
        with pytest.warns(UserWarning, match="5 are predicted wrong"):
            Recalibration.fit(logits[:, rows], labels[rows], logits=True)

    def test_every_prediction_right(self):
        logits, _ = overconfident(200)
        with pytest.warns(UserWarning, match="Bring inputs on which some are wrong"):
            Recalibration.fit(np.repeat(logits[:1], 5, axis=0), logits[0].argmax(-1), logits=True)

    def test_labels_of_other_inputs(self):
        logits, labels = overconfident(400, factor=6.0)
        shuffled = np.random.default_rng(0).permutation(labels)
        with pytest.warns(UserWarning, match="Check their order"):
            fitted = Recalibration.fit(logits, shuffled, logits=True)
        assert fitted.temperatures[0] > 15

    def test_true_classes_that_every_member_rules_out(self):
        logits, labels = overconfident(400)
        logits[:, :7][:, np.arange(7), labels[:7]] = -np.inf
        with pytest.warns(UserWarning, match="7 of 400 labelled inputs"):
            fitted = Recalibration.fit(logits, labels, logits=True)
        assert fitted.impossible == 7
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            others = Recalibration.fit(logits[:, 7:], labels[7:], logits=True)
        assert fitted.temperatures.tolist() == others.temperatures.tolist()


def test_a_file_is_read_to_the_bit_and_a_person_can_read_it(tmp_path):
    logits, labels = overconfident(300)
    fitted = Recalibration.fit(logits, labels, logits=True, through="members")
    fitted.save(tmp_path / "r.json")
    loaded = Recalibration.load(tmp_path / "r.json")
    assert {name: np.asarray(x).tolist() for name, x in vars(loaded).items()} == {
        name: np.asarray(x).tolist() for name, x in vars(fitted).items()
    }
    text = (tmp_path / "r.json").read_text()
    assert '"format": "credalens-recalibration-1"' in text
    assert f'"temperatures": {fitted.temperatures.tolist()}' in text
    (tmp_path / "r.json").write_text(text.replace('"classes": 4', '"classes": 5'))
    with pytest.raises(ValueError, match="checksum"):
        Recalibration.load(tmp_path / "r.json")


def test_temperatures_that_were_given_are_saved(tmp_path):
    Recalibration.of([1.5, 2.0], classes=3).save(tmp_path / "r.json")
    assert Recalibration.load(tmp_path / "r.json").temperatures.tolist() == [1.5, 2.0]


class TestSummaries:
    @given(ensembles(max_classes=5), st.integers(0, 2**32 - 1))
    def test_members_one_by_one_give_what_all_at_once_give(self, p, seed):
        recalibration = Recalibration.of(np.exp(np.random.default_rng(seed).normal(size=len(p))), classes=p.shape[1])
        summary = MemberSummary(recalibration=recalibration)
        for member in p:
            summary.update(member, member_axis=None)
        folded, together = summary.prediction(), wrap(p, recalibration=recalibration)
        assert folded.temperatures == together.temperatures == tuple(recalibration.temperatures)
        np.testing.assert_allclose(folded.total, together.total, atol=1e-9)
        np.testing.assert_allclose(folded.upper, together.upper, atol=1e-12)

    def test_parts_are_merged_by_their_temperatures(self):
        p, recalibration = batch_of("peaked", 5, 20, 3), Recalibration.of([1.0, 1.5, 2.0, 2.5, 3.0], classes=3)
        first = MemberSummary(recalibration=recalibration[:2]).update(p[:2])
        merged = first.merge(MemberSummary(recalibration=recalibration[2:]).update(p[2:])).prediction()
        together = wrap(p, recalibration=recalibration)
        assert merged.temperatures == together.temperatures
        np.testing.assert_allclose(merged.total, together.total, atol=1e-12)

    def test_recalibrated_members_do_not_mix_with_others(self):
        p = batch_of("peaked", 2, 5, 3)
        recalibrated = MemberSummary(recalibration=Recalibration.of([1.0], classes=3)).update(p[:1])
        with pytest.raises(ValueError, match=r"MemberSummary\(recalibration=r\)"):
            recalibrated.merge(MemberSummary().update(p[1:]))

    def test_too_many_and_too_few_members_are_refused(self):
        p, recalibration = batch_of("peaked", 3, 5, 3), Recalibration.of([1.0, 2.0], classes=3)
        with pytest.raises(ValueError, match="for 2 members and 3 came"):
            MemberSummary(recalibration=recalibration).update(p)
        with pytest.raises(ValueError, match="for 2 members and 1 came"):
            MemberSummary(recalibration=recalibration).update(p[:1]).prediction()


class TestGuards:
    @pytest.fixture
    def parts(self):
        logits, labels = overconfident(1200)
        fitted = Recalibration.fit(logits[:, :400], labels[:400], logits=True)
        p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        return fitted, p[:, 400:800], labels[400:800], p[:, 800:]

    def test_what_was_fitted_on_recalibrated_members_refuses_others(self, parts, tmp_path):
        recalibration, p, labels, new = parts
        fitted_on = wrap(p, recalibration=recalibration)
        guard, sets = Guard.fit(fitted_on, labels, max_error=0.4), ConformalSets.fit(fitted_on, labels)
        guard.save(tmp_path / "guard.json")
        sets.save(tmp_path / "sets.json")
        again = wrap(new, recalibration=recalibration)
        for used in (guard, Guard.load(tmp_path / "guard.json")):
            np.testing.assert_array_equal(used.decide(again).accepted, guard.decide(again).accepted)
            for other in (wrap(new), wrap(new, recalibration=Recalibration.of([1.1] * 5, classes=4))):
                with pytest.raises(ValueError, match="Use the same recalibration"):
                    used.decide(other)
        for used in (sets, ConformalSets.load(tmp_path / "sets.json")):
            used.predict_set(again)
            with pytest.raises(ValueError, match="Use the same recalibration"):
                used.predict_set(wrap(new))
        with pytest.raises(ValueError, match="Use the same recalibration"):
            Guard.fit(wrap(p), labels, max_error=0.4).decide(again)

    def test_a_saved_prediction_keeps_its_temperatures(self, parts, tmp_path):
        recalibration, p, _, _ = parts
        prediction = wrap(p, recalibration=recalibration)
        prediction.save(tmp_path / "p.npz")
        assert CredalPrediction.load(tmp_path / "p.npz").temperatures == prediction.temperatures
        assert prediction[:3].temperatures == prediction.temperatures
