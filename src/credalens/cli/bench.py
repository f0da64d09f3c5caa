"""``credalens bench``: what the credal decomposition costs, beside averaging and beside SciPy's solver."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["bench"]

COLUMNS = (
    "C",
    "classical\n[us]",
    "ours\n[us]",
    "SLSQP\n[us]",
    "ours /\nclassical",
    "SLSQP /\nours",
    "SLSQP wrong\n> 1e-3 bit",
)


def bench(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the numbers there as JSON.", show_default=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out 1000 classes, where the solver needs a minute a sample.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Measure speed as ratios, side by side in one run, on one core.

    The classical decomposition in NumPy, the paper's way (SciPy's SLSQP for both entropies) and credalens, all in
    float64 on the same predictions of five members; and how often SLSQP's minimum is wrong.

    **Examples**

        credalens bench --quick

        credalens bench --out results/benchmark.json
    """
    from rich.console import Console
    from rich.progress import Progress

    from credalens.bench.measure import CLASSES, measure_all
    from credalens.storage import atomic_file

    classes = CLASSES[:-1] if quick else CLASSES
    with Progress(console=Console(stderr=True), transient=True, disable=as_json) as bar:
        task = bar.add_task("measuring", total=len(classes))
        measured = measure_all(classes, step=lambda _: bar.advance(task))
    text = json.dumps(measured, indent=2)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(out) as file:
            file.write(text.encode() + b"\n")
    if as_json:
        typer.echo(text)
        return
    Console().print(_table(measured))
    if out is not None:
        typer.echo(f"written to {out}")


def _table(measured: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(title=f"Uncertainty of one sample, N = {measured['members']} members, one core")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for row in measured["decomposition"]:
        table.add_row(
            f"{row['classes']}", f"{row['classical_us']:.2f}", f"{row['ours_us']:.2f}", f"{row['slsqp_us']:,.0f}",
            f"{row['ours_over_classical']:.2f}", f"{row['slsqp_over_ours']:,.0f}", f"{100 * row['slsqp_wrong_share']:.0f} %",
        )  # fmt: skip
    return table
