"""``credalens score``: member predictions in a file, credal predictions out."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalens.cli.progress import progress_bar

if TYPE_CHECKING:
    from rich.table import Table

    from credalens.scoring import ScoreSummary

__all__ = ["score"]


def parse_base(text: str) -> float:
    """A number, or "e"."""
    try:
        return math.e if text == "e" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor 'e'.") from None


def score(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTIONS",
            help="Members' predictions, (members, rows, classes): .npy, .npz, .parquet or .safetensors.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="Where to write: .parquet or .npz.", show_default=False),
    ],
    logits: Annotated[bool, typer.Option("--logits", help="They are logits, not probabilities.")] = False,
    base: Annotated[
        float, typer.Option(parser=parse_base, metavar="NUMBER|e", help="Base of the logarithm: 2 is bits, e nats.")
    ] = "2",  # type: ignore[assignment]
    rule: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="Which classes stay in the set: interval_dominance, maximality, e_admissibility, gamma_maximin or "
            "gamma_maximax.",
        ),
    ] = "maximality",
    chunk_rows: Annotated[
        int | None,
        typer.Option(
            metavar="ROWS", help="Rows scored at a time; by default what fits in about 128 MB.", rich_help_panel="Run"
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads; by default all cores.", rich_help_panel="Run")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Drop what an unfinished run has left.", rich_help_panel="Run")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON and no progress bar.", rich_help_panel="Run")
    ] = False,
) -> None:
    """Score saved predictions: intersection probability, bounds, uncertainty, label and set of each row.

    The file may be larger than memory. A run that is interrupted or killed goes on where it stopped when the same
    command is given again; OUT appears only when it is whole.

    **Examples**

        credalens score members.npy -o scored.parquet
        credalens score logits.safetensors --logits --base e -o scored.npz
        credalens score members.parquet -o scored.parquet --rule interval_dominance --json
    """
    from credalens.scoring import score_file

    begin = time.perf_counter()
    try:
        with progress_bar(hidden=as_json) as progress:
            summary = score_file(
                predictions,
                output,
                logits=logits,
                base=base,
                rule=rule,
                chunk_rows=chunk_rows,
                threads=threads,
                restart=restart,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on from here when it is given again.", err=True)
        raise typer.Exit(130) from None
    seconds = time.perf_counter() - begin
    if as_json:
        typer.echo(json.dumps({**summary.as_dict(), "seconds": round(seconds, 3)}))
    else:
        _print(summary, seconds)


def _print(summary: ScoreSummary, seconds: float) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    rows = f"{summary.rows:,} rows of {summary.members} members and {summary.classes} classes in {seconds:.1f} s"
    resumed = f", {summary.resumed_rows:,} of them by an earlier run" if summary.resumed_rows else ""
    loaded = " A compressed .npz cannot be read in part and was loaded whole." if "whole" in summary.access else ""
    console.print(f"Scored {rows}{resumed}.{loaded}")
    console.print(_table(summary))
    console.print(
        f"Set ({summary.rule}): {summary.mean_set_size:.2f} classes on average, a single one in "
        f"{summary.determinacy:.1%} of the rows."
    )
    console.print(f"Written to {summary.output}", soft_wrap=True, markup=False)


def _table(summary: ScoreSummary) -> Table:
    from rich.table import Table

    unit = {2.0: "bits", math.e: "nats"}.get(summary.base, f"base {summary.base:g}")
    table = Table(title=f"Mean uncertainty ({unit})", title_justify="left")
    table.add_column("")
    for name in ("total", "aleatoric", "epistemic"):
        table.add_column(name, justify="right")
    for label, prefix in (("credal", ""), ("averaging", "classical_")):
        values = (summary.means[prefix + name] for name in ("total", "aleatoric", "epistemic"))
        table.add_row(label, *(f"{value:.4f}" for value in values))
    return table
