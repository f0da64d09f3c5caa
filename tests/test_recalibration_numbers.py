"""Every number of the page about recalibration is that of its result files, or of the code."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from benchmarks.recalibration_tables import ERRORS, PAGE, means_sentence, promises_sentence, read, with_tables
from credalens.core.recalibration import UNSURE
from credalens.core.temperature_search import LOG_RANGE
from credalens.evaluation.recalibrated import FEWEST, FOLDS

TEXT = PAGE.read_text(encoding="utf-8")
WITHOUT_TABLES = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", TEXT, flags=re.DOTALL)
PROSE = " ".join(re.sub(r"```.*?```", "", WITHOUT_TABLES, flags=re.DOTALL).split())
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+")
CELLS: dict[str, Any] = {f"{cell['data']}, {cell['members']}": cell for cell in read("recalibration")["cells"]}
FORESTS = CELLS["digits, forests of 20 trees"]
TEXTS = CELLS["CLINC150, MLPs"]
CIFAR10, CIFAR100 = CELLS["CIFAR-10, ResNet-18"], CELLS["CIFAR-100, ResNet-18"]
WINE = CELLS["wine, MLPs"]
PLAIN = "as they come"


def value(cell: dict[str, Any], name: str, digits: int, way: str = "credal") -> str:
    return f"{cell['ways'][way][name]['mean']:.{digits}f}"


def before_after(cell: dict[str, Any], name: str, digits: int) -> str:
    return f"from {value(cell, name, digits, PLAIN)} to {value(cell, name, digits)}"


def after_before(cell: dict[str, Any], name: str) -> str:
    return f"{value(cell, name, 1)} instead of {value(cell, name, 1, PLAIN)}"


def change(cell: dict[str, Any], name: str) -> str:
    return f"{abs(cell['changes']['credal'][name]['mean']):.1f}"


def of_total() -> list[float]:
    changes = [
        cell["changes"]["credal"].get(f"auroc {kind} total") for cell in CELLS.values() for kind in ("near", "far")
    ]
    return [each["mean"] for each in changes if each]


def trials() -> int:
    return sum(
        len(of_way) - ("temperature" in of_way) for cell in CELLS.values() for of_way in cell["changes"].values()
    )


CLAIMS = (
    f"on digits the best temperature was {value(FORESTS, 'temperature', 2)}, the NLL (negative log-likelihood, in nats) of the "
    f"intersection probability fell {before_after(FORESTS, 'nll credal', 3)} and its ECE "
    f"{before_after(FORESTS, 'ece credal', 1)} %",
    f"Networks on texts gained: at {value(TEXTS, 'temperature', 2)} the NLL fell {before_after(TEXTS, 'nll credal', 3)}, the "
    f"ECE {before_after(TEXTS, 'ece credal', 1)} %",
    f"at {value(CIFAR10, 'temperature', 2)} the NLL fell {before_after(CIFAR10, 'nll credal', 3)} on CIFAR-10, at "
    f"{value(CIFAR100, 'temperature', 2)} {before_after(CIFAR100, 'nll credal', 3)} on CIFAR-100, and the ECE did not fall but "
    f"went {before_after(CIFAR10, 'ece credal', 1)} % and {before_after(CIFAR100, 'ece credal', 1)} %",
    f"MLPs on wine, recalibrated on {WINE['fitted_on']} rows, went {before_after(WINE, 'nll credal', 3)}.",
    f"Of all changes that were measured, {len(read('recalibration')['worse'])} of {trials()} are for the worse",
    f"the temperature falls to the end of the search, {math.exp(-LOG_RANGE):.2f}",
    f'"members" has temperatures of {value(CIFAR10, "temperature", 2, "members")} on average where "credal" has '
    f"{value(CIFAR10, 'temperature', 2)}, and the ECE of the intersection probability is "
    f"{value(CIFAR10, 'ece credal', 1, 'members')} instead of {value(CIFAR10, 'ece credal', 1)} %",
    f"forests on digits tell left-out digits by it with {after_before(FORESTS, 'auroc near epistemic')}, networks on texts "
    f"requests outside all intents with {after_before(TEXTS, 'auroc near epistemic')} (by mutual information, "
    f"`mean_epistemic`, {value(TEXTS, 'auroc near mean_epistemic', 1)} both times)",
    f"on CIFAR-10 it loses {change(CIFAR10, 'auroc near epistemic')} (near) and {change(CIFAR10, 'auroc far epistemic')} "
    f"points (far), on CIFAR-100 it loses {change(CIFAR100, 'auroc near epistemic')} and gains "
    f"{change(CIFAR100, 'auroc far epistemic')}",
    f"it can lose much: {change(WINE, 'auroc near epistemic')} points for MLPs on wine",
    f"By `total` changes are smaller, from {min(of_total()):.1f} to +{max(of_total()):.1f} points",
    promises_sentence(),
    means_sentence(),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_sentence_is_as_measured(claim):
    assert claim in PROSE


def test_no_number_stands_beside_these_sentences():
    rest = re.sub(r"`[^`]*`", "", PROSE)
    for claim in CLAIMS:
        rest = rest.replace(re.sub(r"`[^`]*`", "", claim), "")
    assert not DECIMAL.findall(rest)


def test_the_tables_are_those_of_the_result_files():
    assert with_tables(TEXT) == TEXT


def test_losses_and_gains_have_the_sign_that_the_page_says():
    changes = {name: cell["changes"]["credal"] for name, cell in CELLS.items()}
    assert changes["CIFAR-100, ResNet-18"]["auroc far epistemic"]["mean"] > 0
    losses = [changes["CIFAR-10, ResNet-18"][f"auroc {kind} epistemic"]["mean"] for kind in ("near", "far")]
    assert max(losses) < 0 > changes["CIFAR-100, ResNet-18"]["auroc near epistemic"]["mean"]
    assert value(TEXTS, "auroc near mean_epistemic", 1) == value(TEXTS, "auroc near mean_epistemic", 1, PLAIN)
    totals = [
        value(CIFAR10, f"auroc {kind} total", 3, way) for kind in ("near", "far") for way in ("credal", "members")
    ]
    assert totals[0] < totals[1]
    assert totals[2] < totals[3]


def test_what_is_advised_about_labelled_inputs_is_what_was_measured_and_what_the_code_does():
    assert f"About {ERRORS[-1][0]} wrong ones were enough" in PROSE
    benchmark = pytest.importorskip("benchmarks.recalibration")
    drawn = f"{benchmark.DRAWS} draws of {min(benchmark.SIZES)} to {max(benchmark.SIZES):,} labelled inputs"
    assert drawn in PROSE
    assert f"at least {FEWEST} of them" in PROSE
    assert FOLDS == 5
    assert "five times" in PROSE
    assert UNSURE == 2
    assert "a factor of two" in PROSE


def test_the_page_about_guards_says_the_same_of_promises():
    assert promises_sentence() in " ".join((PAGE.parent / "deciding.md").read_text(encoding="utf-8").split())


def test_promises_are_kept_as_often_as_with_a_known_temperature():
    """What both pages advise rests on it: no share clearly above what is allowed, no clear difference."""
    for case in read("recalibrated_promises")["cases"]:
        difference = case["same_minus_fixed"]
        assert case["same"]["broken"]["mean"] <= 0.05 + 2 * case["same"]["broken"]["se"]
        assert abs(difference["broken"]["mean"]) <= 3 * difference["broken"]["se"]
        assert abs(difference["coverage"]["mean"]) < 0.005
        assert abs(difference["false_alarms"]["mean"]) < 0.005
