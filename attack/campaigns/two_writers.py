"""Two runs of ``credalens score`` into one output at the same time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from attack.case import Case, expect
from attack.scoring_runs import Run, first_difference, leftovers, score, tree, write_input
from attack.start_together import ready, wait_for

LONGEST = 300.0  # seconds that a run may take
DEFECT = "defect of credalens"


def attack(case: Case) -> None:
    """Two runs into one output at once, with the same or other settings: one succeeds at least, and nothing is mixed."""
    first = write_input(case, rows=2000, parts=case.choose(5, 20, 100)).at(case.folder / "out")
    second = replace(first, base=case.choose(first.base, 5.0))
    wanted = {run.base: _alone(case, run) for run in (first, second)}
    reasons = _at_once(case, first, second)
    winners = [run for run, reason in zip((first, second), reasons, strict=True) if not reason]
    expect(winners, f"neither run succeeded: {reasons}")
    differences = [first_difference(tree(first.target), wanted[run.base]) for run in winners]
    expect("" in differences, f"the output is that of no run that succeeded: {differences}")
    expect(not leftovers(first), f"there are left: {leftovers(first)}")
    again = replace(first, base=winners[differences.index("")].base)
    score(again)
    expect(tree(again.target) == wanted[again.base], "a run after both changed the output")


def _alone(case: Case, run: Run) -> dict[str, bytes]:
    alone = run.at(case.folder / f"alone_{run.base}")
    score(alone)
    return tree(alone.target)


def _at_once(case: Case, *runs: Run) -> list[str]:
    """Why each run was refused, empty where it succeeded. Who loses says why, and does not blame the library."""
    signals = case.folder / "signals"
    signals.mkdir()
    starter = [sys.executable, "-m", "attack.start_together", str(signals)]
    processes = [
        subprocess.Popen(
            [*starter, str(number), *run.arguments()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for number, run in enumerate(runs)
    ]
    wait_for(*(ready(signals, number) for number in range(len(runs))))
    (signals / "go").touch()
    return [_reason(process) for process in processes]


def _reason(process: subprocess.Popen[str]) -> str:
    _, errors = process.communicate(timeout=LONGEST)
    if process.returncode == 0:
        return ""
    expect(process.returncode == 2, f"the run that lost ended with {process.returncode}: {errors[-500:]}")
    expect(errors.startswith("error: ") and DEFECT not in errors, f"the run that lost says: {errors[-500:]}")
    return errors
