"""One table of everything that must be refused: the error's type, and what its message must tell the user."""

from __future__ import annotations

import numpy as np
import pytest

import credalens as cl

GOOD = np.full((2, 3, 4), 0.25)


def member(value, at=(1, 2, 3)):
    p = GOOD.copy()
    p[at] = value
    return p


LOW, HIGH = np.array([[0.1, 0.2, 0.3]] * 2), np.array([[0.5, 0.4, 0.6]] * 2)


def bound(array, value, at=(1, 0)):
    changed = array.copy()
    changed[at] = value
    return changed


WRAP = [
    ("nan", member(np.nan), ValueError, r"index \(1, 2\).*class 3 is nan"),
    ("infinity", member(np.inf), ValueError, r"index \(1, 2\).*class 3 is inf"),
    ("negative", member(-0.25), ValueError, r"index \(1, 2\).*class 3 is -0.25.*wrap_logits"),
    ("sum off", member(0.3), ValueError, r"index \(1, 2\).*sums to 1.05"),
    ("logits", np.random.default_rng(0).normal(size=(2, 3, 4)), ValueError, "wrap_logits"),
    ("float32 sum off", member(0.251).astype(np.float32), ValueError, "sums to 1.001"),
    ("no members", np.empty((0, 3, 4)), ValueError, "no members"),
    ("one class", np.ones((2, 3, 1)), ValueError, "at least two classes"),
    ("scalar", 0.5, ValueError, r"\(members, \*batch, classes\)"),
    ("one axis", [0.5, 0.5], ValueError, r"\(members, \*batch, classes\)"),
    ("strings", [["a", "b"], ["c", "d"]], TypeError, "real numbers"),
    ("ragged", [[0.5, 0.5], [0.2, 0.3, 0.5]], ValueError, "rectangular"),
    ("objects", np.array([[None, 1.0]]), TypeError, "real numbers"),
    ("complex", GOOD.astype(complex), TypeError, "real numbers"),
    ("nothing", None, TypeError, "real numbers"),
    ("masked", np.ma.masked_array(GOOD, GOOD > 1), TypeError, "masked array"),
]


@pytest.mark.parametrize(("probs", "error", "message"), [c[1:] for c in WRAP], ids=[c[0] for c in WRAP])
@pytest.mark.parametrize("function", [cl.wrap, cl.probability_intervals, cl.classical_uncertainty, cl.ConvexHull])
def test_bad_members_are_refused(function, probs, error, message):
    with pytest.raises(error, match=message):
        function(probs)


SUMMARY = [c for c in WRAP if c[0] not in ("scalar", "one axis")]


@pytest.mark.parametrize(("probs", "error"), [(c[1], c[2]) for c in SUMMARY], ids=[c[0] for c in SUMMARY])
def test_bad_members_are_refused_by_summaries_which_stay_as_they_were(probs, error):
    summary = cl.MemberSummary().update(GOOD)
    with pytest.raises(error):
        summary.update(probs)
    assert summary.count == 2
    np.testing.assert_array_equal(summary.prediction().total, cl.wrap(GOOD).total)


INTERVALS = [
    ("shapes", LOW, HIGH[:1], ValueError, r"same shape.*\(2, 3\) and \(1, 3\)"),
    ("scalars", 0.1, 0.9, ValueError, r"\(\*batch, classes\)"),
    ("one class", [[0.5]], [[1.0]], ValueError, "at least two classes"),
    ("crossed", bound(LOW, 0.55), HIGH, ValueError, r"index \(1, 0\): lower=0.55, upper=0.5"),
    ("nan", bound(LOW, np.nan), HIGH, ValueError, r"index \(1, 0\): lower=nan"),
    ("infinite", LOW, bound(HIGH, np.inf), ValueError, r"index \(1, 0\).*upper=inf"),
    ("negative", bound(LOW, -0.1), HIGH, ValueError, r"index \(1, 0\): lower=-0.1"),
    (
        "empty above",
        bound(LOW, 0.5, (1, slice(None))),
        np.ones((2, 3)),
        ValueError,
        r"empty.*index \(1,\): sum\(lower\)=1.5",
    ),
    ("empty below", LOW * 0, bound(HIGH, 0.3, (1, slice(None))), ValueError, r"empty.*sum\(upper\)=0.9"),
    ("unreachable", [[0.0, 0.5, 0.0]], [[0.9, 0.6, 0.1]], ValueError, r"index \(0, 0\).*tighten\(\)"),
    ("strings", [["a", "b"]], [["c", "d"]], TypeError, "real numbers"),
    ("ragged", [[0.1, 0.2], [0.3]], [[0.5, 0.9], [0.9]], ValueError, "rectangular"),
]
OF_INTERVALS = {
    "upper_entropy": cl.upper_entropy,
    "lower_entropy": cl.lower_entropy,
    "generalized_hartley": cl.generalized_hartley,
    "intersection_probability": cl.intersection_probability,
    "credal_decision": lambda low, high: cl.credal_decision(low, high, "maximality"),
    "approximate_intervals": lambda low, high: cl.approximate_intervals(low, high, 2),
}


