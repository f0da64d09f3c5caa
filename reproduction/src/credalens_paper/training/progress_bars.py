"""Progress on the terminal: one bar for each network in training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from credalens_paper.training.learner import Learner

Show = Callable[[Learner, float], None]
"""Moves the bar of a learner, given the images that it trains on in a second."""


@contextmanager
def progress_bars(*, hidden: bool = False) -> Iterator[Show]:
    """Bars with epoch, loss, accuracy and images a second; hidden on request and if stderr is not a terminal."""
    console = Console(stderr=True)
    text = TextColumn("{task.fields[text]}")
    columns = TextColumn("{task.description}"), BarColumn(bar_width=24), text, TimeRemainingColumn(compact=True)
    tasks = {}
    with Progress(*columns, console=console, disable=hidden or not console.is_terminal) as progress:

        def show(learner: Learner, speed: float) -> None:
            key = learner.spec.key
            if key not in tasks:
                tasks[key] = progress.add_task(key, total=learner.steps, text="")
            progress.update(tasks[key], completed=learner.step, text=_numbers(learner, speed))

        yield show


def epoch_line(learner: Learner, /) -> str:
    """The last finished epoch in words, for logs."""
    last = learner.history[-1]
    return (
        f"{learner.spec.key}: epoch {last.epoch}/{learner.schedule.epochs}, loss {last.loss:.4f}, "
        f"accuracy {100 * last.accuracy:.2f} %, learning rate {last.learning_rate:.2g}, {last.seconds:.1f} s"
    )


def _numbers(learner: Learner, speed: float) -> str:
    epochs, (loss, accuracy) = learner.schedule.epochs, learner.averages()
    epoch = min(learner.step // learner.steps_per_epoch + 1, epochs)
    return f"epoch {epoch}/{epochs}  loss {loss:.3f}  accuracy {100 * accuracy:.1f} %  {speed:,.0f} img/s"
