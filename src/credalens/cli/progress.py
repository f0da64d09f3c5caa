"""A progress bar on stderr for long work; none if stderr is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
