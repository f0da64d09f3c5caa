"""What an error means on the command line: one clear line on stderr and an exit code."""

from __future__ import annotations

import typer

__all__ = ["BAD_INPUT", "DEFECT", "exit_code_of"]

BAD_INPUT, DEFECT = 2, 1
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
    if isinstance(error, MemoryError):
        return _say("out of memory; use fewer rows at a time (--chunk-rows).", BAD_INPUT)
    if isinstance(error, ModuleNotFoundError):
        return _say(f"{error}; install what this command needs: pip install 'credalens[paper]'.", BAD_INPUT)
    return _say(f"{type(error).__name__}: {error}. This is a defect of credalens; --debug shows where.", DEFECT)


def _hint(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"Try '{context.command_path} --help'." if context is not None else ""


def _say(message: str, code: int) -> int:
    typer.secho("error: ", fg=typer.colors.RED, bold=True, nl=False, err=True)
    typer.echo(" ".join(message.split()), err=True)
    return code
