"""A promise in every group of a column: kept in each of them, refused where one is too small, checked with groups."""

from __future__ import annotations

import json

import numpy as np
import pytest

from credalens.guard import Guard
from credalens.guard.decider import Guard as Decider
from credalens.guard.risk import read_risks
from credalens.guard.signature import CalibrationData, Signature
from credalens.prediction import wrap
from tests.cli.running import run
from tests.core.test_recalibration import overconfident

SIGNATURE = Signature(10, 5, 0.0)


def draw(rng, n, rates):
    """Scores of two groups, errors that grow with the score and are more frequent in the second group."""
    scores, group = rng.random(n), (rng.random(n) < 0.4).astype(int)
    wrong = rng.random(n) < scores * np.array(rates)[group] * 2
    labels = rng.integers(0, 10, n)
    return scores, np.array(["a", "b"], object)[group], (labels + wrong) % 10, labels


def fitted(scores, group, predicted, labels, max_error):
    data = CalibrationData(SIGNATURE, "total", "intersection", scores, predicted, labels, {"site": group})
    risks = read_risks(max_error, None, "true", 10, data.groups)
    return Decider.from_calibration(data, false_alarm_rate=None, risks=risks)


@pytest.mark.parametrize("rates", [(0.05, 0.2), (0.15, 0.15), (0.02, 0.4)])
def test_the_promise_is_kept_in_each_group_as_often_as_it_says(rates):
    """Limits of 200 guards, judged by the true error rate below them: at most 5 % may be above, 9 % in so many draws."""
    rng, broken, made = np.random.default_rng(0), 0, 0
    for _ in range(200):
        try:
            guard = fitted(*draw(rng, 600, rates), max_error=0.1)
        except ValueError:
            continue
        made += 1
        limit = min(guard.limit, 1.0)
        broken += max(limit * rate for rate in rates) > 0.1  # the mean of 2 s rate over scores s below the limit
    assert made > 20
    assert broken <= 0.09 * 200


def test_a_guard_for_all_may_break_it_in_a_group_and_one_for_groups_accepts_less():
    rng = np.random.default_rng(1)
    parts = draw(rng, 4000, (0.05, 0.3))
    of_all = Guard.from_calibration(
        CalibrationData(SIGNATURE, "total", "intersection", parts[0], parts[2], parts[3]),
        false_alarm_rate=None,
        risks=read_risks(0.1, None, "true", 10),
    )
    of_groups = fitted(*parts, max_error=0.1)
    assert of_groups.limit < of_all.limit
    assert [promise.name for promise in of_groups.promises] == [
        "error rate", "error rate where site is a", "error rate where site is b",
    ]  # fmt: skip


@pytest.fixture
def data():
    logits, labels = overconfident(2400, factor=1.0)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return p, labels, np.array(["f", "m"])[np.random.default_rng(3).integers(0, 2, 2400)]


def test_it_is_fitted_saved_and_checked(data, tmp_path):
    p, labels, sex = data
    guard = Guard.fit(wrap(p[:, :1200]), labels[:1200], max_error=0.4, groups={"sex": sex[:1200]})
    guard.save(tmp_path / "guard.json")
    loaded = Guard.load(tmp_path / "guard.json")
    assert loaded.promises == guard.promises
    names = [check.name for check in loaded.check_promises(wrap(p[:, 1200:]), labels[1200:], {"sex": sex[1200:]})]
    assert names == ["false-alarm rate", "error rate", "error rate where sex is f", "error rate where sex is m"]
    assert [check.name for check in loaded.check_promises(wrap(p[:, 1200:]), labels[1200:])] == names[:2]


def test_counts_of_a_group_are_those_of_its_inputs(data):
    p, labels, sex = data
    guard = Guard.fit(wrap(p[:, :1200]), labels[:1200], max_error=0.4, groups={"sex": sex[:1200]})
    new, truth, of = wrap(p[:, 1200:]), labels[1200:], sex[1200:]
    accepted, named = np.asarray(guard.decide(new).accepted), new.predict()
    checks = {check.name: check for check in guard.check_promises(new, truth, {"sex": of})}
    for value in "fm":
        rows = accepted & (of == value)
        check = checks[f"error rate where sex is {value}"]
        assert (check.n, check.hits) == (rows.sum(), (named != truth)[rows].sum())


def test_on_the_command_line(data, tmp_path, capsys):
    p, labels, sex = data
    np.savez(tmp_path / "id.npz", probs=p, labels=labels)
    (tmp_path / "groups.csv").write_text("sex\n" + "\n".join(sex) + "\n")
    options = ("--groups", tmp_path / "groups.csv")
    fit = ("guard", "fit", tmp_path / "id.npz", "--max-error", 0.4, "-o", tmp_path / "guard.json", *options)
    code, out, _ = run(capsys, *fit)
    assert code == 0
    assert "error rate where sex is f" in out
    check = ("guard", "check", tmp_path / "guard.json", tmp_path / "id.npz")
    checks = json.loads(run(capsys, *check, *options, "--json")[1])["promises"]
    assert "error rate where sex is m" in [found["name"] for found in checks]
    assert "pass --groups FILE" in run(capsys, *check)[1]


class TestRefusals:
    def test_a_group_of_few_is_named(self, data):
        p, labels, sex = data
        sex = sex.copy().astype(object)
        sex[:3] = "x"
        with pytest.raises(ValueError, match=r"error rate where sex is x .*it concerns at most \d accepted ones"):
            Guard.fit(wrap(p), labels, max_error=0.4, groups={"sex": sex})

    def test_groups_without_a_rate_or_labels(self, data):
        p, labels, sex = data
        with pytest.raises(ValueError, match="max_error="):
            Guard.fit(wrap(p), labels, groups={"sex": sex})
        with pytest.raises(ValueError, match="needs labels"):
            Guard.fit(wrap(p), groups={"sex": sex}, max_error=0.4)

    def test_groups_of_another_form(self, data):
        p, labels, sex = data
        with pytest.raises(TypeError, match="must map names"):
            Guard.fit(wrap(p), labels, max_error=0.4, groups=sex)
        with pytest.raises(ValueError, match="one value for each of the 2400 inputs"):
            Guard.fit(wrap(p), labels, max_error=0.4, groups={"sex": sex[:5]})
