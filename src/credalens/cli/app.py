"""The commands, each imported when it is asked for, and the one place that turns errors into an exit code."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from credalens.cli.errors import exit_code_of, noting_interrupts, warnings_as_lines

COMMANDS: Final[dict[str, str]] = {
    "demo": "Start here",
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
HOW_TO_INSTALL: Final = {"credalens-paper": "pip install ./reproduction in a clone of the repository"}
ADDED_BY: Final = {"train": "credalens-paper", "reproduce": "credalens-paper"}
OTHER_HEADING: Final = "Added by other packages"


class OneCommand(TyperCommand):
    """A command whose help shows no type beside a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a type."""
        return _bare_flags(super().get_params(ctx))


class OneGroup(TyperGroup):
    """The same for commands of a command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, flags without a type."""
        return _bare_flags(super().get_params(ctx))


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
    """The commands of other packages by their names."""
    return {point.name: point for point in entry_points(group=ADDED)}


def _function_of(command: str) -> Any:
    """The function behind a command: of another package, of the module of its name, or one that names what is missing."""
    added = _added()
    if command in added:
        return _loaded(added[command])
    if command in ADDED_BY:
        return _refusing(f"'{command}' needs the package {ADDED_BY[command]}: {HOW_TO_INSTALL[ADDED_BY[command]]}.")
    return getattr(importlib.import_module(f"credalens.cli.{command}"), command)


def _loaded(point: EntryPoint) -> Any:
    """The function of another package; where that is broken, the other commands still work."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.dist.name if point.dist else point.value
        return _refusing(
            f"'{point.name}' cannot be loaded: {error}. Install {package} again, of the same version as credalens, with all "
            "that it needs."
        )


def _refusing(message: str) -> Callable[..., None]:
    """A command that says why it is not there, also in the list of commands."""

    def refuse() -> None:
        raise typer.BadParameter(message)

    refuse.__doc__ = message
    return refuse


def _bare_flags(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


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


def _escape_what_cannot_be_printed() -> None:
    """A minus sign or a name that the output's encoding lacks, as in a pipe on Windows, is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 when all went well, 2 for bad input, 130 when interrupted, 1 for a defect of credalens.

    ``reproduce`` also exits with 1 when nothing could be measured and with 3 when its time limit has passed, and
    ``guard check`` with 3 when a promise is broken.
    """
    given = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in given
    _escape_what_cannot_be_printed()
    with noting_interrupts() as interrupts, warnings_as_lines():
        try:
            code = app([arg for arg in given if arg != "--debug"], prog_name="credalens", standalone_mode=False)
        except Exception as error:
            if debug:
                raise
            code = exit_code_of(typer.Abort() if interrupts else error)
    raise SystemExit(code if isinstance(code, int) else 0)
