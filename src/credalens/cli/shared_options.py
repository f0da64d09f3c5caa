"""Options that several commands share, most of them about where the work is done, and their progress bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

import typer

PANEL: Final = "Other machines"
ENGINES: Final = ("local", "ray")
PREDICTION_FILES: Final = "(members, rows, classes): .npy, .npz, .parquet or .safetensors"
File: Final = partial(typer.Option, metavar="FILE", show_default=False)
Named: Final = partial(typer.Option, show_default=False)
Count: Final = partial(typer.Option, metavar="N", min=1)
Run: Final = partial(typer.Option, rich_help_panel="Run")


def parse_base(text: str) -> float:
    """A number, or "e"."""
    try:
        return math.e if text == "e" else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor 'e'.") from None


Base = Annotated[float, typer.Option(
    parser=parse_base, metavar="NUMBER|e", help="Base of the logarithm: 2 is bits, e nats.",
)]  # fmt: skip
Logits = Annotated[bool, typer.Option("--logits", help="The predictions are logits, not probabilities.")]
MaxBytes = Annotated[int | None, Count(
    help="Most bytes that a compressed file may unfold to.", show_default="1 GiB, or 100 times its size",
    rich_help_panel="Run",
)]  # fmt: skip
MemberAxis = Annotated[int | None, typer.Option(
    metavar="0|1", min=0, max=1, show_default="0",
    help="Which axis of an array holds the members: 1 for (rows, members, classes).",
)]  # fmt: skip
RecalibrationFile = Annotated[Path | None, File(
    "--recalibration", help="Temperatures for the members, made by credalens recalibrate.",
)]  # fmt: skip
Engine = Annotated[str, typer.Option(
    metavar="local|ray", help="Where to work: in this process, or on a Ray cluster.", rich_help_panel=PANEL,
)]  # fmt: skip
Address = Annotated[str | None, Named(
    metavar="HOST:PORT", rich_help_panel=PANEL,
    help="Address of a running Ray cluster; by default $RAY_ADDRESS, or a new Ray on this machine.",
)]  # fmt: skip


def read_recalibration(path: Path | None, /) -> Any:
    """The recalibration of a file, or None."""
    if path is None:
        return None
    from credalens import Recalibration

    return Recalibration.load(path)


def check_engine(engine: str, /, **only_ray: Any) -> bool:
    """Tell whether Ray is asked for; refuse its options without it, and Ray where it is not installed."""
    if engine not in ENGINES:
        raise typer.BadParameter(f"--engine is {' or '.join(ENGINES)}, got {engine!r}.")
    if engine == "ray" and find_spec("ray") is None:
        raise typer.BadParameter("--engine ray needs Ray: pip install 'credalens[ray]'.")
    if engine == "local" and (given := [name for name, value in only_ray.items() if value is not None]):
        raise typer.BadParameter(f"--{given[0]} is for --engine ray.")
    return engine == "ray"


@contextmanager
def progress_bar(*, hidden: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function to call with what is being done, how much of it is done, and how much there is.

    A new ``what`` begins a new bar. Hidden on request, and if stderr is not a terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if hidden or not console.is_terminal:
        yield lambda what, done, of: None
        return
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks = {}
    with Progress(*columns, console=console) as progress:

        def show(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=of)
            progress.update(tasks[what], completed=done)

        yield show
