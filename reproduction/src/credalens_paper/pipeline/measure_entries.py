"""The paper as a program: `reproduce(["OODMain"], preset="smoke")` trains, predicts, evaluates and writes the result.

Every label of a table or a figure is an entry, and there are some of our own. What one entry has trained, predicted or
evaluated the others reuse, and a run that was stopped goes on where it was. What is stored is enough: without a data
folder nothing is trained, and what is missing is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from credalens.checks.options import check_threads
from credalens_paper.backbones import find_pretrained, open_pretrained
from credalens_paper.experiments.index import ENTRIES, check_labels
from credalens_paper.experiments.own_entries import Exactness
from credalens_paper.experiments.paper_entries import Table
from credalens_paper.experiments.presets import Preset, get_preset
from credalens_paper.pipeline import engines
from credalens_paper.pipeline.fill.figure import figure_result
from credalens_paper.pipeline.fill.table import exactness_result, table_result
from credalens_paper.pipeline.job import Deadline, Job, TimeIsUp
from credalens_paper.pipeline.plan import StopHere, Workbench
from credalens_paper.pipeline.runs import Evaluator
from credalens_paper.results.records import Result
from credalens_paper.results.store import Store

MEASURES: Final = ("GH",)
STAGES: Final = ("train", "predict")


@dataclass(frozen=True)
class Outcome:
    """The results that are complete, and why the other labels are not."""

    results: list[Result]
    unfinished: dict[str, str]
    timed_out: bool = False


def reproduce(
    labels: Iterable[str],
    /,
    *,
    preset: str | Preset = "smoke",
    data_folder: str | Path | None = None,
    out: str | Path = "runs",
    engine: Any = None,
    pretrained: str | None = None,
    measures: Sequence[str] = (),
    paper_solver: bool = False,
    stop_after: str | None = None,
    time_limit: float | None = None,
    dtype: str = "float32",
    threads: int | None = None,
    log: Callable[[str], None] = lambda line: None,
    finished: Callable[[Result], None] = lambda result: None,
) -> Outcome:
    """Measure tables and figures by their labels ("all", "tables", "figures", "ours" name many) into `out`/<preset>.

    `stop_after` "train" or "predict" ends after that stage, `time_limit` after so many seconds at the end of a unit of
    work; the same call goes on. `measures` adds other credal measures ("GH") to the tables of OOD detection, and
    `paper_solver` the paper's local solver on a subsample. `pretrained` is the folder of weights for the entries that start
    from some: ResNet-50 on ImageNet, EfficientNet-Lite0. `engine` trains and predicts (by default with torch).
    `finished` is called with every result. Options that would fail it later are refused at once.
    """
    wanted, size = check_labels(labels), get_preset(preset)
    check_threads(threads)
    if unknown := sorted(set(measures) - set(MEASURES)):
        raise ValueError(f"no other measure {unknown[0]!r}; there is {', '.join(MEASURES)}")
    if stop_after is not None and stop_after not in STAGES:
        raise ValueError(f"one can stop after {' or '.join(STAGES)}, got {stop_after!r}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"the time limit is a positive number of seconds, got {time_limit!r}")
    if data_folder is not None and not Path(data_folder).is_dir():
        raise NotADirectoryError(f"the data folder {data_folder} does not exist; name the one that holds the data sets")
    weights = None if pretrained is None else open_pretrained(pretrained, find_pretrained(pretrained))
    store = Store(Path(out) / size.name, dtype=dtype)
    job = Job(store, size, data_folder, engine or engines.TorchEngine(), threads, Deadline(time_limit), log)
    work = Workbench(job, Evaluator(job), weights, stop_after)
    results: list[Result] = []
    unfinished: dict[str, str] = {}
    with store.locked():
        for place, label in enumerate(wanted):
            try:
                result = _measure(work, label, measures, paper_solver)
            except StopHere as stopped:
                unfinished[label] = f"stopped after the stage {str(stopped)!r}, as asked"
            except TimeIsUp as stopped:
                return Outcome(results, unfinished | dict.fromkeys(wanted[place:], str(stopped)), timed_out=True)
            else:
                store.save_result(result)
                results.append(result)
                finished(result)
    return Outcome(results, unfinished)


def _measure(work: Workbench, label: str, measures: Sequence[str], paper_solver: bool) -> Result:
    """Measure an entry by the function for what it is declared as."""
    entry = ENTRIES[label]
    if isinstance(entry, Table):
        return table_result(work, entry, measures=measures, paper_solver=paper_solver)
    return exactness_result(work, entry) if isinstance(entry, Exactness) else figure_result(work, entry)
