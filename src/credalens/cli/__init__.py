"""The command line: parse, call one public function, print.

A command is a function of the same name in ``credalens.cli.<command>``, entered in ``COMMANDS`` of ``app.py``. Its
module imports nothing but typer at the top and the work inside the function, so that ``--help`` stays quick. Other
packages add commands through the entry points ``credalens.commands``.
"""

from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit; without the packages it needs, say which."""
    missing = [name for name in ("typer", "rich", "pyarrow") if find_spec(name) is None]
    if missing:
        raise SystemExit(f"error: the command line needs {', '.join(missing)}: pip install 'credalens[cli]'")
    try:
        from credalens.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run(args)
