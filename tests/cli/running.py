"""The command as a user runs it, in this process."""

from __future__ import annotations

import pytest

from credalens.cli import main


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """Exit code, output and errors of ``credalens`` with these arguments."""
    with pytest.raises(SystemExit) as left:
        main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return left.value.code, out, err
