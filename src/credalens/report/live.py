"""What the slider changes: the texts of the page for every false-alarm rate, by the names of the cells that show them."""

from __future__ import annotations

from typing import Any

from credalens.evaluation.alarms import Alarm
from credalens.evaluation.outcome import Evaluation
from credalens.evaluation.words.verdicts import alarm_sentence
from credalens.report.tables import Table, groups_table, outcome_table, threshold_table


def live_texts(evaluation: Evaluation, /) -> list[dict[str, Any]]:
    """For each rate, rising: the texts, the rate itself, and the thresholds of all scores for the charts."""
    return [_texts(evaluation, rate) for rate in alarm_rates(evaluation)]


def alarm_rates(evaluation: Evaluation, /) -> list[float]:
    """The false-alarm rates that the slider offers."""
    return sorted({alarm.threshold.false_alarm_rate for alarm in evaluation.thresholds})


def _texts(evaluation: Evaluation, rate: float) -> dict[str, Any]:
    alarms = {alarm.score: alarm for alarm in evaluation.thresholds if alarm.threshold.false_alarm_rate == rate}
    chosen: Alarm = alarms[evaluation.recommended.score]
    texts = {"rate": f"{100 * rate:g} %", "sentence": alarm_sentence(evaluation, chosen)}
    place = alarm_rates(evaluation).index(rate)
    groups = [groups_table(evaluation, one, place) for one in evaluation.groups]
    for table in (threshold_table(evaluation, rate), outcome_table(evaluation, chosen), *groups):
        texts |= _cells(table)
    return {"rate": rate, "thresholds": {name: a.threshold.value for name, a in alarms.items()}, "texts": texts}


def _cells(table: Table) -> dict[str, str]:
    return {cell.live: cell.text for row in table.rows for cell in row if cell.live}
