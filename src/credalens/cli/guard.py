"""``credalens guard``: fit a guard on calibration data, and check whether its promises hold on other data."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from credalens.checks.arrays import read_columns
from credalens.checks.options import count_text, escaped
from credalens.cli.app import OneCommand, OneGroup
from credalens.cli.evaluate import labels_of
from credalens.cli.shared_options import (
    PREDICTION_FILES,
    Base,
    Count,
    File,
    Logits,
    MaxBytes,
    MemberAxis,
    RecalibrationFile,
    read_recalibration,
)
from credalens.cli.side_files import read_groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from credalens.guard import Guard
    from credalens.guard.decisions import DecisionCounts
    from credalens.guard.risk import Promise
    from credalens.storage.source import Source

BROKEN: Final = 3
COUNTED: Final = ("rows", "unlike", "accepted", "offered", "errors", "misses")
CHECKED: Final = ("name", "promised", "hits", "n", "low", "high", "p_value", "holds_up_to", "observed", "kept")
guard = typer.Typer(cls=OneGroup, add_completion=False, rich_markup_mode="markdown")
Labels = Annotated[Path | None, File(
    help="True classes of the rows; not needed if the file of predictions contains labels.",
)]  # fmt: skip
Threads = Annotated[int | None, Count(help="Threads.", show_default="all cores")]
Groups = Annotated[Path | None, File(
    help="Columns of the rows, such as site or sex; errors are promised in every group of each. A .csv with a heading, or "
    ".parquet.",
)]  # fmt: skip
NoPromise: Final = partial(typer.Option, metavar="RATE", show_default="no promise")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@guard.callback(invoke_without_command=True)
def describe(context: typer.Context) -> None:
    """Decide which predictions to accept, with a promise: fit a guard, or check one.

    **Examples**

        credalens guard fit id.npz --labels y.npy --max-error 0.02 -o guard.json

        credalens guard check guard.json new.npz --labels y.npy

        credalens score new.npz -o scored.parquet --guard guard.json
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@guard.command(cls=OneCommand)
def fit(
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", show_default=False,
        help=f"Members' predictions for calibration data, {PREDICTION_FILES}. "
        "Members must not be trained on these data, and later inputs should be like them.",
    )],
    output: Annotated[Path, File("--output", "-o", help="Where to write the guard, as JSON.")],
    labels: Labels = None,
    score: Annotated[str | None, typer.Option(
        metavar="NAME", help="The score that decides, by its name in the catalogue.",
        show_default="total; with fewer than six classes mean_total, or for errors alone mean_least_confidence",
    )] = None,
    false_alarm_rate: Annotated[float, typer.Option(metavar="RATE", min=0, max=1,
        help="Largest share of new inputs like these to call unlike them, on average over calibration data; 0: no promise.",
    )] = 0.05,
    max_error: Annotated[float | None, NoPromise(help="Most errors among accepted inputs; needs labels.")] = None,
    max_class_error: Annotated[float | None, NoPromise(help="The same within every true class.")] = None,
    groups: Groups = None,
    confidence: Annotated[float, typer.Option(metavar="P", help="Confidence of the promises about errors.")] = 0.95,
    point: Annotated[str, typer.Option(
        metavar="intersection|mean", help="The point prediction to use.",
    )] = "intersection",
    sets: Annotated[float | None, typer.Option(metavar="ALPHA", show_default="no sets",
        help="Offer sets of classes that miss the true one with at most this probability; needs labels.",
    )] = None,
    set_method: Annotated[str, typer.Option(
        metavar="NAME", help="How sets are made: lac, aps, intersection, ...",
    )] = "lac",
    largest_set: Annotated[int, Count(help="Most classes in a set that is offered.")] = 3,
    note: Annotated[str, typer.Option(
        "--note", "--members", metavar="TEXT", help="Note on the members, kept in the file.",
    )] = "",
    recalibration: RecalibrationFile = None,
    logits: Logits = False,
    member_axis: MemberAxis = None,
    base: Base = "2",  # type: ignore[assignment]
    threads: Threads = None,
    max_bytes: MaxBytes = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Learn from calibration data which predictions to accept, and write the guard.

    The guard abstains on inputs that are unlike the calibration data. With labels it can also promise how many of the accepted
    predictions are wrong; if no threshold can promise that, the error says how far the data are from it.

    **Examples**

        credalens guard fit id.npz -o guard.json
        credalens guard fit id.npz --labels y.npy --max-error 0.02 -o guard.json
        credalens guard fit id.npz --labels y.npy --sets 0.1 --largest-set 3 -o guard.json
    """
    from credalens.guard import ConformalSets, Guard
    from credalens.storage.atomic import check_file, check_no_input
    from credalens.storage.source import wrap_chunk

    check_no_input([check_file(output)], [predictions, labels, recalibration, groups])
    columns = None if groups is None else read_groups(groups, max_bytes=max_bytes)
    source, truth = _opened(predictions, labels, logits=logits, max_bytes=max_bytes, member_axis=member_axis)
    if sets is not None and truth is None:
        raise ValueError("sets of classes need labels, the true classes of the calibration inputs.")
    options: dict[str, Any] = {"base": base, "recalibration": read_recalibration(recalibration), "threads": threads}
    prediction = wrap_chunk(source, source.read(0, source.rows), **options)
    fitted = Guard.fit(
        prediction,
        truth,
        score=score,
        false_alarm_rate=false_alarm_rate or None,
        max_error=max_error,
        max_class_error=max_class_error,
        groups=columns,
        confidence=confidence,
        point=point,
        sets=None if sets is None else ConformalSets.fit(prediction, truth, alpha=sets, method=set_method),
        largest_set=largest_set,
        note=note,
    )
    counts = _count(fitted, source, truth, columns, threads)
    fitted.save(output)
    if as_json:
        promised = [asdict(promise) for promise in fitted.promises]
        about = {"guard": str(output), "digest": fitted.digest, "promised": promised}
        typer.echo(json.dumps(about | _plain(counts, fitted)))
        return
    _print_counts(counts, "On the calibration data")
    _print_promises(fitted)
    typer.echo(escaped(f"Written to {output}"))


@guard.command(cls=OneCommand)
def check(
    guard_file: Annotated[Path, typer.Argument(metavar="GUARD", help="What `guard fit` wrote.", show_default=False)],
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="Members' predictions for other data.", show_default=False)
    ],
    labels: Labels = None,
    groups: Groups = None,
    logits: Logits = False,
    member_axis: MemberAxis = None,
    threads: Threads = None,
    max_bytes: MaxBytes = None,
    as_json: AsJson = False,
) -> None:
    """Check whether the promises of a guard hold on other data; exits with code 3 if one is broken.

    Prints every promise with the observed rate and the largest rate at which it still holds. The tests are exact: on data like
    the calibration data, a promise that holds is called broken with a probability of at most 2.5 %, luck in the calibration
    included. Promises about errors and sets need labels.

    **Examples**

        credalens guard check guard.json new.npz
        credalens guard check guard.json new.npz --labels y.npy --json
    """
    from credalens.guard import Guard

    loaded = Guard.load(guard_file)
    source, truth = _opened(predictions, labels, logits=logits, max_bytes=max_bytes, member_axis=member_axis)
    columns = None if groups is None else read_groups(groups, max_bytes=max_bytes)
    counts = _count(loaded, source, truth, columns, threads)
    if as_json:
        typer.echo(json.dumps(_plain(counts, loaded)))
    else:
        _print_counts(counts, "Here")
        _print_checks(counts, loaded)
    if not all(found.kept for found in counts.checks):
        raise typer.Exit(BROKEN)


def _opened(predictions: Path, labels: Path | None, **options: Any) -> tuple[Source, NDArray | None]:
    from credalens.storage import open_predictions
    from credalens.storage.source import Source

    stored = open_predictions(predictions, **options)
    return Source(str(stored.path), stored, stored.logits), labels_of(labels, stored, options["max_bytes"])


def _count(
    fitted: Guard, source: Source, labels: NDArray | None, groups: dict[str, Any] | None, threads: int | None
) -> DecisionCounts:
    """Count the decisions of a guard about a file, read by rows; warns once of all rows that are open."""
    from credalens.core.options import collecting_open_rows, warn_of_all
    from credalens.storage.source import wrap_chunk

    parts, columns = [], read_columns(groups, source.rows)
    with collecting_open_rows() as open_rows:
        for chunk in source.chunks():
            options: dict[str, Any] = {"base": fitted.base, "recalibration": fitted.recalibration(), "threads": threads}
            prediction = wrap_chunk(source, chunk, **options)
            rows = slice(chunk.start, chunk.start + len(chunk))
            own = {name: values[rows] for name, values in columns.items()}
            parts.append(fitted.count(prediction, None if labels is None else labels[rows], own))
    warn_of_all(open_rows, source.rows)
    return reduce(add, parts)


def _plain(counts: DecisionCounts, fitted: Guard) -> dict[str, Any]:
    checks = [{name: getattr(found, name) for name in CHECKED} for found in counts.checks]
    return {**{name: getattr(counts, name) for name in COUNTED}, "promises": checks, "blindness": fitted.blindness}


def _print_counts(counts: DecisionCounts, where: str) -> None:
    accepted = f"{counts.accepted:,} of {counts.rows:,} accepted ({counts.accepted / counts.rows:.1%})"
    offered = f", {counts.offered:,} offered as a set" if counts.offered else ""
    errors = ""
    if counts.errors is not None and counts.accepted:
        errors = f"; {count_text(counts.errors, 'error')} among the accepted ({counts.errors / counts.accepted:.2%})"
    typer.echo(f"{where}: {accepted}{offered}{errors}.")


def _print_promises(fitted: Guard) -> None:
    if fitted.false_alarm_rate is not None:
        low, high = fitted.false_alarm_range or (0.0, 1.0)
        typer.echo(
            f"Promised: calls at most {fitted.false_alarm_rate:.3g} of new inputs like these unlike the calibration data, on "
            f"average over calibration data (this guard: {low:.2g} to {high:.2g}, with 95 % probability)."
        )
    for promise in fitted.promises:
        typer.echo(
            f"Promised: {promise.name} of at most {promise.max_error:.3g} among accepted inputs, with "
            f"{promise.confidence:.3g} confidence ({promise.errors} of {promise.accepted}). {_luck(promise)}".rstrip()
        )
    if fitted.sets is not None:
        typer.echo(f"Promised: at most {fitted.sets.alpha:.3g} of the sets lack the true class.")


def _luck(promise: Promise) -> str:
    """How often calibration data would be refused such a promise, so that a lucky one is seen for what it is."""
    if promise.refused is None or promise.highest is None or promise.refused_at_highest is None:
        return ""  # of a file of an older version
    observed = promise.errors / promise.accepted
    breaks = promise.highest > promise.max_error
    broken = " and a guard that is fitted all the same breaks the promise" if breaks else ""
    return (
        f"The confidence counts calibration data that are refused as well: at the observed error rate, {observed:.2%}, that is "
        f"{promise.refused:.0%} of such data; at the highest that these allow, {promise.highest:.2%}, it is "
        f"{promise.refused_at_highest:.0%}{broken}."
    )


def _print_checks(counts: DecisionCounts, fitted: Guard) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("promise", "at most", "observed", "holds up to", "inputs", "")
    for found in counts.checks:
        observed = "–" if found.observed is None else f"{found.observed:.2%}"
        most, verdict = f"{found.holds_up_to:.2%}", "holds" if found.kept else "broken"
        table.add_row(found.name, f"{found.promised:.2%}", observed, most, f"{found.n:,}", verdict)
    Console(highlight=False).print(table)
    if fitted.blindness:
        typer.echo(fitted.blindness)
    checked = {found.name for found in counts.checks}
    columns = {promise.column for promise in fitted.promises if promise.column and promise.name not in checked}
    if columns and counts.errors is not None:
        typer.echo(escaped(f"Not checked: promises by {', '.join(sorted(columns))}; pass --groups FILE."))
    if counts.errors is None and (fitted.promises or fitted.sets):
        typer.echo("Not checked: promises about errors and sets, which need labels; pass --labels FILE.")
