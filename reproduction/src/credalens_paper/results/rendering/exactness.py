"""What exactness changes, as Markdown tables: the local solver's errors, its effect, and both forms of PIA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from credalens_paper.results.rendering.markdown import NONE, markdown_table
from credalens_paper.results.rendering.names import shown

__all__ = [
    "effect_sentence",
    "error_sentence",
    "exactness_parts",
    "reduction_sentence",
    "reduction_table",
    "solver_effect_table",
    "solver_error_table",
]

Result = Mapping[str, Any]
SOLVER: Final = (
    "Lower entropy by SciPy's SLSQP, started at the intersection probability, against the exact minimum: the share of\n"
    "values that are off by more than so many bits, on random inputs of each set."
)
EFFECT: Final = (
    "OOD detection by EU from either, on the same inputs. The interval is DeLong's for the paired difference, from the\n"
    "lowest end of any run to the highest; upper entropy is a concave maximum, which the solver finds."
)
REDUCTION: Final = (
    "EU from the J classes that PIA keeps, on all inputs. The printed algorithm bounds the wrong group of classes and\n"
    "gives sets that hold no distribution; its AUROC can only be taken on the inputs that are left, the ones\n"
    "of wide sets, where the sound form stands beside it."
)


def exactness_parts(result: Result, /) -> list[str]:
    """The three tables, each after what it shows; none where nothing was measured."""
    tables = ((SOLVER, solver_error_table), (EFFECT, solver_effect_table), (REDUCTION, reduction_table))
    return [part for text, table in tables if (made := table(result)) for part in (text, made)]


def solver_error_table(result: Result, /) -> str:
    """For every model and set the share of wrong lower entropies by the size of the error."""
    sizes = result["wrong_sizes"]
    rows = []
    for part in _measured(result):
        for name in part["solver"][0]["sets"]:
            found = [run["sets"][name] for run in part["solver"]]
            wrong = np.mean([one["wrong"] for one in found], axis=0)
            rows.append([
                _model(part),
                shown(name),
                *(f"{100 * share:.1f} %" for share in wrong),
                f"{np.mean([one['mean_error'] for one in found]):.4f}",
                f"{max(one['largest_error'] for one in found):.3f}",
                f"{len(found)} x {found[0]['samples']:,}",
                f"{np.mean([one['ms_per_input'] for one in found]):.1f}",
            ])  # fmt: skip
    head = [
        "Model",
        "Set",
        *(f"> {size:g} bit" for size in sizes),
        "Mean error",
        "Worst",
        "Runs x inputs",
        "ms an input",
    ]
    return markdown_table(head, rows) if rows else ""


def solver_effect_table(result: Result, /) -> str:
    """For every model and OOD set the AUROC by EU, exact and by the local solver."""
    rows = []
    for part in _measured(result):
        for name in part["solver"][0]["pairs"]:
            found = [run["pairs"][name] for run in part["solver"]]
            better = sum(one["low"] > 0 for one in found)
            rows.append([
                _model(part),
                shown(name),
                _mean(found, "exact.EU.AUROC"),
                _mean(found, "SLSQP.EU.AUROC"),
                _mean(found, "difference", sign="+"),
                f"{min(one['low'] for one in found):+.2f} to {max(one['high'] for one in found):+.2f}",
                f"{better} of {len(found)} runs",
            ])  # fmt: skip
    head = ["Model", "OOD set", "AUROC, exact", "AUROC, SLSQP", "Difference", "95 % interval", "Surely better in"]
    return markdown_table(head, rows) if rows else ""


def reduction_table(result: Result, /) -> str:
    """For every model, OOD set and J the AUROC by EU of both forms of PIA, and how many printed sets are empty."""
    rows = []
    for part in _measured(result):
        for J, name, found in _reductions(part):
            rows.append([
                _model(part),
                shown(name),
                J,
                _mean(found, "exact.AUROC"),
                _mean(found, "sound.AUROC"),
                _percent(found, "inside.empty"),
                _percent(found, "outside.empty"),
                _mean(found, "left.sound.AUROC"),
                _mean(found, "left.printed.AUROC"),
                str(len(found)),
            ])  # fmt: skip
    head = ["Model", "OOD set", "J", "AUROC, no PIA", "Sound PIA", "Printed: empty, ID", "empty, OOD"]
    head += ["Left: sound", "Left: printed", "n"]
    return markdown_table(head, rows) if rows else ""


def _measured(result: Result) -> list[Result]:
    return [part for part in result["parts"] if "solver" in part]


def _reductions(part: Result) -> Iterator[tuple[str, str, list[Result]]]:
    runs = [run["J"] for run in part["reduction"]]
    sets = dict.fromkeys(name for found in runs[0].values() for name in found)
    for name in sets:
        for J in runs[0]:
            yield J, name, [run[J][name] for run in runs]


def _model(part: Result) -> str:
    own = {**part["keys"], **part["measured"]}
    return f"{shown(own['backbone'])} {own['method']}, N = {own['N']}, {shown(own['id_set'])}"


def _mean(found: Sequence[Result], name: str, *, sign: str = "") -> str:
    values = [one[name] for one in found if one[name] is not None]
    if len(values) < len(found):
        return NONE
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):{sign}.2f}{spread}"


def _percent(found: Sequence[Result], name: str) -> str:
    return f"{100 * np.mean([one[name] for one in found]):.1f} %"


def error_sentence(result: Result, /) -> str:
    """How often the local solver is wrong, inside and outside the distribution."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for part in _measured(result):
        for run in part["solver"]:
            inside, *outside = run["sets"].values()
            shares[True].append(inside["wrong"][0])
            shares[False] += [one["wrong"][0] for one in outside]
    if not shares[True]:
        return ""
    inside_text, outside_text = (_range(shares[side]) for side in (True, False))
    size = f"{result['wrong_sizes'][0]:g} bit"
    return (
        f"The paper's local solver misses the lowest entropy by more than {size} on {inside_text} of the test inputs and on "
        f"{outside_text} of the OOD inputs, by run."
    )


def effect_sentence(result: Result, /) -> str:
    """What exact lower entropy changes in OOD detection."""
    found = [one for part in _measured(result) for run in part["solver"] for one in run["pairs"].values()]
    if not found:
        return ""
    differences, sure = [one["difference"] for one in found], sum(one["low"] > 0 for one in found)
    return (
        f"Exact lower entropy changes AUROC by EU by {min(differences):+.2f} to {max(differences):+.2f} points, by run; the "
        f"gain is beyond chance in {sure} of {len(found)} comparisons."
    )


def reduction_sentence(result: Result, /) -> str:
    """How many sets the printed PIA leaves empty."""
    found = [one for part in _measured(result) for _, _, runs in _reductions(part) for one in runs]
    if not found:
        return ""
    empty = [_range([one[f"{side}.empty"] for one in found]) for side in ("inside", "outside")]
    return (
        f"PIA as printed gives an empty set for {empty[0]} of the test inputs and {empty[1]} of the OOD inputs, by run "
        f"and J; the sound form gives none."
    )


def _range(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"
