"""The commands, each imported when it is asked for, and the one place that turns errors into a line and an exit code."""

from __future__ import annotations

import importlib
import io
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from types import FrameType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from credalens.checks.options import escaped

COMMANDS: Final[dict[str, str]] = {
    "demo": "Start here",
    "recalibrate": "Work with predictions",
    "score": "Work with predictions",
    "evaluate": "Work with predictions",
    "guard": "Work with predictions",
    "serve": "Work with predictions",
    "train": "Train and reproduce",
    "reproduce": "Train and reproduce",
}
"""Every command and the heading it stands under in the help; ``score`` is the function ``score`` of ``cli/score.py``."""

ADDED: Final = "credalens.commands"
"""The entry points by which other packages add commands: ``train = "package.module:function"``."""
FROM_PAPER: Final = ("train", "reproduce")
OTHER_HEADING: Final = "Added by other packages"


class BareFlags:
    """Shows no type beside a flag in the help, since a flag takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a type."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class OneCommand(BareFlags, TyperCommand):
    """A command of credalens."""


class OneGroup(BareFlags, TyperGroup):
    """A command of commands."""


class LazyCommands(OneGroup):
    """Finds a command in the module of its name, and imports that module only then."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant, or the name of the one that may be meant."""
        names = self.list_commands(ctx)
        if args[0] not in names and (close := get_close_matches(args[0], names, n=1)):
            ctx.fail(f"No such command {args[0]!r}; did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the table, then those that other packages add."""
        return [*COMMANDS, *(name for name in _added() if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name not in self.list_commands(ctx):
            return None
        single = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        heading = COMMANDS.get(cmd_name, OTHER_HEADING)
        function = _function_of(cmd_name)
        if isinstance(function, typer.Typer):  # a command of commands
            single.add_typer(function, name=cmd_name, rich_help_panel=heading)
            single.callback()(lambda: None)
            return typer.main.get_command(single).commands[cmd_name]  # type: ignore[attr-defined]
        takes_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        settings = takes_anything if function.__module__ == __name__ else None  # one that only says what is missing
        single.command(cmd_name, cls=OneCommand, rich_help_panel=heading, context_settings=settings)(function)
        return typer.main.get_command(single)


def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ADDED)}


def _function_of(command: str) -> Any:
    """The function behind a command: of another package, of the module of its name, or one that names what is missing."""
    if (point := _added().get(command)) is not None:
        try:
            return point.load()
        except (ImportError, AttributeError) as error:  # the other commands still work
            package = point.dist.name if point.dist else point.value
            return _refusing(
                f"'{command}' cannot be loaded: {error}. Install {package} again, of the same version as credalens, with all "
                "that it needs."
            )
    if command in FROM_PAPER:
        how = "pip install ./reproduction in a clone of the repository"
        return _refusing(f"'{command}' needs the package credalens-paper: {how}.")
    return getattr(importlib.import_module(f"credalens.cli.{command}"), command)


def _refusing(message: str) -> Callable[..., None]:
    """A command that says why it is not there, also in the list of commands."""

    def refuse() -> None:
        raise typer.BadParameter(message)

    refuse.__doc__ = message
    return refuse


app = typer.Typer(cls=LazyCommands, rich_markup_mode="markdown", pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        from credalens import __version__

        typer.echo(f"credalens {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def credalens(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    """Certified credal uncertainty for classifiers you already have.

    Reads the predictions of the members of an ensemble, the samples of a Bayesian network or the passes of MC-dropout, and
    computes probability intervals, a point prediction and total, aleatoric and epistemic uncertainty.

    Every command has a help page with examples: `credalens score --help`.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 when all went well, 2 for bad input, 130 when interrupted, 1 for a defect of credalens.

    ``reproduce`` also exits with 1 when nothing could be measured and with 3 when its time limit has passed, and
    ``guard check`` with 3 when a promise is broken.
    """
    given = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in given
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that a pipe on Windows cannot encode is no failure
            stream.reconfigure(errors="backslashreplace")
    with noting_interrupts() as interrupts, warnings_as_lines():
        try:
            code = app([arg for arg in given if arg != "--debug"], prog_name="credalens", standalone_mode=False)
        except Exception as error:
            if debug:
                raise
            code = exit_code_of(typer.Abort() if interrupts else error)
    raise SystemExit(code if isinstance(code, int) else 0)


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


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show warnings without the place in the code, which is ours and not the user's."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _line("warning: ", typer.colors.YELLOW, str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


BAD_INPUT, DEFECT = 2, 1
OUT_OF_MEMORY = (
    "out of memory; do less at a time: fewer rows (score --chunk-rows), fewer networks (--side-by-side), narrower ones "
    "(train --width) or smaller images (train --size)"
)
# Newer releases of typer carry a click of their own, older ones import it: BadParameter's base is right for both.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def exit_code_of(error: Exception, /) -> int:
    """Say on one line what is wrong, and with which code to leave."""
    code, message = BAD_INPUT, str(error)
    if isinstance(error, typer.Abort):
        code, message = 130, "interrupted."
    elif isinstance(error, UsageError):
        context, text = getattr(error, "ctx", None), error.format_message().rstrip(".")  # type: ignore[attr-defined]
        hint = f"Try '{context.command_path} --help'." if context is not None else ""
        message = f"{text}{'' if text.endswith('?') else '.'} {hint}"
    elif isinstance(error, OSError) and error.strerror:
        message = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    elif _out_of_memory(error):
        message = f"{OUT_OF_MEMORY}{f' ({type(error).__name__}: {error})' if message else ''}."
    elif isinstance(error, ModuleNotFoundError):
        message = f"{error}; install what this command needs: pip install 'credalens[all]'."
    elif isinstance(error, ImportError) and "pip install" in message:
        message = f"{error}."
    elif not isinstance(error, ValueError | TypeError | OSError):
        code, message = DEFECT, f"{type(error).__name__}: {error}. This is a defect of credalens; --debug shows where."
    _line("error: ", typer.colors.RED, message)
    return code


def _out_of_memory(error: Exception) -> bool:
    """Of this process or of a GPU; torch raises a RuntimeError for both, by a name of its own for the GPU alone."""
    if isinstance(error, RuntimeError):
        return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError)


def _line(kind: str, colour: str, message: str) -> None:
    typer.secho(kind, fg=colour, bold=True, nl=False, err=True)
    typer.echo(escaped(" ".join(message.split())), err=True)