@pytest.mark.parametrize(("low", "high", "error", "message"), [c[1:] for c in INTERVALS], ids=[c[0] for c in INTERVALS])
@pytest.mark.parametrize("function", OF_INTERVALS.values(), ids=OF_INTERVALS)
def test_bad_bounds_are_refused(function, low, high, error, message):
    with pytest.raises(error, match=message):
        function(low, high)


def test_unreachable_bounds_may_be_brought_to_be_tightened():
    intervals = cl.ProbabilityIntervals([[0.0, 0.5, 0.0]], [[0.9, 0.6, 0.1]])
    assert cl.upper_entropy(*intervals.tighten()).shape == (1,)
    with pytest.raises(ValueError, match="empty"):
        cl.ProbabilityIntervals([0.6, 0.6], [0.7, 0.7])


LOGITS = [
    ("nan", member(np.nan), r"index \(1, 2\).*class 3 is nan"),
    ("infinity", member(np.inf), r"index \(1, 2\).*class 3 is inf"),
    ("all ruled out", np.full((2, 3, 4), -np.inf), "every class"),
    ("no members", np.empty((0, 3, 4)), "no members"),
    ("one class", np.ones((2, 3, 1)), "at least two classes"),
]


@pytest.mark.parametrize(("logits", "message"), [c[1:] for c in LOGITS], ids=[c[0] for c in LOGITS])
def test_bad_logits_are_refused(logits, message):
    with pytest.raises(ValueError, match=message):
        cl.wrap_logits(logits)


OPTIONS = [
    (lambda: cl.wrap(GOOD, member_axis=3), ValueError, "out of range"),
    (lambda: cl.wrap(GOOD, member_axis=-4), ValueError, "out of range"),
    (lambda: cl.wrap(GOOD, member_axis=2), ValueError, "holds the classes"),
    (lambda: cl.wrap(GOOD, member_axis=0.0), TypeError, "integer"),
    (lambda: cl.MemberSummary().update(GOOD, member_axis=5), ValueError, "out of range"),
    (lambda: cl.wrap(GOOD, base=1), ValueError, "above 1"),
    (lambda: cl.wrap(GOOD, base=0), ValueError, "above 1"),
    (lambda: cl.wrap(GOOD, base=float("nan")), ValueError, "above 1"),
    (lambda: cl.wrap(GOOD, base="2"), TypeError, "number"),
    (lambda: cl.upper_entropy(LOW, HIGH, base=-2), ValueError, "above 1"),
    (lambda: cl.wrap(GOOD, base=10**400), ValueError, "above 1.* 1329 bits"),
    (lambda: cl.classical_uncertainty(GOOD, base=-(10**5000)), ValueError, "above 1"),
    (lambda: cl.wrap(GOOD, base=np.nextafter(np.longdouble(1), 2)), ValueError, "above 1"),
    (lambda: cl.wrap(GOOD, tolerance=10**400), ValueError, "tolerance must be finite"),
    (lambda: cl.generalized_hartley(LOW, HIGH, tolerance=10**5000), ValueError, "tolerance must be finite"),
    (lambda: cl.wrap(GOOD, max_nodes=2**63), ValueError, "max_nodes must be at most 9223372036854775807"),
    (lambda: cl.lower_entropy(LOW, HIGH, max_nodes=2**70), ValueError, "max_nodes must be at most .* 71 bits"),
    (lambda: cl.wrap(GOOD, max_nodes=-(10**5000)), ValueError, "max_nodes must be at least 1"),
    (lambda: cl.wrap(GOOD, threads=2**70), ValueError, "threads must be at most"),
    (lambda: cl.wrap(GOOD, member_axis=10**5000), ValueError, "out of range"),
    (lambda: cl.approximate_intervals(LOW, HIGH, 2**70), ValueError, "classes"),
    (lambda: cl.set_utility(2, True, reward=1j), TypeError, "reward"),
    (lambda: cl.set_utility(2, True, reward=10**5000), ValueError, "reward"),
    (lambda: cl.evaluate(GOOD, labels=[0, 1, 2], level=np.complex128(0.5)), TypeError, "level"),
    (lambda: cl.wrap(GOOD, threads=0), ValueError, "at least 1"),
    (lambda: cl.wrap(GOOD, threads=1.5), TypeError, "threads"),
    (lambda: cl.lower_entropy(LOW, HIGH, max_nodes=0), ValueError, "max_nodes"),
    (lambda: cl.lower_entropy(LOW, HIGH, max_nodes=1.0), TypeError, "max_nodes"),
    (lambda: cl.wrap(GOOD, max_nodes=0), ValueError, "max_nodes"),
    (lambda: cl.wrap(GOOD, max_nodes=True), TypeError, "max_nodes"),
    (lambda: cl.wrap(GOOD, max_nodes=np.float64(5)), TypeError, "max_nodes"),
    (lambda: cl.wrap(GOOD, threads=np.bool_(True)), TypeError, "threads"),
    (lambda: cl.wrap(GOOD, tolerance=1e-3j), TypeError, "tolerance"),
    (lambda: cl.wrap(GOOD, base=2j), TypeError, "base"),
    (lambda: cl.wrap(GOOD, base=np.complex128(2)), TypeError, "base"),
    (lambda: cl.wrap(GOOD, tolerance=float("nan")), ValueError, "tolerance"),
    (lambda: cl.wrap_logits(GOOD, max_nodes=1.0), TypeError, "max_nodes"),
    (lambda: cl.wrap_logits(GOOD, tolerance=-1e-9), ValueError, "tolerance"),
    (lambda: cl.lower_entropy(LOW, HIGH, tolerance=-1), ValueError, "tolerance"),
    (lambda: cl.lower_entropy(LOW, HIGH, tolerance="tight"), TypeError, "tolerance"),
    (lambda: cl.generalized_hartley(LOW, HIGH, tolerance=float("inf")), ValueError, "tolerance"),
    (lambda: cl.credal_decision(LOW, HIGH, "best"), ValueError, "'maximality'"),
    (lambda: cl.approximate_intervals(LOW, HIGH, 1), ValueError, "at least 2"),
    (lambda: cl.approximate_intervals(LOW, HIGH, 2.5), TypeError, "integer"),
    (lambda: cl.ConvexHull(GOOD).lower_probability([0, 4]), ValueError, "from 0 to 3"),
    (lambda: cl.ConvexHull(GOOD).lower_probability([1, 1]), ValueError, "distinct"),
    (lambda: cl.ConvexHull(GOOD).lower_probability([0.7, 1.2]), TypeError, "integers from 0 to 3; got float64"),
    (lambda: cl.ConvexHull(GOOD).lower_probability([True, False, False, True]), TypeError, "flatnonzero"),
    (lambda: cl.ConvexHull(GOOD).lower_probability("ab"), TypeError, "got str 'ab'"),
    (lambda: cl.wrap("id.npz"), TypeError, "got str 'id.npz'. If that is a file, read it first"),
    (lambda: cl.wrap(iter([GOOD])), TypeError, r"got a list_iterator. Make one of it: np.stack\(list"),
    (lambda: cl.ConvexHull(GOOD).lower_probability([[0], [1]]), ValueError, "distinct class indices"),
    (lambda: cl.ConvexHull(np.full((1, 17), 1 / 17)).mobius(), ValueError, "at most 16"),
    (lambda: cl.ConvexHull(np.full((1, 9), 1 / 9)).permutation_vertices(), ValueError, "at most 8"),
    (lambda: cl.ProbabilityIntervals(np.zeros(17), np.ones(17)).vertices(), ValueError, "at most 16"),
]


