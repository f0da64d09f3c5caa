"""The training loop: several networks side by side on one device, their steps interleaved."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, final

import torch

from credalens_paper.training.member import Member
from credalens_paper.training.progress import Board, epoch_line

LOOK: Final = 1.0
"""Seconds between two looks at the loss of a member, each of which waits for the device."""


@final
class Lane:
    """A place on the device where one member trains: its stream, its checkpoints, its line on the board.

    ``start`` makes the member, ``save`` stores its state and ``finish`` the trained network.
    """

    def __init__(
        self,
        start: Callable[[], Member],
        save: Callable[[Member], None],
        finish: Callable[[Member], None],
        device: torch.device,
        /,
    ):
        self._save, self._finish = save, finish
        self._stream = _new_stream(device)
        with self.stream():
            self.member = start()
        self._first, self._began = self.member.step, time.perf_counter()
        self._saved = self._looked = self._began

    def stream(self) -> AbstractContextManager[object]:
        """The context in which this member's work is queued; other lanes do not wait for it."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def advance(self, board: Board, log: Callable[[str], None] | None, save_every: float, /) -> bool:
        """One step, and now and then a look and a checkpoint; whether there is more to do."""
        with self.stream():
            epochs = len(self.member.history)
            self.member.advance()
            if log is not None and len(self.member.history) > epochs:
                log(epoch_line(self.member))
            if self.member.finished:
                self._finish(self.member)
            elif time.perf_counter() - self._saved >= save_every:
                self.save()
            self._look(board)
        return not self.member.finished

    def save(self) -> None:
        """Store a checkpoint."""
        with self.stream():
            self._save(self.member)
        self._saved = time.perf_counter()

    def _look(self, board: Board) -> None:
        now = time.perf_counter()
        if not self.member.finished and now - self._looked < LOOK:
            return
        images = (self.member.step - self._first) * self.member.schedule.batch
        board.show(self.member, self.member.latest(), images / (now - self._began))
        self._looked = now


def _new_stream(device: torch.device) -> torch.cuda.Stream | None:
    if device.type != "cuda":
        return None
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))  # the images may still be on their way
    return stream


def train_side_by_side(
    starts: Iterable[Callable[[], Lane]],
    /,
    *,
    at_once: int,
    board: Board,
    log: Callable[[str], None] | None,
    save_every: float,
) -> None:
    """Train all members, ``at_once`` of them at a time, step by step in turn.

    Members share nothing that changes, so each becomes what it would have become alone. When one fails, the others
    are stored where they are.
    """
    waiting, lanes = deque(starts), list[Lane]()
    while waiting or lanes:
        while waiting and len(lanes) < at_once:
            lanes.append(waiting.popleft()())
        for lane in tuple(lanes):
            try:
                more = lane.advance(board, log, save_every)
            except BaseException as error:
                error.add_note(f"While training {lane.member.spec.key}, step {lane.member.step}.")
                _save_all(other for other in lanes if other is not lane)
                raise
            if not more:
                lanes.remove(lane)


def _save_all(lanes: Iterable[Lane]) -> None:
    for lane in lanes:
        with suppress(OSError, FloatingPointError):  # the first error is the one to report
            lane.save()
