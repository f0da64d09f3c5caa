"""The command line as a whole: help, version, errors on one line, nothing heavy imported."""

from __future__ import annotations

import errno
import io
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import numpy as np
import pytest
import torch
import typer

import credalens
from credalens.cli import main
from credalens.cli.app import COMMANDS, exit_code_of
from credalens.cli.shared_options import PREDICTION_FILES
from credalens.storage import save_predictions
from credalens.storage.formats.files import ALL_FORMATS
from tests.cli.running import run
from tests.strategies import batch_of


def test_the_help_names_every_command(capsys):
    for args in ((), ("--help",)):
        code, out, err = run(capsys, *args)
        assert (code, err) == (0, "")
        assert all(command in out for command in COMMANDS)
        assert "--version" in out


def test_the_help_of_files_of_predictions_names_every_format():
    *others, last = ALL_FORMATS
    assert PREDICTION_FILES.endswith(f": {', '.join(others)} or {last}")


def test_a_command_of_commands_shows_its_help_too(capsys):
    code, out, err = run(capsys, "guard")
    assert (code, err) == (0, "")
    assert "credalens guard check guard.json" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"credalens {command} " in out.split("Examples", 1)[1]
    assert "bool" not in out.lower()  # a flag takes no value


def test_other_packages_add_commands_by_entry_points():
    added = {point.name: point.value for point in entry_points(group="credalens.commands")}
    assert {"train", "reproduce"} <= added.keys()
    assert all(value.startswith("credalens_paper.") for value in added.values())


@pytest.mark.parametrize("command", ["train", "reproduce"])
def test_a_command_of_a_package_that_is_not_installed_says_how_to_install_it(capsys, monkeypatch, command):
    monkeypatch.setattr("credalens.cli.app._added", dict)
    for options in ((), ("--preset", "smoke"), ("OODMain", "--data-folder", "data")):
        code, out, err = run(capsys, command, *options)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "credalens-paper" in err
        assert "pip install ./reproduction" in err


def test_a_broken_package_does_not_hide_the_other_commands(capsys, monkeypatch):
    broken = EntryPoint("train", "credalens_paper.no_such_module:train", "credalens.commands")
    monkeypatch.setattr("credalens.cli.app._added", lambda: {"train": broken})
    code, out, _ = run(capsys, "--help")
    assert (code, "evaluate" in out, "cannot be loaded" in " ".join(out.split())) == (0, True, True)
    code, out, err = run(capsys, "train", "--data", "digits")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "No module named 'credalens_paper.no_such_module'" in err


def test_the_version(capsys):
    assert run(capsys, "--version") == (0, f"credalens {credalens.__version__}\n", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nothing"], "No such command 'nothing'."),
        (["scor"], "No such command 'scor'; did you mean 'score'? Try"),
        (["--nothing"], "No such option"),
        (["score"], "Missing argument 'PREDICTIONS'"),
        (["score", "a.npy"], "Missing option"),
        (["score", "a.npy", "-o", "b.npz", "--base", "x"], "'x' is neither a number nor 'e'"),
        (["score", "a.npy", "-o", "b.npz", "--chunk-rows", "x"], "Invalid value for '--chunk-rows'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, args, message):
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert "--help" in err


COUNTS = {
    ("score", "x.npy", "-o", "y.npz"): ["--chunk-rows", "--threads", "--workers"],
    ("evaluate", "--id", "x.npz", "-o", "y"): ["--bins", "--replicates", "--threads"],
    ("train", "--data", "digits"): ["--members", "--samples", "--epochs", "--size", "--side-by-side", "--cpus"],
    ("reproduce", "PIA"): [
        "--threads", "--side-by-side", "--cpus", "--members", "--many-members", "--runs", "--bnn-runs", "--edd-runs",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "option"),
    [(call, option) for call, options in COUNTS.items() for option in options],
    ids=lambda one: one[:9],
)
def test_no_work_begins_with_a_number_that_is_too_small(capsys, call, option):
    """Refused by the parser, whatever the rest of the call is about; the help shows the least value."""
    code, out, err = run(capsys, *call, option, 0)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(
        f"error: Invalid value for '{option}': "
    )  # the rest is typer's, and differs from release to release


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("what\n  was wrong"), 2, "error: what was wrong\n"),
        (TypeError("a type"), 2, "error: a type\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "error: No space left on device\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "error: Permission denied: /x\n"),
        (FileNotFoundError("a.npy: no such file."), 2, "error: a.npy: no such file.\n"),
        (ModuleNotFoundError("No module named 'torch'"), 2, "error: No module named 'torch'; install"),
        (MemoryError(), 2, "error: out of memory; do less at a time: fewer rows (score --chunk-rows)"),
        (torch.cuda.OutOfMemoryError("CUDA out of memory"), 2, "error: out of memory; do less at a time"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: 6 TB"),
            2,
            "error: out of memory; do less at a time",
        ),
        (RuntimeError("shapes do not fit"), 1, "error: RuntimeError: shapes do not fit. This is a defect"),
        (typer.Abort(), 130, "error: interrupted.\n"),
        (
            ZeroDivisionError("oh"),
            1,
            "error: ZeroDivisionError: oh. This is a defect of credalens; --debug shows where.",
        ),
    ],
)
def test_what_errors_mean(capsys, error, code, message):
    assert exit_code_of(error) == code
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("6 TB")])
def test_what_to_do_without_memory_is_a_whole_sentence(capsys, error):
    exit_code_of(error)
    end = " (MemoryError: 6 TB)" * bool(str(error))
    assert capsys.readouterr().err.endswith(f"smaller images (train --size){end}.\n")


def test_debug_shows_the_traceback_wherever_it_stands():
    for args in (
        ["--debug", "score", "absent.npy", "-o", "out.npz"],
        ["score", "absent.npy", "-o", "out.npz", "--debug"],
    ):
        with pytest.raises(FileNotFoundError, match="no such file"):
            main(args)


def test_the_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from credalens.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'matplotlib', 'pandas', 'pyarrow', 'numba', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["credalens", "credalens.cli"])
def test_it_runs_as_a_module(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"credalens {credalens.__version__}\n"
    failed = subprocess.run([sys.executable, "-m", module, "scor"], capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "did you mean 'score'? Try 'credalens --help'" in failed.stderr


def test_what_the_output_cannot_show_is_escaped(tmp_path, monkeypatch):
    """As in a pipe on Windows, whose encoding has no minus sign and few letters."""
    (tmp_path / "classes.txt").write_text("α\nβ\nγ\n", encoding="utf-8")
    save_predictions(tmp_path / "id.npz", batch_of("mixed", 3, 40, 3), np.arange(40) % 3)
    options = ["--classes", tmp_path / "classes.txt", "--replicates", "40", "-o", tmp_path / "report"]
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written := io.BytesIO(), encoding="ascii"))
    with pytest.raises(SystemExit) as left:
        main([*map(str, ["evaluate", "--id", tmp_path / "id.npz", "--ood", f"δ={tmp_path / 'id.npz'}", *options])])
    sys.stdout.flush()
    assert left.value.code == 0
    assert rb"\u03b4" in written.getvalue()