def test_numpy_numbers_are_numbers():
    assert cl.wrap(GOOD, base=np.int64(2)).total[0] == cl.wrap(GOOD, base=np.float32(2)).total[0] == 2
    options = {"max_nodes": np.int32(50), "threads": np.int64(2), "tolerance": np.float32(1e-3)}
    assert cl.wrap(GOOD, **options).total[0] == cl.wrap_logits(-GOOD, **options).total[0] == 2
    assert cl.lower_entropy(LOW, HIGH, **options).shape == (2,)
    assert cl.generalized_hartley(LOW, HIGH, tolerance=np.float16(0.5), threads=np.uint8(1)).shape == (2,)
    assert cl.approximate_intervals(LOW, HIGH, np.int8(2)).lower.shape == (2, 2)
    assert cl.wrap(GOOD, max_nodes=2**63 - 1, threads=2**63 - 1).total[0] == 2


@pytest.mark.parametrize(("call", "error", "message"), OPTIONS)
def test_bad_options_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_message_counts_the_bad_rows():
    p = GOOD.copy()
    p[0, 1], p[1, 0] = 0.3, 0.4
    with pytest.raises(ValueError, match=r"2 of 6 rows of probs.*first is at index \(0, 1\)"):
        cl.wrap(p)


def refusal(function, *arguments):
    """What an error says; nothing if there is none."""
    try:
        function(*arguments)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("classes", [9, 30])
def test_rows_at_the_edge_of_the_tolerance_are_refused_with_a_row_or_accepted_for_good(classes):
    # Their sums depend on the order of summation, which differs between what decides and what words the error.
    rows = np.random.default_rng(0).dirichlet(np.ones(classes), 2000)[:, None, None] * (1 + 1e-5)
    functions = (cl.wrap, cl.classical_uncertainty, cl.ConvexHull, lambda p: cl.MemberSummary().update(p))
    said = [refusal(function, row) for row in rows for function in functions]
    assert all(message.startswith("1 of 1 rows of probs") for message in said if message)
    assert {bool(message) for message in said} == {False, True}
    for row, message in zip(rows, said[:: len(functions)], strict=True):
        if not message:
            assert cl.wrap(row).classical.total.shape == cl.wrap(row).hull.lower_entropy().shape == (1,)
