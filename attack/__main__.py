"""``python -m attack``: run campaigns, print each failure with the command that repeats it, and a table at the end."""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence

from attack.campaigns import CAMPAIGNS
from attack.running import Failure, Report, Tally, run_campaigns, run_case

MOST_PRINTED = 5  # failures of a campaign; the table counts all

ADVICE = (
    "there is a single member",
    "all members predict the same",
    "the members are nearly one-hot",
    ".*is read as \\(members",
    ".* not certified after max_nodes=1:",
)
"""Warnings about inputs that campaigns draw on purpose."""


def main(arguments: Sequence[str] | None = None, /) -> int:
    """The exit code: 1 where a case failed, else 0."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("error")  # as in the tests: a warning of ours is a defect
    for advice in ADVICE:
        warnings.filterwarnings("ignore", message=advice)
    campaigns = [CAMPAIGNS[name] for name in dict.fromkeys(options.campaign or CAMPAIGNS)]
    if options.case is not None:
        return max(_again(name, options.seed, options.case) for name in (campaign.name for campaign in campaigns))
    tallies = run_campaigns(
        campaigns, options.seed, seconds=60 * options.minutes, most_cases=options.cases, report=_printer()
    )
    print(table(tallies, options.seed))
    return int(any(tally.failures for tally in tallies))


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name:<14} {campaign.sentence}" for name, campaign in CAMPAIGNS.items())
    parser = argparse.ArgumentParser(
        prog="python -m attack",
        description="Try to make the library wrong.",
        epilog=f"campaigns:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long, over all campaigns (10)")
    parser.add_argument("--seed", type=int, default=0, help="another seed tries other cases (0)")
    parser.add_argument("--campaign", nargs="+", choices=list(CAMPAIGNS), metavar="NAME", help="only these (all)")
    parser.add_argument("--cases", type=int, metavar="N", help="at most N cases of each campaign")
    parser.add_argument("--case", type=int, metavar="K", help="only case K, with the traceback of its failure")
    return parser


def _again(name: str, seed: int, number: int) -> int:
    failure = run_case(CAMPAIGNS[name], seed, number)
    if failure is None:
        print(f"{name}, seed {seed}, case {number}: passed")
        return 0
    traceback.print_exception(failure.error)
    print(failure)
    return 1


def _printer() -> Report:
    printed: Counter[str] = Counter()

    def report(failure: Failure) -> None:
        printed[failure.campaign] += 1
        if printed[failure.campaign] <= MOST_PRINTED:
            print(failure, flush=True)

    return report


def table(tallies: Sequence[Tally], seed: int) -> str:
    """Cases tried and failed of each campaign, and of all."""
    lines = [f"{'campaign':<16}{'cases':>9}{'failed':>9}{'seconds':>9}   seed {seed}"]
    for tally in tallies:
        numbers = ", ".join(str(failure.case) for failure in tally.failures[:MOST_PRINTED])
        line = f"{tally.campaign.name:<16}{tally.cases:>9,}{len(tally.failures):>9,}{tally.seconds:>9.0f}"
        lines.append(f"{line}   {f'cases {numbers}' if numbers else ''}".rstrip())
    cases, failed = sum(tally.cases for tally in tallies), sum(len(tally.failures) for tally in tallies)
    return "\n".join([*lines, f"{'all':<16}{cases:>9,}{failed:>9,}{sum(tally.seconds for tally in tallies):>9.0f}"])


if __name__ == "__main__":
    sys.exit(main())
