"""The command line: parse, call one public function, print.

A command is a function of the same name in ``credalens.cli.<command>``, entered in ``COMMANDS`` of ``app.py``. Its
module imports nothing but typer at the top and the work inside the function, so that ``--help`` stays quick.
"""

from credalens.cli.app import main

__all__ = ["main"]
