"""``credalens score``: member predictions in a file or in folders of Parquet, credal predictions out."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from credalens.checks.options import count_text, escaped
from credalens.cli.shared_options import (
    PANEL,
    PREDICTION_FILES,
    Address,
    Base,
    Count,
    Engine,
    File,
    Logits,
    MaxBytes,
    MemberAxis,
    RecalibrationFile,
    Run,
    check_engine,
    progress_bar,
    read_recalibration,
)  # fmt: skip

if TYPE_CHECKING:
    from credalens.scoring import FolderSummary, ScoreSummary

Folders: Final = partial(typer.Option, rich_help_panel="Folders")


def score(
    predictions: Annotated[list[str], typer.Argument(metavar="PREDICTIONS", show_default=False,
        help=f"Members' predictions, {PREDICTION_FILES}; or a folder of Parquet "
        "files; or several folders, one for each model, with the same row ids.",
    )],
    output: Annotated[str, typer.Option("--output", "-o", metavar="OUT", show_default=False,
        help="Where to write: a .parquet or .npz file, or a folder if the input is one. An older file is replaced, but never "
        "the input.",
    )],
    logits: Logits = False,
    member_axis: MemberAxis = None,
    base: Base = "2",  # type: ignore[assignment]
    rule: Annotated[str, typer.Option(metavar="RULE",
        help="Which classes stay in the set: interval_dominance, maximality, e_admissibility, gamma_maximin or gamma_maximax.",
    )] = "maximality",
    scores: Annotated[str | None, typer.Option(
        metavar="NAME,...", show_default="total, aleatoric and epistemic, of credal sets and of averaging",
        help="Scores to write, by their names in the catalogue: total, epistemic, imprecision, hartley, mean_total, ...",
    )] = None,
    guard: Annotated[Path | None, File(help="Guard that decides about every row, made by credalens guard fit.")] = None,
    recalibration: RecalibrationFile = None,
    chunk_rows: Annotated[int | None, Run(
        metavar="ROWS", min=1, help="Rows scored at a time; by default what fits in about 128 MB.",
    )] = None,
    threads: Annotated[int | None, Count(
        help="Threads; by default all cores, on Ray 1 for each part.", rich_help_panel="Run",
    )] = None,
    max_bytes: MaxBytes = None,
    restart: Annotated[bool, Folders("--restart", help="Discard what an earlier run has left.")] = False,
    as_json: Annotated[bool, Run("--json", help="Print the summary as JSON, without a progress bar.")] = False,
    row_id: Annotated[str | None, Folders(
        "--id", metavar="COLUMN", help="Column of row ids, kept in the output; needed for several folders.",
        show_default="id for several folders, else none",
    )] = None,
    on_error: Annotated[str | None, Folders(metavar="fail|skip", show_default="fail",
        help="Stop at a part that is damaged or has a bad row, or skip the part.",
    )] = None,
    join: Annotated[str | None, Folders(metavar="exact|first", show_default="exact",
        help="exact: all folders have the same ids, each once; first: the rows are those of the first folder.",
    )] = None,
    engine: Engine = "local",
    address: Address = None,
    workers: Annotated[int | None, Count(
        help="Parts to score at a time.", show_default="all CPUs", rich_help_panel=PANEL,
    )] = None,
) -> None:  # fmt: skip
    """Score saved predictions: predicted class, intersection probability, bounds, set and uncertainty of each row.

    The input may be larger than memory. A file appears only when it is complete: a run that was interrupted or killed begins
    anew. A folder gets one complete part for each file of the input, and the same command resumes after the last of them.
    Paths of folders may be addresses such as s3://bucket/folder. Labels in the input are kept in the column label. A guard
    adds its decision, the p-value of being like its calibration data, the reason and, if it has sets, the set of classes.

    **Examples**

        credalens score members.npy -o scored.parquet
        credalens score logits.safetensors --logits --base e -o scored.npz
        credalens score members.parquet -o scored.parquet --rule interval_dominance --json
        credalens score members.npz -o scored.parquet --scores total,imprecision,mean_total
        credalens score members.npz -o scored.parquet --guard guard.json
        credalens score members/ -o scored/ --engine ray --on-error skip
        credalens score model_a/ model_b/ model_c/ -o scored/ --id image --engine ray --address head:6379
    """
    on_ray = check_engine(engine, address=address, workers=workers)
    folders = on_ray or len(predictions) > 1 or "://" in predictions[0] or Path(predictions[0]).is_dir()
    options: dict[str, Any] = {
        "logits": logits, "base": base, "rule": rule, "chunk_rows": chunk_rows, "threads": threads, "max_bytes": max_bytes,
    }  # fmt: skip
    if scores is not None:
        options["scores"] = [name.strip() for name in scores.split(",")]
    if guard is not None:
        from credalens.guard import Guard
        from credalens.storage.atomic import check_no_input

        check_no_input([] if "://" in output else [output], [guard])
        options["guard"] = Guard.load(guard)
    if recalibration is not None:
        options["recalibration"] = read_recalibration(recalibration)
    if folders and member_axis is not None:
        raise typer.BadParameter("--member-axis is for arrays; Parquet files always have one row for each input.")
    if not folders and (row_id, on_error, join) != (None, None, None):
        raise typer.BadParameter(
            f"--id, --on-error and --join are for folders of Parquet files; {predictions[0]} is not one."
        )
    if not folders and Path(output).is_dir():
        raise IsADirectoryError(
            f"cannot write {output}: it is a folder, and the input is a single file; for {Path(predictions[0]).name} "
            "name a .parquet or .npz file."
        )
    from credalens.scoring import score_file, score_folder

    run: Callable[..., Any] = score_folder if folders else partial(score_file, member_axis=member_axis)
    if folders:
        options |= {"id_column": row_id, "on_error": on_error or "fail", "join": join or "exact", "restart": restart}
    if on_ray:
        from credalens.engines import score_folder_on_ray as run

        options |= {"address": address, "workers": workers, "threads": 1 if threads is None else threads}
    begin = time.perf_counter()
    try:
        with progress_bar(hidden=as_json) as progress:
            summary = run(predictions if folders else predictions[0], output, progress=progress, **options)
    except KeyboardInterrupt:
        again = "to resume" if folders else "to begin anew"
        typer.echo(f"interrupted; give the same command again {again}.", err=True)
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - begin
    if as_json:
        typer.echo(json.dumps({**summary.as_dict(), "seconds": round(seconds, 3)}))
        return
    _print_scores(summary.scores if folders else summary, seconds)
    if folders:
        _print_work(summary)


def _print_scores(summary: ScoreSummary, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    from credalens.core.scores import SCORES

    console = Console(highlight=False)
    members, rows = count_text(summary.members, "member"), count_text(summary.rows, "row")
    resumed = f", {summary.resumed_rows:,} of them by an earlier run" if summary.resumed_rows else ""
    loaded = " A compressed .npz cannot be read in part and was loaded whole." if "whole" in summary.access else ""
    console.print(f"Scored {rows} of {members} and {summary.classes} classes in {seconds:.1f} s{resumed}.{loaded}")
    bits = {2.0: "bits", math.e: "nats"}.get(summary.base, f"base {summary.base:g}")
    units = {"information": bits, "probability": ""}
    table = Table(title="Mean of each score", title_justify="left")
    table.add_column("column", overflow="fold")  # a name is typed again: never shortened
    table.add_column("score")
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    for score, mean in ((SCORES[name], mean) for name, mean in summary.means.items()):
        table.add_row(score.name, score.label, f"{mean:.4f}", units.get(score.unit, score.unit))
    console.print(table)
    console.print(
        f"Set ({summary.rule}): {summary.mean_set_size:.2f} classes on average, a single one in "
        f"{summary.determinacy:.1%} of the rows."
    )
    if summary.decisions is not None:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in summary.decisions.items())
        console.print(f"Guard: {shares} of the rows.")
    console.print(escaped(f"Written to {summary.output}"), soft_wrap=True, markup=False)


def _print_work(summary: FolderSummary) -> None:
    speed = "" if summary.rows_a_second is None else f", {summary.rows_a_second:,.0f} rows a second for each worker"
    earlier = f", {summary.resumed_parts} of them by an earlier run" if summary.resumed_parts else ""
    parts, workers = count_text(summary.parts, "part"), count_text(summary.workers, "worker")
    typer.echo(f"{parts}{earlier}; {workers}{speed}; {count_text(summary.retries, 'retry', 'retries')}.")
    if summary.repeated_ids:
        typer.echo(f"{count_text(summary.repeated_ids, 'row')} with the id of an earlier row.", err=True)
    for table, rows in summary.left_out_rows.items():
        line = f"left out: {count_text(rows, 'row')} of {table} that the first table does not have."
        typer.echo(escaped(line), err=True)
    for skipped in summary.skipped:
        typer.echo(escaped(f"left out: {skipped.error}"), err=True)
