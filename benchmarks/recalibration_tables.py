"""The tables of docs/recalibrating.md, from the result files: ``python -m benchmarks.recalibration_tables`` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "recalibrating.md"
POINTS: Final = (
    ("total, near", "auroc near total"),
    ("total, far", "auroc far total"),
    ("epistemic, near", "auroc near epistemic"),
    ("epistemic, far", "auroc far epistemic"),
)
ERRORS: Final = ((0, 10), (10, 40), (40, 10_000))
"""Bounds of how many of the labelled inputs are predicted wrong, on average."""
WAYS: Final = {"credal": '"credal"', "averaged": '"averaged"', "members": '"members"'}
NETWORKS: Final = ("CIFAR-10", "CIFAR-100", "CLINC150")


def read(name: str) -> dict[str, Any]:
    """A result file."""
    content: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return content


def effect_table() -> str:
    """NLL and ECE of the intersection probability before and after, and points of AUROC, of temperatures fitted through it."""
    rows = []
    for cell in read("recalibration")["cells"]:
        before, after, change = cell["ways"]["as they come"], cell["ways"]["credal"], cell["changes"]["credal"]
        rows.append(
            (
                f"{cell['data']}, {cell['members']}",
                f"{cell['fitted_on']:,}",
                f"{after['temperature']['mean']:.2f}",
                f"{before['nll credal']['mean']:.3f}",
                signed(change["nll credal"], 3),
                f"{before['ece credal']['mean']:.1f}",
                signed(change["ece credal"], 1),
                *(signed(change.get(name), 1) for _, name in POINTS),
            )
        )
    head = ("data, five members", "fitted on", "temperature", "NLL", "change", "ECE, %", "change")
    return table((*head, *(title for title, _ in POINTS)), rows)


def through_table() -> str:
    """What each way of fitting does to networks: calibration of both points, and AUROC by total."""
    rows = []
    for cell in read("recalibration")["cells"]:
        if cell["data"] not in NETWORKS:
            continue
        for way, title in {"as they come": "as they come", **WAYS}.items():
            values = cell["ways"][way]
            shown = [
                f"{values[name]['mean']:.{digits}f}"
                for name, digits in (("nll credal", 3), ("nll averaged", 3), ("ece credal", 1), ("ece averaged", 1))
            ]
            points = [
                f"{values[name]['mean']:.1f}" if name in values else "–"
                for name in ("auroc near total", "auroc far total")
            ]
            rows.append((f"{cell['data']}, {title}", *shown, *points))
    head = ("", "NLL, credal", "NLL, mean", "ECE, credal, %", "ECE, mean, %", "`total`, near", "`total`, far")
    return table(head, rows)


def needed_table() -> str:
    """How often temperatures of few inputs made the NLL of others worse, by how many of them were predicted wrong."""
    rows = []
    for low, high in ERRORS:
        fits = [row for row in labelled_inputs() if low <= row["mean_errors"] < high]
        draws = 20 * len(fits)
        worst = max(row["worst_change_of_nll"] for row in fits)
        name = f"fewer than {high}" if low == 0 else f"{low} to {high}" if high < 10_000 else f"{low} and more"
        worse, unwarned = (sum(row[key] for row in fits) for key in ("worse", "worse_without_warning"))
        rows.append((name, f"{draws}", f"{worse} ({100 * worse / draws:.0f} %)", f"{unwarned}", f"{worst:+.3f}"))
    return table(
        (
            "wrong predictions among them, on average",
            "fits",
            "worse on others",
            "of these unwarned",
            "worst change of NLL",
        ),
        rows,
    )


def labelled_inputs() -> Iterator[dict[str, Any]]:
    """The rows about fewer and fewer labelled inputs, of all cells."""
    for cell in read("recalibration")["cells"]:
        yield from cell["labelled_inputs"]


def promises_table() -> str:
    """Shares of draws that broke the promise of errors, false alarms and coverage, in per cent with standard errors."""
    rows = []
    for case in read("recalibrated_promises")["cases"]:
        name = f"{case['data'].replace('cifar', 'CIFAR-')}, {case['n']:,}, {WAYS[case['through']]}"
        shown = [
            percent(case[way][measure], digits)
            for measure, digits in (("broken", 1), ("false_alarms", 2), ("coverage", 1))
            for way in ("same", "fixed")
        ]
        rows.append((name, f"{case['draws']:,}", *shown))
    measures = ("broken", "false alarms", "sets hold")
    head = [f"{measure}, {way}" for measure in measures for way in ("same rows", "known")]
    return table(("inputs, how many, through", "draws", *head), rows)


def promises_sentence() -> str:
    """What the simulation says about promises of errors, for the pages about guards and recalibration."""
    cases = read("recalibrated_promises")["cases"]
    same, known = (([100 * case[way]["broken"]["mean"] for case in cases]) for way in ("same", "fixed"))
    error = max(100 * case[way]["broken"]["se"] for case in cases for way in ("same", "fixed"))
    differences = [case["same_minus_fixed"]["broken"] for case in cases]
    largest = max(differences, key=lambda difference: abs(difference["mean"]))
    sizes = [case["n"] for case in cases]
    return (
        f"In simulations with {min(sizes)} to {max(sizes):,} inputs, guards fitted on the inputs that fitted the temperature "
        f"broke their promise of errors in {min(same):.1f} to {max(same):.1f} % of the draws, those with a temperature known "
        f"before in {min(known):.1f} to {max(known):.1f} % (standard errors up to {error:.1f}); 5 % are allowed. Draw by draw "
        f"the largest difference is {100 * largest['mean']:+.1f} ± {100 * largest['se']:.1f} points"
    )


def means_sentence() -> str:
    """The same about what is promised as a mean."""
    differences = [case["same_minus_fixed"] for case in read("recalibrated_promises")["cases"]]
    alarms = max(100 * abs(difference["false_alarms"]["mean"]) for difference in differences)
    fewest = min(100 * difference["coverage"]["mean"] for difference in differences)
    return f"Mean false alarms differ by at most {alarms:.2f} points, and sets hold at most {-fewest:.2f} points less."


def signed(change: dict[str, float] | None, digits: int) -> str:
    """A change and its standard error; a dash where nothing was measured."""
    return "–" if change is None else f"{change['mean']:+.{digits}f} ± {change['se']:.{digits}f}"


def percent(value: dict[str, float], digits: int) -> str:
    """A share and its standard error in per cent."""
    return f"{100 * value['mean']:.{digits}f} ± {100 * value['se']:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES: Final = {
    "effect": effect_table,
    "through": through_table,
    "needed": needed_table,
    "promises": promises_table,
}


def with_tables(page: str, tables: Mapping[str, Callable[[], str]] = TABLES, /) -> str:
    """The page with its tables as the result files give them."""
    for name, make in tables.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        page = re.sub(pattern, lambda found, make=make: f"{found[1]}{make()}\n{found[2]}", page, flags=re.DOTALL)  # type: ignore[misc]
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
