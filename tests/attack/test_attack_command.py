"""Cases repeat, are counted, and failures say how to come back to them."""

from __future__ import annotations

from attack.__main__ import main
from attack.campaigns import CAMPAIGNS
from attack.case import Campaign, Case, DefectError
from attack.running import run_campaigns, run_case


def failing_from(number: int) -> Campaign:
    def attack(case: Case) -> None:
        """Draws a number."""
        draw = case.rng.random()
        if case.number >= number:
            raise DefectError(f"drew {draw}")

    return Campaign("drawing", attack)


def test_a_case_is_made_again_from_campaign_seed_and_number():
    again = [str(run_case(failing_from(0), 5, 3)) for _ in range(2)]
    assert again[0] == again[1]
    assert "python -m attack --campaign drawing --seed 5 --case 3" in again[0]
    others = {str(run_case(failing_from(0), *place).error) for place in ((5, 3), (5, 4), (6, 3))}
    assert len(others) == 3


def test_cases_are_counted_and_failures_reported():
    reported = []
    [tally] = run_campaigns([failing_from(2)], 0, seconds=60, most_cases=5, report=reported.append)
    assert tally.cases == 5
    assert [failure.case for failure in tally.failures] == [2, 3, 4]
    assert reported == tally.failures


def test_the_command_prints_a_table_and_the_way_back(monkeypatch, capsys):
    monkeypatch.setitem(CAMPAIGNS, "drawing", failing_from(1))
    assert main(["--campaign", "drawing", "classical", "--cases", "2", "--seed", "9"]) == 1
    out = capsys.readouterr().out
    assert "FAILED drawing, seed 9, case 1: DefectError: drew" in out
    rows = [line.split()[:3] for line in out.splitlines()[-3:]]
    assert rows == [["drawing", "2", "1"], ["classical", "2", "0"], ["all", "4", "1"]]
    assert main(["--campaign", "drawing", "--case", "0"]) == 0
    assert main(["--campaign", "drawing", "--case", "1"]) == 1
