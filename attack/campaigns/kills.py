"""``credalens score`` killed with SIGKILL and started again.

A case fixes input, output and when it kills. Kills by time are not at the same place twice, since nobody commands the
scheduler; kills at a step are.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from attack.case import Case, expect
from attack.exit_at import KILLED, STEPS
from attack.scoring_runs import Run, first_difference, leftovers, score, tree, write_input

POLL = 0.0005  # seconds
LONGEST = 300.0  # seconds that a run may take


def attack(case: Case) -> None:
    """Kill -9 of `credalens score` at random moments, up to three times: the next run ends with the same bytes."""
    run = write_input(case, rows=case.choose(500, 4000), parts=case.choose(10, 100))
    whole, out = run.at(case.folder / "whole"), run.at(case.folder / "out")
    score(whole)
    expected = tree(whole.target)
    for _ in range(case.between(1, 3)):
        (_kill_at_step if case.between(0, 1) else _kill_at_time)(case, out)
        if not run.folder and out.target.exists():
            expect(tree(out.target) == expected, "a killed run left an output that is not whole")
    end = subprocess.run(out.command(), capture_output=True, text=True, timeout=LONGEST, check=False)
    expect(end.returncode == 0, f"the run after the kills ended with {end.returncode}: {end.stderr[-500:]}")
    difference = first_difference(tree(out.target), expected)
    expect(not difference, f"after the kills: {difference}")
    expect(not leftovers(out), f"after the kills there are left: {leftovers(out)}")


def _kill_at_step(case: Case, run: Run) -> None:
    """In front of a call that makes, names or deletes a file."""
    step = [case.choose(*STEPS), str(case.between(0, case.choose(3, 30)))]
    command = [sys.executable, "-m", "attack.exit_at", *step, *run.arguments()]
    end = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    expect(
        end.returncode in (0, KILLED), f"a run to be killed at {step} ended with {end.returncode}: {end.stderr[-500:]}"
    )


def _kill_at_time(case: Case, run: Run) -> None:
    """Once the output has begun, a folder has some parts, a little later."""
    parts = case.choose(0, 0, case.between(1, 8)) if run.folder else 0
    wait = float(case.rng.exponential(case.choose(0.003, 0.1)))
    process = subprocess.Popen(run.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    work, deadline = run.work_folder(), time.monotonic() + LONGEST
    while process.poll() is None and not _has_parts(work, parts) and time.monotonic() < deadline:
        time.sleep(POLL)
    time.sleep(wait)
    process.kill()
    process.wait()


def _has_parts(work: Path, parts: int) -> bool:
    return work.exists() and sum(path.name.startswith("part-") for path in work.iterdir()) >= parts
