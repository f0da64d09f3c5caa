"""Run cases of campaigns for some time, each campaign for the same share of it, and count what failed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from attack.case import Campaign, Case, DefectError

ADVICE = (
    "there is a single member",
    "all members predict the same",
    "the members are nearly one-hot",
    ".* members that predict one input",
    ".*is read as \\(members",
    ".* not certified after max_nodes=",
)
"""Warnings about inputs that campaigns draw on purpose."""


@dataclass(frozen=True)
class Failure:
    """A case that failed, and why."""

    campaign: str
    seed: int
    case: int
    error: BaseException

    def __str__(self) -> str:
        return f"FAILED {self.campaign}, seed {self.seed}, case {self.case}: {self.reason}\n  again: {self.command}"

    @property
    def reason(self) -> str:
        """The error on one line."""
        return " ".join(f"{type(self.error).__name__}: {self.error}".split())[:1500]

    @property
    def command(self) -> str:
        """How to run just this case."""
        return f"python -m attack --campaign {self.campaign} --seed {self.seed} --case {self.case}"


@dataclass
class Tally:
    """What became of a campaign: how many cases and inputs were tried, and what failed."""

    name: str
    cases: int = 0
    inputs: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.name,
            self.cases + other.cases,
            self.inputs + other.inputs,
            self.seconds + other.seconds,
            sorted([*self.failures, *other.failures], key=lambda failure: failure.case),
        )


Report = Callable[[Failure], None]


def warnings_are_defects() -> None:
    """As in the tests: a warning of ours that a campaign does not draw on purpose is a defect."""
    warnings.simplefilter("error")
    for advice in ADVICE:
        warnings.filterwarnings("ignore", message=advice)


def run_case(campaign: Campaign, seed: int, number: int) -> Failure | None:
    """One case in a folder of its own; any exception is a failure, since everything that a case hands over is expected."""
    return _tried(campaign, seed, number)[0]


def _tried(campaign: Campaign, seed: int, number: int) -> tuple[Failure | None, int]:
    with ExitStack() as stack:

        def make_folder() -> Path:
            return Path(stack.enter_context(TemporaryDirectory(prefix=f"attack-{campaign.name}-")))

        case = Case(campaign.name, seed, number, make_folder)
        try:
            campaign.attack(case)
        except Exception as error:
            return Failure(campaign.name, seed, number, error), case.inputs
        return None, case.inputs


def run_campaigns(
    campaigns: Sequence[Campaign],
    seed: int,
    *,
    seconds: float,
    most_cases: int | None = None,
    report: Report,
    first: int = 0,
    step: int = 1,
) -> list[Tally]:
    """Cases of every campaign, next of the one that has had the least time, until the time is over.

    Their numbers are ``first`` and every ``step`` from there on.
    """
    tallies = [Tally(campaign.name) for campaign in campaigns]
    of_name = {campaign.name: campaign for campaign in campaigns}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        open_tallies = [tally for tally in tallies if most_cases is None or tally.cases < most_cases]
        if not open_tallies:
            break
        tally = min(open_tallies, key=lambda tally: tally.seconds)
        _next_case(tally, of_name[tally.name], seed, first + step * tally.cases, report)
    return tallies


def _next_case(tally: Tally, campaign: Campaign, seed: int, number: int, report: Report) -> None:
    begin = time.monotonic()
    failure, inputs = _tried(campaign, seed, number)
    tally.seconds += time.monotonic() - begin
    tally.cases, tally.inputs = tally.cases + 1, tally.inputs + inputs
    if failure is not None:
        tally.failures.append(failure)
        report(failure)


def run_side_by_side(names: Sequence[str], seed: int, processes: int, *, seconds: float, report: Report) -> list[Tally]:
    """The same in several processes, each with cases of its own."""
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        parts = [pool.submit(_part, list(names), seed, first, processes, seconds) for first in range(processes)]
        tallies = [sum(part[1:], start=part[0]) for part in zip(*(part.result() for part in parts), strict=True)]
    for tally in tallies:
        for failure in tally.failures:
            report(failure)
    return tallies


def _part(names: list[str], seed: int, first: int, step: int, seconds: float) -> list[Tally]:
    """Every ``step``-th case, in a process of its own; errors become text, since not all can be sent."""
    from attack.campaigns import CAMPAIGNS

    warnings_are_defects()
    campaigns = [CAMPAIGNS[name] for name in names]
    tallies = run_campaigns(campaigns, seed, seconds=seconds, report=lambda failure: None, first=first, step=step)
    for tally in tallies:
        tally.failures = [replace(failure, error=DefectError(failure.reason)) for failure in tally.failures]
    return tallies
