"""``python -m attack``: run campaigns, print each failure with the command that repeats it, and a table at the end."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from attack.campaigns import CAMPAIGNS
from attack.running import Failure, Report, Tally, run_campaigns, run_case, run_side_by_side, warnings_are_defects
from credalens.core.batches import usable_cores

MOST_PRINTED = 5  # failures of a campaign; the table counts all


def main(arguments: Sequence[str] | None = None, /) -> int:
    """The exit code: 1 where a case failed, else 0."""
    options = _parser().parse_args(arguments)
    warnings_are_defects()
    campaigns = [CAMPAIGNS[name] for name in dict.fromkeys(options.campaign or CAMPAIGNS)]
    if options.case is not None:
        return max(_again(name, options.seed, options.case) for name in (campaign.name for campaign in campaigns))
    seconds, report = 60 * options.minutes, _printer()
    if options.cases is None and options.processes > 1:
        names = [campaign.name for campaign in campaigns]
        tallies = run_side_by_side(names, options.seed, options.processes, seconds=seconds, report=report)
    else:
        tallies = run_campaigns(campaigns, options.seed, seconds=seconds, most_cases=options.cases, report=report)
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
    parser.add_argument(
        "--processes", type=int, default=usable_cores(), help="side by side (as many as there are cores)"
    )
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
    """Cases tried and failed of each campaign, and of all; and how many inputs they were about."""
    lines = [f"{'campaign':<16}{'cases':>9}{'failed':>9}{'inputs':>12}{'seconds':>9}   seed {seed}"]
    for tally in tallies:
        numbers = ", ".join(str(failure.case) for failure in tally.failures[:MOST_PRINTED])
        lines.append(f"{_row(tally)}   {f'cases {numbers}' if numbers else ''}".rstrip())
    whole = sum((replace(tally, name="all") for tally in tallies), start=Tally("all"))
    return "\n".join([*lines, _row(whole)])


def _row(tally: Tally) -> str:
    counts = f"{tally.cases:>9,}{len(tally.failures):>9,}{tally.inputs:>12,}"
    return f"{tally.name:<16}{counts}{tally.seconds:>9.0f}"


if __name__ == "__main__":
    sys.exit(main())
