"""Nothing leaves the machine: no statistics of the packages that we import, no socket, no file below the home folder."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from credalens.checks.options import TELEMETRY

ROOT = Path(__file__).parents[1]
SOURCES = [
    path for room in ("src", "reproduction/src", "examples", "benchmarks") for path in (ROOT / room).rglob("*.py")
]
KEPT = ("PATH", "PYTHONPATH", "SYSTEMROOT", "TEMP", "TMP", "NUMBA_CACHE_DIR")
"""The rest of the environment may switch telemetry off by itself, as CI and PYTEST_CURRENT_TEST do."""

# No socket of Python may go further than this machine, and the names of other machines are not looked up.
ALONE = """
import sys
def refuse(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"):
        raise SystemExit(f"{event} {args}")
sys.addaudithook(refuse)
"""
MEMBERS = """
import os, sys
from pathlib import Path
import numpy as np
from tests.serve.onnx_files import write_linear
from credalens.serve.onnx_members import onnx_members
assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
paths = [write_linear(Path(f"{n}.onnx"), np.eye(3) * n) for n in range(2)]
onnx_members(paths).predict({"x": np.eye(3, dtype="f")})
"""
REGISTRY = f"""
{MEMBERS}
from credalens.mlflow import save_model
save_model(paths, "model", input_example=np.eye(3, dtype="f"))
import mlflow.pyfunc
mlflow.pyfunc.load_model("model").predict(np.eye(3, dtype="f"))
assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
"""
COMMANDS = """
import numpy as np
from credalens.cli import main
p = np.random.default_rng(0).dirichlet(np.ones(3), (3, 40))
np.save("p.npy", p)
np.save("y.npy", p.mean(0).argmax(1))
for command in (
    "evaluate --id p.npy --labels y.npy --ood same=p.npy -o report",
    "score p.npy -o scored.parquet",
    "guard fit p.npy -o g.json",
):
    sys.argv = ["credalens", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""


def traced(command, folder):
    """The command under strace, which also sees the sockets of compiled code, where there is a strace that may trace."""
    probe = [
        shutil.which("strace") or "strace",
        "-f",
        "-qq",
        "-e",
        "trace=connect,sendto,sendmsg,sendmmsg",
        "-o",
        folder / "trace",
    ]
    works = (
        shutil.which("strace") and subprocess.run([*probe, shutil.which("true")], capture_output=True).returncode == 0
    )
    return [*probe, *command] if works else command


@pytest.mark.parametrize(
    ("code", "packages"),
    [
        (MEMBERS, ("onnx", "onnxruntime")),
        (REGISTRY, ("onnx", "onnxruntime", "mlflow")),
        (COMMANDS, ("typer", "vl_convert")),
    ],
    ids=["members", "mlflow", "commands"],
)
def test_nothing_leaves_the_machine(tmp_path, code, packages):
    for package in packages:
        pytest.importorskip(package)
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    places = {"HOME": home, "USERPROFILE": home, "APPDATA": home, "LOCALAPPDATA": home, "MPLCONFIGDIR": work}
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {
        k: str(v) for k, v in places.items()
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), environment.get("PYTHONPATH", "")])
    command = traced([sys.executable, "-W", "ignore", "-c", ALONE + code], tmp_path)
    result = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert [path for path in home.rglob("*") if path.is_file()] == []
    if command[0] != sys.executable:
        calls = (tmp_path / "trace").read_text().splitlines()
        assert [call for call in calls if "AF_INET" in call] == []


def test_telemetry_is_off_before_every_import():
    """Packages that send statistics are imported within ``with needing(...)`` only."""
    assert [line for path in SOURCES for line in imports_with_telemetry(path)] == []


def imports_with_telemetry(path):
    tree = ast.parse(path.read_text("utf-8"))
    needing = [x for x in ast.walk(tree) if isinstance(x, ast.With) and "needing(" in ast.unparse(x.items[0])]
    safe = {id(node) for block in needing for node in ast.walk(block)}
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if id(node) not in safe and any(name.partition(".")[0] in TELEMETRY for name in names):
            yield f"{path}:{node.lineno}"
