"""What exactness changes, as Markdown tables: the local solver's errors, its effect, and both forms of PIA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from credalens_paper.experiments.display_names import display_name
from credalens_paper.measures.reduction import ReductionEffect
from credalens_paper.results.records import ExactnessPart, ExactnessResult
from credalens_paper.results.rendering.markdown import NONE, markdown_table

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


def exactness_parts(result: ExactnessResult, /) -> list[str]:
    """The three tables, each after what it shows; none where nothing was measured."""
    tables = ((SOLVER, _error_table), (EFFECT, _effect_table), (REDUCTION, _reduction_table))
    return [part for text, table in tables if (made := table(result)) for part in (text, made)]


def _error_table(result: ExactnessResult) -> str:
    """For every model and set the share of wrong lower entropies by the size of the error."""
    rows = []
    for part in result.parts:
        solver = part.solver or ()
        for name in solver[0].sets if solver else ():
            errors = [run.sets[name] for run in solver]
            wrong = np.mean([one.wrong for one in errors], axis=0)
            rows.append([
                _model(part),
                display_name(name),
                *(f"{100 * share:.1f} %" for share in wrong),
                f"{np.mean([one.mean_error for one in errors]):.4f}",
                f"{max(one.largest_error for one in errors):.3f}",
                f"{len(errors)} x {errors[0].samples:,}",
                f"{np.mean([one.ms_per_input for one in errors]):.1f}",
            ])  # fmt: skip
    sizes = [f"> {size:g} bit" for size in result.wrong_sizes]
    return markdown_table(["Model", "Set", *sizes, "Mean error", "Worst", "Runs x inputs", "ms an input"], rows)


def _effect_table(result: ExactnessResult) -> str:
    """For every model and OOD set the AUROC by EU, exact and by the local solver."""
    rows = []
    for part in result.parts:
        solver = part.solver or ()
        for name in solver[0].pairs if solver else ():
            effects = [run.pairs[name] for run in solver]
            rows.append([
                _model(part),
                display_name(name),
                _mean([effect.exact_eu_auroc for effect in effects]),
                _mean([effect.slsqp_eu_auroc for effect in effects]),
                _mean([effect.difference for effect in effects], sign="+"),
                f"{min(effect.low for effect in effects):+.2f} to {max(effect.high for effect in effects):+.2f}",
                f"{sum(effect.low > 0 for effect in effects)} of {len(effects)} runs",
            ])  # fmt: skip
    head = ["Model", "OOD set", "AUROC, exact", "AUROC, SLSQP", "Difference", "95 % interval", "Surely better in"]
    return markdown_table(head, rows)


def _reduction_table(result: ExactnessResult) -> str:
    """For every model, OOD set and J the AUROC by EU of both forms of PIA, and how many printed sets are empty."""
    rows = [
        [
            _model(part),
            display_name(name),
            J,
            _mean([effect.exact_auroc for effect in effects]),
            _mean([effect.sound_auroc for effect in effects]),
            f"{100 * np.mean([effect.inside_empty for effect in effects]):.1f} %",
            f"{100 * np.mean([effect.outside_empty for effect in effects]):.1f} %",
            _mean([effect.left_sound_auroc for effect in effects]),
            _mean([effect.left_printed_auroc for effect in effects]),
            str(len(effects)),
        ]
        for part, name, J, effects in _reductions(result)
    ]
    head = ["Model", "OOD set", "J", "AUROC, no PIA", "Sound PIA", "Printed: empty, ID", "empty, OOD"]
    return markdown_table([*head, "Left: sound", "Left: printed", "n"], rows)


def _reductions(result: ExactnessResult) -> Iterator[tuple[ExactnessPart, str, str, list[ReductionEffect]]]:
    """(model, OOD set, J, effect in every run)."""
    for part in result.parts:
        runs = [run.J for run in part.reduction or ()]
        sets = dict.fromkeys(name for by_set in runs[0].values() for name in by_set) if runs else {}
        for name in sets:
            for J in runs[0]:
                yield part, name, J, [run[J][name] for run in runs]


def _model(part: ExactnessPart) -> str:
    keys = {**part.keys.as_dict(), **part.substitutes}
    return f"{display_name(keys['backbone'])} {keys['method']}, N = {keys['N']}, {display_name(keys['id_set'])}"


def _mean(values: Sequence[float | None], *, sign: str = "") -> str:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return NONE
    spread = f" ± {np.std(numbers, ddof=1):.2f}" if len(numbers) > 1 else ""
    return f"{np.mean(numbers):{sign}.2f}{spread}"


def error_sentence(result: ExactnessResult, /) -> str:
    """How often the local solver is wrong, inside and outside the distribution."""
    runs = [list(run.sets.values()) for part in result.parts for run in part.solver or ()]
    if not runs:
        return ""
    inside = _range([sets[0].wrong[0] for sets in runs])
    outside = _range([errors.wrong[0] for sets in runs for errors in sets[1:]])
    return (
        f"The paper's local solver misses the lowest entropy by more than {result.wrong_sizes[0]:g} bit on {inside} of the "
        f"test inputs and on {outside} of the OOD inputs, by run."
    )


def effect_sentence(result: ExactnessResult, /) -> str:
    """What exact lower entropy changes in OOD detection."""
    effects = [effect for part in result.parts for run in part.solver or () for effect in run.pairs.values()]
    if not effects:
        return ""
    differences, sure = [effect.difference for effect in effects], sum(effect.low > 0 for effect in effects)
    return (
        f"Exact lower entropy changes AUROC by EU by {min(differences):+.2f} to {max(differences):+.2f} points, by run; the "
        f"gain is beyond chance in {sure} of {len(effects)} comparisons."
    )


def reduction_sentence(result: ExactnessResult, /) -> str:
    """How many sets the printed PIA leaves empty."""
    effects = [effect for *_, runs in _reductions(result) for effect in runs]
    if not effects:
        return ""
    inside = _range([effect.inside_empty for effect in effects])
    outside = _range([effect.outside_empty for effect in effects])
    return (
        f"PIA as printed gives an empty set for {inside} of the test inputs and {outside} of the OOD inputs, by run "
        f"and J; the sound form gives none."
    )


def _range(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"
