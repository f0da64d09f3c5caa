"""Run cases of campaigns for some time, each campaign for the same share of it, and count what failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from attack.case import Campaign, Case


@dataclass(frozen=True)
class Failure:
    """A case that failed, and why."""

    campaign: str
    seed: int
    case: int
    error: BaseException

    def __str__(self) -> str:
        reason = " ".join(f"{type(self.error).__name__}: {self.error}".split())
        return f"FAILED {self.campaign}, seed {self.seed}, case {self.case}: {reason[:1500]}\n  again: {self.command}"

    @property
    def command(self) -> str:
        """How to run just this case."""
        return f"python -m attack --campaign {self.campaign} --seed {self.seed} --case {self.case}"


@dataclass
class Tally:
    """What became of a campaign."""

    campaign: Campaign
    cases: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)


Report = Callable[[Failure], None]


def run_case(campaign: Campaign, seed: int, number: int) -> Failure | None:
    """One case in a folder of its own; any exception is a failure, since everything that a case hands over is expected."""
    with TemporaryDirectory(prefix=f"attack-{campaign.name}-") as folder:
        try:
            campaign.attack(Case(campaign.name, seed, number, Path(folder)))
        except Exception as error:
            return Failure(campaign.name, seed, number, error)
    return None


def run_campaigns(
    campaigns: Sequence[Campaign], seed: int, *, seconds: float, most_cases: int | None = None, report: Report
) -> list[Tally]:
    """Cases 0, 1, ... of every campaign, next of the one that has had the least time, until the time is over."""
    tallies = [Tally(campaign) for campaign in campaigns]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        open_tallies = [tally for tally in tallies if most_cases is None or tally.cases < most_cases]
        if not open_tallies:
            break
        _next_case(min(open_tallies, key=lambda tally: tally.seconds), seed, report)
    return tallies


def _next_case(tally: Tally, seed: int, report: Report) -> None:
    begin = time.monotonic()
    failure = run_case(tally.campaign, seed, tally.cases)
    tally.seconds += time.monotonic() - begin
    tally.cases += 1
    if failure is not None:
        tally.failures.append(failure)
        report(failure)
