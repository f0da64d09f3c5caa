"""``python -m benchmarks``: what the decomposition costs beside averaging, SciPy's solver and our goals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from credalens.storage.atomic import check_file

__all__ = ["app", "bench"]

app = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)

COLUMNS = (
    "C",
    "classical,\nus",
    "ours,\nus",
    "SLSQP,\nms",
    "ours /\nclassical",
    "2 threads /\nclassical",
    "float32,\nratio",
    "SLSQP /\nours",
    "SLSQP\nwrong",
)
VERDICTS = {True: "reached", False: "[bold]not reached[/bold]", None: "not measured"}


@app.command()
def bench(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the numbers there as JSON; an older file is replaced.", show_default=False
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Leave out what takes long: 1000 classes beside the solver, start-up, five networks."
        ),
    ] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this part: decomposition, calls, decide, growth, flat, hartley, memory, score, startup, wrapper or "
            "device.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure speed as ratios, side by side in one run, and compare with the goals. Takes a few minutes.

    The classical decomposition in NumPy, the paper's way (SciPy's SLSQP for both entropies) and credalens, all in
    float64 on the same predictions of five members; how often SLSQP's minimum is wrong; how the cost grows; hard inputs,
    memory, start-up, the overhead of `CredalWrapper`, and a GPU where there is one.

    **Examples**

        python -m benchmarks --quick

        python -m benchmarks --out results/benchmark.json

        python -m benchmarks --part wrapper --part device
    """
    from rich.console import Console

    from benchmarks.measure import measure_all
    from credalens.storage import atomic_file

    if out is not None:
        check_file(out, make_folder=True)
    with _progress(hidden=as_json) as step:
        measured = measure_all(quick=quick, parts=part or (), step=step)
    text = json.dumps(measured, indent=2)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(out) as file:
            file.write(text.encode() + b"\n")
    if as_json:
        typer.echo(text)
        return
    console = Console()
    for section, table in (("decomposition", _decomposition), ("growth", _growth), ("goals", _goals)):
        if section in measured:
            console.print(table(measured))
    for line in _skipped(measured):
        console.print(line)
    console.print(f"{measured['seconds']:.0f} s, load {measured['provenance']['load_at_start']} at the start")
    if out is not None:
        typer.echo(f"written to {out}")


def _progress(*, hidden: bool) -> Any:
    """A bar that names the part being measured."""
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    @contextmanager
    def shown() -> Any:
        columns = (TextColumn("{task.description:>20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
            task = bar.add_task("")
            yield lambda what, done, of: bar.update(task, description=what, completed=done, total=of)

    return shown()


def _decomposition(measured: dict[str, Any]) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table

    caption = "SLSQP: one thread, processor time; wrong: its minimum is off by more than 1e-3 bit"
    title = f"Uncertainty of one sample, N = {measured['members']} members, one core"
    table = Table(title=title, caption=caption, box=SIMPLE, padding=(0, 0, 0, 1))
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for row in measured["decomposition"]:
        table.add_row(
            f"{row['classes']}", f"{row['classical_us']:.2f}", f"{row['ours_us']:.2f}", f"{row['slsqp_us'] / 1e3:,.1f}",
            f"{row['ours_over_classical']:.2f}", f"{row['two_threads_over_classical']:.2f}",
            f"{row['float32_ours_over_classical']:.2f}",
            f"{row['slsqp_over_ours']:,.0f}", f"{100 * row['slsqp_wrong_share']:.0f} %",
        )  # fmt: skip
    return table


def _growth(measured: dict[str, Any]) -> str:
    exponents = measured["growth"]["exponents"]
    return (
        f"cost grows as classes^{exponents['classes']:.2f} = (C log C)^{exponents['classes_log_classes']:.2f}, "
        f"rows^{exponents['rows']:.2f}, members^{exponents['members']:.2f} (fitted, peaked predictions)\n"
    )


def _goals(measured: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(title="Goals")
    for column, justify in (("goal", "left"), ("bound", "right"), ("measured", "right"), ("", "left")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for goal in measured["goals"]:
        sign = ">=" if goal["at_least"] else "<="
        value = "" if goal["value"] is None else _number(goal["value"], goal["unit"])
        table.add_row(goal["name"], f"{sign} {_number(goal['bound'], goal['unit'])}", value, VERDICTS[goal["reached"]])
    return table


def _number(value: float, unit: str) -> str:
    """Three digits and the unit, without exponents."""
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def _skipped(measured: dict[str, Any]) -> list[str]:
    """A line for everything that could not be measured here."""
    rows = [("wrapper", name, row) for name, row in measured.get("wrapper", {}).items()]
    rows += [("device", f"C = {row['classes']}", row) for row in measured.get("device", [])]
    return [f"{section}, {name}: skipped, {row['skipped']}" for section, name, row in rows if "skipped" in row]


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
