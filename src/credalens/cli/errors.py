"""What an error, a warning or Ctrl-C means on the command line: one clear line on stderr, and an exit code."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from credalens.checks.options import escaped


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Gives a list that is empty until Ctrl-C is pressed. Another handler than Python's own is left in place."""
    noted: list[int] = []
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


BAD_INPUT, DEFECT = 2, 1
OUT_OF_MEMORY = (
    "out of memory; do less at a time: fewer rows (score --chunk-rows), fewer networks (--side-by-side), narrower ones "
    "(train --width) or smaller images (train --size)"
)
# Newer releases of typer carry a click of their own, older ones import it: BadParameter's base is right for both.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def exit_code_of(error: Exception, /) -> int:
    """Say on one line what is wrong, and with which code to leave."""
    if isinstance(error, typer.Abort):
        return _say("interrupted.", 130)
    if isinstance(error, UsageError):
        message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
        return _say(f"{message}{'' if message.endswith('?') else '.'} {_hint(error)}", BAD_INPUT)
    if isinstance(error, OSError) and error.strerror:
        return _say(f"{error.strerror}: {error.filename}" if error.filename else error.strerror, BAD_INPUT)
    if isinstance(error, ValueError | TypeError | OSError):
        return _say(str(error), BAD_INPUT)
    if _out_of_memory(error):
        detail = f" ({type(error).__name__}: {error})" if str(error) else ""
        return _say(f"{OUT_OF_MEMORY}{detail}.", BAD_INPUT)
    if isinstance(error, ModuleNotFoundError):
        return _say(f"{error}; install what this command needs: pip install 'credalens[all]'.", BAD_INPUT)
    if isinstance(error, ImportError) and "pip install" in str(error):
        return _say(f"{error}.", BAD_INPUT)
    return _say(f"{type(error).__name__}: {error}. This is a defect of credalens; --debug shows where.", DEFECT)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show warnings without the place in the code, which is ours and not the user's."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _line("warning: ", typer.colors.YELLOW, str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _out_of_memory(error: Exception) -> bool:
    """Of this process or of a GPU; torch raises a RuntimeError for both, by a name of its own for the GPU alone."""
    if isinstance(error, RuntimeError):
        return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError)


def _hint(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"Try '{context.command_path} --help'." if context is not None else ""


def _say(message: str, code: int) -> int:
    _line("error: ", typer.colors.RED, message)
    return code


def _line(kind: str, colour: str, message: str) -> None:
    typer.secho(kind, fg=colour, bold=True, nl=False, err=True)
    typer.echo(escaped(" ".join(message.split())), err=True)
