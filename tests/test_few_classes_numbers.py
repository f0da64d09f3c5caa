"""Every number of the page about few classes is that of its result file, or of the code."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("sklearn")

from benchmarks.few_classes import FALSE_ALARMS, MEMBERS, SEEDS
from benchmarks.few_classes_page import DIFFERENCES, PAGE, differences, gap, page_with_tables, stored
from benchmarks.few_classes_summary import SIZES, WORSE_NLL
from credalens.core.scores import default_score
from credalens.guard.binomial import least_samples
from credalens.sklearn.classifier import MANY_CLASSES

TEXT = PAGE.read_text(encoding="utf-8")
WITHOUT_TABLES = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", TEXT, flags=re.DOTALL)
PROSE = " ".join(re.sub(r"```.*?```", "", WITHOUT_TABLES, flags=re.DOTALL).split())
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+")
CELLS = stored()["cells"]
TWO, THREE_TO_FIVE, SIX = SIZES


def of_members(model: str) -> tuple[str, str]:
    return gap("unknown", "mean_total", model), gap("unknown", "mean_epistemic", model)


def much_less_accurate(size: str) -> str:
    accuracy = differences("mean", "single", size)[:, 0]
    return f"in {(accuracy < -0.01).sum()} of {len(accuracy)} cases"


def ahead(size: str) -> str:
    """By how much hartley finds more of the unknown inputs than mean_epistemic."""
    return f"{float(gap('unknown', 'mean_epistemic', size)) - float(gap('unknown', 'hartley', size)):.1f}"


FORESTS, NETWORKS, LINEAR = map(of_members, ("forest in groups", "network, reseed", "logistic, bootstrap"))
CLAIMS = (
    f"from {len(CELLS)} runs: {len({c['table'] for c in CELLS})} real tables",
    f"`mean_total` is {FORESTS[0]} points below the best with forests and `mean_epistemic` {FORESTS[1]}, but with networks "
    f"{NETWORKS[0]} and {NETWORKS[1]}, with logistic regression {LINEAR[0]} and {LINEAR[1]}.",
    f"({gap('unknown', 'hartley', TWO)} and {gap('unknown', 'mean_epistemic', TWO)} points below the best)",
    f"{much_less_accurate(THREE_TO_FIVE)} (a table and a kind of members) the mean was over a point less accurate than one "
    "model",
    f"with three to five classes it is {ahead(THREE_TO_FIVE)} points ahead, with more {ahead(SIX)}",
    f"how often it rose by more than {WORSE_NLL}",
    f"for {100 * FALSE_ALARMS:.0f} % of false alarms",
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_sentence_is_as_measured(claim):
    assert claim in PROSE


def test_no_decimal_stands_beside_these_sentences():
    rest = PROSE
    for claim in CLAIMS:
        rest = rest.replace(claim, "")
    rest = re.sub(r"`[^`]*`|credalens guard .*? -o guard.json", "", rest)
    assert not DECIMAL.findall(rest)


def test_the_tables_are_those_of_the_result_file():
    assert page_with_tables() == TEXT


def test_what_is_said_to_gain_nothing_gains_nothing():
    """The intersection probability against the mean, scores of the set against those of the mean for errors."""
    for size in SIZES:
        accuracy, nll = differences(*DIFFERENCES[0], size).mean(axis=0)[:2]
        assert accuracy < 0 < nll
        of_mean = float(gap("errors", "mean_least_confidence", size))
        assert of_mean < min(float(gap("errors", score, size)) for score in ("total", "entropy", "hartley"))
        assert of_mean == min(float(gap("errors", score, size)) for score in stored()["scores"])
    credal = [score for score in stored()["scores"] if not score.startswith("mean_")]
    assert min(credal, key=lambda score: float(gap("unknown", score, TWO))) in ("hartley", "imprecision")


def test_setup_and_defaults_are_those_of_the_code():
    assert (MEMBERS, len(SEEDS)) == (5, 3)
    assert "five kinds of members, three seeds" in PROSE
    assert len({cell["model"] for cell in CELLS}) == 5
    assert least_samples(0.1) == 9
    classes = {cell["classes"] for cell in CELLS}
    assert (min(classes), max(classes)) == (2, 13)
    assert "two to thirteen classes" in PROSE
    rows = re.findall(r"^\| ([a-z ]+) \| `(\w+)` \| `(\w+)` \| (.*) \|$", TEXT, flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["two to five", "six to nine", "ten and more"]
    for ends, (_, score, errors, point) in zip(((2, 5), (6, 9), (10, 99)), rows, strict=True):
        for count in ends:
            assert (default_score(count), default_score(count, errors=True)) == (score, errors)
            assert ("mean" in point) == (count < MANY_CLASSES)
