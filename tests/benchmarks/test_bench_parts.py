"""Every part of the benchmark on a few rows: the numbers are what they are called."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import decomposition, growth, hard, startup
from benchmarks.calls import measure_calls
from benchmarks.decide import measure_decide
from benchmarks.device import classical_torch, measure_device
from benchmarks.memory import measure_memory
from benchmarks.predictions import flat, predictions_for, realistic
from benchmarks.provenance import provenance
from benchmarks.score import measure_score
from benchmarks.timing import best_seconds, fitted_exponent
from benchmarks.wrapper import measure_wrapper
from credalens.core.classical import classical_uncertainty
from tests.strategies import batch_of


@given(st.floats(-3, 3), st.floats(1e-9, 1e3), st.integers(2, 8))
def test_the_exponent_of_a_power_law_is_found(exponent, factor, count):
    sizes = 3.0 ** np.arange(count)
    assert math.isclose(fitted_exponent(sizes, factor * sizes**exponent), exponent, abs_tol=1e-9)


def test_jobs_take_turns():
    calls = []
    seconds = best_seconds({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=2)
    assert calls == ["a", "b"] * 3
    assert set(seconds) == {"a", "b"}


@pytest.mark.parametrize("classes", [10, 100])
def test_predictions_are_distributions_and_peaked_unless_flat(classes):
    peaked, _ = predictions_for(5, 200, classes)
    level = flat(5, 200, classes)
    for p in (peaked, level, realistic(3, 200, classes)):
        np.testing.assert_allclose(p.sum(-1), 1)
        assert (p >= 0).all()
        assert p.flags.c_contiguous  # or `wrap`, and nobody else, would copy them first
    assert peaked.max(-1).mean() > 2 * level.max(-1).mean()


def test_ratios_are_ratios(monkeypatch):
    monkeypatch.setattr(decomposition, "SOLVER_ROWS", {4: 3})
    row = decomposition.measure_decomposition(4)
    assert row["ours_over_classical"] == pytest.approx(row["ours_us"] / row["classical_us"])
    assert row["two_threads_over_classical"] == pytest.approx(row["ours_two_threads_us"] / row["classical_us"])
    assert row["slsqp_over_ours"] == pytest.approx(row["slsqp_us"] / row["ours_us"])
    assert row["solver_rows"] == 3
    assert 0 <= row["slsqp_wrong_share"] <= 1


def test_waiting_does_not_make_the_solver_look_slow(monkeypatch):
    monkeypatch.setattr(decomposition, "SOLVER_ROWS", {4: 2})
    monkeypatch.setattr(decomposition, "slsqp", lambda low, high: (time.sleep(0.05), (0.0, 0.0))[1])
    assert decomposition.measure_decomposition(4)["slsqp_us"] < 25_000


def test_growth_has_times_and_exponents_for_each_size(monkeypatch):
    monkeypatch.setattr(growth, "CLASSES", (3, 6))
    monkeypatch.setattr(growth, "ROWS", (50, 100))
    monkeypatch.setattr(growth, "COUNTS", (2, 4))
    monkeypatch.setattr(growth, "VALUES", 300)
    monkeypatch.setattr(growth, "FEW_ROWS", 50)
    found = growth.measure_growth()
    times = found["seconds_by_rows"]
    assert list(times) == [50, 100]
    assert found["exponents"]["rows"] == pytest.approx(math.log2(times[100] / times[50]))
    # C log C grows by more than C between two sizes, so its exponent is smaller in size.
    assert abs(found["exponents"]["classes_log_classes"]) <= abs(found["exponents"]["classes"])
    assert set(found["exponents"]) == {"classes", "classes_log_classes", "rows", "members"}


def test_hard_inputs_are_certified(monkeypatch):
    monkeypatch.setattr(hard, "FLAT_CLASSES", 60)
    monkeypatch.setattr(hard, "FLAT_ROWS", {1e-2: 3, 1e-4: 2})
    for row in hard.measure_flat():
        assert 0 <= row["widest_bracket_bits"] <= row["tolerance_bits"]
        assert row["us"] > 0


def test_hartley_is_exact_for_few_classes_and_certified_for_many(monkeypatch):
    monkeypatch.setattr(hard, "HARTLEY_ROWS", {10: 5, 40: 2})
    rows = hard.measure_hartley()
    assert [(r["classes"], r["predictions"]) for r in rows] == [
        (10, "peaked"), (10, "flat"), (40, "peaked"), (40, "flat"),
    ]  # fmt: skip
    for row in rows:
        assert row["widest_bracket_bits"] <= (0 if row["classes"] == 10 else 1e-3)


def test_memory_counts_outputs_of_every_row():
    found = measure_memory(rows=20_000)
    assert found["output_bytes"] == 20_000 * (4 * 10 + 4) * 4
    assert found["peak_bytes"] >= found["output_bytes"]


def test_startup_takes_the_best_of_fresh_processes(monkeypatch):
    runs = iter([(0.3, 0.3, 0.2), (0.1, 0.1, 0.2), (9.0, 9.5, 5.0), (0.2, 0.7, 0.4), (0.2, 0.6, 0.5)])
    monkeypatch.setattr(startup, "IMPORTS", 2)
    monkeypatch.setattr(startup, "LATER", 2)
    monkeypatch.setattr(startup, "_seconds", lambda **options: next(runs))
    assert startup.measure_startup() == {
        "import_seconds": 0.1,
        "first_ever_seconds": 9.5,
        "first_ever_processor_seconds": 5.0,
        "later_process_seconds": 0.6,
        "later_process_processor_seconds": 0.4,
    }


def test_a_fresh_process_reports_its_own_times():
    imported, total, processor = startup._seconds(wrap=False)
    assert 0 < imported <= total
    assert processor > 0


def test_the_wrapper_is_timed_on_the_members_it_runs():
    pytest.importorskip("torch")
    found = measure_wrapper("cpu", batch=2, width=0.125)
    assert found["overhead"] == pytest.approx(found["own_seconds"] / found["members_seconds"])
    assert found["members_seconds"] > 0
    assert found["own_seconds"] > 0


def test_without_a_gpu_the_reason_is_given():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is at hand")
    assert measure_wrapper("cuda")["skipped"] == "no CUDA device"
    assert measure_device(10) == {"classes": 10, "skipped": "no CUDA device"}


def test_the_device_rows_work_on_any_device():
    torch = pytest.importorskip("torch")
    found = measure_device(10, device="cpu", rows=200)
    assert found["ours_over_classical"] == pytest.approx(found["ours_ms"] / found["classical_ms"])
    batch = batch_of("peaked", 5, 50, 10)
    ours = classical_uncertainty(batch)
    for value, expected in zip(
        classical_torch(torch.from_numpy(batch)), (ours.total, ours.aleatoric, ours.epistemic), strict=True
    ):
        np.testing.assert_allclose(value, expected, atol=1e-12)
    with pytest.raises(ValueError, match="probability distributions"):
        classical_torch(torch.from_numpy(batch * 2))


def test_provenance_names_versions_and_hardware():
    found = provenance()
    assert found["numpy"] == np.__version__
    assert all(isinstance(value, str) and value for value in found.values())


def test_what_is_called_after_wrap_is_timed_beside_it():
    measured = measure_calls(5)
    parts = ("wrap_us", "classical_us", "predict_set_us")
    assert all(measured[name] > 0 for name in parts)
    assert measured["sum_us"] == pytest.approx(sum(measured[name] for name in parts))


def test_deciding_is_timed_beside_wrap():
    measured = measure_decide(5)
    assert measured["calibration"] == 1000
    for name in ("decide", "decide_with_p_value"):
        assert measured[f"{name}_over_wrap"] == pytest.approx(measured[f"{name}_us"] / measured["wrap_us"])


def test_scoring_a_file_is_timed_beside_writing_its_output():
    measured = measure_score(rows=300)
    assert measured["score_over_write"] == pytest.approx(measured["score_seconds"] / measured["write_seconds"])


def test_forests_are_compared_with_what_they_become():
    pytest.importorskip("sklearn")
    from benchmarks.forests import compare
    from credalens.sklearn import CredalClassifier

    ways = {"two": lambda trained: CredalClassifier.from_fitted(trained, groups=2), "new": lambda _: CredalClassifier()}
    two, new = compare("iris", "random forest, 20 trees", ways, seeds=[0, 1])
    assert two.accuracy == two.forest_accuracy == new.forest_accuracy  # two members: their mean is the point prediction
    assert 50 < two.auroc_total <= 100
    assert 1 <= two.set_size <= 3
