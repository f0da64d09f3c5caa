"""The scripts that `make smoke-base` and its siblings run in clean environments also run here."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "smoke"
NOT_ON_WINDOWS = ("fcntl", "grp", "pwd", "resource", "termios")
BLOCKED = (
    "jinja2", "vl_convert", "PIL", "scipy", "sklearn", "matplotlib", "pyarrow", "pandas", "typer", "rich", "torch", "ray",
    "triton", "starlette", "uvicorn", "onnxruntime", "prometheus_client",
)  # fmt: skip


def test_the_numbers_need_numpy_and_numba_only_and_nothing_of_posix():
    names = BLOCKED + NOT_ON_WINDOWS
    block = f"import runpy, sys; sys.modules.update(dict.fromkeys({names}))"  # None: importing it raises ImportError
    command = f"{block}; runpy.run_path({str(SCRIPTS / 'base.py')!r}, run_name='__main__')"
    result = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("extra", ["sklearn", "report", "torch", "serve"])
def test_an_extra_does_what_its_script_asks(extra):
    runpy.run_path(str(SCRIPTS / f"{extra}.py"), run_name="__main__")
