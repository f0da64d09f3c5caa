"""Progress on the terminal: one bar for each network in training."""

from __future__ import annotations

from types import TracebackType
from typing import final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from credalens_paper.training.member import Member
from credalens_paper.training.tally import Reading


@final
class Board:
    """Bars with epoch, loss, accuracy and images a second; nothing where it is switched off or nobody looks."""

    def __init__(self, *, shown: bool = True, console: Console | None = None):
        console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not shown or not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Board:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, member: Member, reading: Reading, speed: float, /) -> None:
        """Move the bar of a member."""
        key = member.spec.key
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(key, total=member.steps, text="")
        self._progress.update(self._tasks[key], completed=member.step, text=_text(member, reading, speed))


def epoch_line(member: Member, /) -> str:
    """The last finished epoch in words, for logs."""
    last = member.history[-1]
    return (
        f"{member.spec.key}: epoch {last.epoch}/{member.schedule.epochs}, loss {last.loss:.4f}, "
        f"accuracy {100 * last.accuracy:.2f} %, learning rate {last.learning_rate:.2g}, {last.seconds:.1f} s"
    )


def _text(member: Member, reading: Reading, speed: float) -> str:
    epoch = min(member.step // member.steps_per_epoch + 1, member.schedule.epochs)
    numbers = f"loss {reading.loss:.3f}  accuracy {100 * reading.accuracy:.1f} %"
    return f"epoch {epoch}/{member.schedule.epochs}  {numbers}  {speed:,.0f} img/s"
