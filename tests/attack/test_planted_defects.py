"""Every planted defect is found by its campaign."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import credalens
from attack import many_rows
from attack.campaigns import CAMPAIGNS, damaged_runs
from attack.case import DefectError, expect_close, expect_same
from attack.running import run_case
from credalens import arrays, prediction
from credalens.core import decomposition
from credalens.guard import conformal_sets, limit_search
from credalens.guard.conformal_sets import hashed_uniforms
from credalens.guard.signature import Signature, Slack


def planted(monkeypatch, name: str, change) -> None:
    """Let a function of the library give something else."""
    real = getattr(credalens, name)
    monkeypatch.setattr(credalens, name, lambda *args, **kwargs: change(real(*args, **kwargs)))


DEFECTS = [
    ("intervals", "intersection_probability", lambda p: p * (1 + 1e-9)),
    ("few_classes", "upper_entropy", lambda pair: (pair[0] + 1e-9, pair[1]) if isinstance(pair, tuple) else pair),
    ("few_classes", "lower_entropy", lambda value: (value[0], 0.999 * value[1], *value[2:]) if len(value) == 3 else value),
    ("many_classes", "lower_entropy", lambda value: (*value[:2], (value[2][0] + 1e-6, value[2][1]))),
    ("hartley", "generalized_hartley", lambda pair: (pair[0], (pair[1][0], pair[1][1] + 0.01))),
    ("decisions", "credal_decision", lambda mask: mask & (np.arange(mask.shape[-1]) > 0)),
    ("classical", "classical_uncertainty", lambda result: replace(result, epistemic=-result.epistemic - 1e-9)),
    ("thousands", "wrap", lambda result: replace(result, aleatoric=result.aleatoric * (1 + 1e-9))),
    ("thousands", "wrap", lambda result: replace(result, upper=np.minimum(result.upper * (1 + 1e-9), 1))),
    ("two_members", "wrap", lambda result: replace(result, n_members=3, upper=result.upper * (1 + 1e-9))),
]  # fmt: skip


@pytest.mark.parametrize(("campaign", "name", "change"), DEFECTS, ids=[f"{case[0]}-{case[1]}" for case in DEFECTS])
def test_a_planted_defect_is_found(monkeypatch, campaign, name, change):
    planted(monkeypatch, name, change)
    assert any(isinstance(failure.error, DefectError) for failure in failures_of(campaign, 6))


def failures_of(campaign, cases=8):
    """One after the other, so that whoever asks for any stops at the first."""
    return (failure for number in range(cases) if (failure := run_case(CAMPAIGNS[campaign], 1, number)))


@pytest.mark.filterwarnings("ignore:.* not certified")
def test_an_open_row_without_a_warning_is_found(monkeypatch):
    monkeypatch.setattr(decomposition, "warn_open_rows", lambda *args, **kwargs: None)
    assert any("rows are open" in str(failure) for failure in failures_of("budgets", 30))


def test_averages_of_other_rows_are_found(monkeypatch):
    monkeypatch.setattr(prediction, "places_of", lambda key, batch, kind: tuple(np.zeros((4, 4), int) for _ in batch))
    assert any(failures_of("batch_axes", 20))


@pytest.mark.filterwarnings("ignore")
def test_promises_that_depend_on_the_precision_are_found(monkeypatch):
    monkeypatch.setattr(Signature, "slack", lambda *args: Slack())
    assert any("precision" in failure.campaign for failure in failures_of("precisions", 60))


PRECISION = {
    "logits count as float32": (arrays, "LOGITS", 0.0),
    "theta of the last digits": (
        conformal_sets,
        "hashed_uniforms",
        lambda *args, **_: hashed_uniforms(*args, of_bits=True),
    ),
}
TIES = ("one_hot", "tenths", "mixed")


@pytest.mark.filterwarnings("ignore")
def test_no_precision_breaks_a_promise_where_inputs_tie(monkeypatch):
    monkeypatch.setattr(many_rows, "KINDS", TIES)
    assert not any(failures_of("precisions", 30))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("defect", PRECISION)
def test_a_precision_that_breaks_a_promise_is_found(monkeypatch, defect):
    """Sooner where inputs tie, as they do in some cases of the campaign."""
    module, name, wrong = PRECISION[defect]
    monkeypatch.setattr(many_rows, "KINDS", TIES)
    monkeypatch.setattr(module, name, wrong)
    assert any(failures_of("precisions", 200))


def test_a_search_that_goes_on_after_a_failure_is_found(monkeypatch):
    def last(tested, limits, plan):
        return len(limits.counts) - 1 if plan else None

    monkeypatch.setattr(limit_search, "last_passed", last)
    assert any(failures_of("guard_search"))


def test_a_number_for_bad_input_is_found(monkeypatch):
    for name in ("wrap", "classical_uncertainty", "upper_entropy", "lower_entropy"):
        monkeypatch.setattr(credalens, name, lambda *args, **kwargs: 0.5)
    assert any("gave" in str(failure) for failure in failures_of("bad_input"))


def test_a_stale_prediction_is_found(monkeypatch):
    from credalens.torch import predicting

    monkeypatch.setattr(predicting, "digest", lambda x, *_: "the same for all")
    assert "differ" in str(run_case(CAMPAIGNS["stale_batches"], 1, 0))


def test_a_changed_result_of_a_damaged_run_is_found(monkeypatch):
    real, targets = damaged_runs.score, []

    def score(run, **options):
        """The run after the damage writes one byte more."""
        real(run, **options)
        targets.append(run.target)
        if len(targets) > 1:
            path = next(run.target.rglob("*.parquet")) if run.folder else run.target
            path.write_bytes(path.read_bytes() + b"!")

    monkeypatch.setattr(damaged_runs, "score", score)
    assert "changes the result" in str(run_case(CAMPAIGNS["damaged_runs"], 1, 0))


def test_a_server_that_fails_is_found(monkeypatch):
    from credalens.serve import protocol

    monkeypatch.setattr(protocol, "_is_count", lambda value: True)
    assert any(failures_of("bad_requests", 2))


@pytest.mark.parametrize("check", ["_is_host", "_is_origin"])
def test_a_server_that_answers_pages_elsewhere_is_found(monkeypatch, check):
    from credalens.serve.access import Access

    monkeypatch.setattr(Access, check, lambda self, value, other: True)
    assert "an answer to" in str(run_case(CAMPAIGNS["pages_elsewhere"], 1, 0))


def test_comparisons_do_not_let_nan_pass():
    with pytest.raises(DefectError, match=r"1 of 2 differ, the first at \(1,\)"):
        expect_close("x", [1.0, np.nan], [1.0, 1.0], tolerance=1.0)
    with pytest.raises(DefectError, match="float32"):
        expect_same("x", np.ones(2, np.float32), np.ones(2))
    expect_same("x", np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))


def test_a_loader_that_words_nothing_is_found(monkeypatch):
    monkeypatch.setattr("credalens.storage.saved.restoring", lambda *_: nullcontext())
    assert any(failures_of("saved_files"))
