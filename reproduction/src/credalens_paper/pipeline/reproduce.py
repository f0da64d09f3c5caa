"""The paper as a program: `reproduce(["OODMain"], preset="smoke")` trains, predicts, evaluates and writes the result.

Every label of a table or a figure is an entry, and there is one of our own. What one entry has trained, predicted or
evaluated the others reuse, and a run that was stopped goes on where it was. What is stored is enough: without a data
folder nothing is trained, and what is missing is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from credalens.checks.options import check_threads
from credalens_paper.backbones import check_pretrained
from credalens_paper.experiments.exactness import EXACTNESS, OWN
from credalens_paper.experiments.numbers import describe, figure_labels, runs, table_labels
from credalens_paper.experiments.presets import Preset, get_preset
from credalens_paper.results.provenance import provenance
from credalens_paper.results.store import Store, file_name, read_json

if TYPE_CHECKING:
    from credalens_paper.pipeline.models import Models
    from credalens_paper.pipeline.work import Workbench

__all__ = ["Entry", "Outcome", "check_labels", "check_options", "list_entries", "read_results", "reproduce"]

GROUPS: Final = {
    "all": (*table_labels(), *figure_labels(), *OWN),
    "tables": table_labels(),
    "figures": figure_labels(),
    "ours": tuple(OWN),
}
MEASURES: Final = ("GH",)
STAGES: Final = ("train", "predict")


@dataclass(frozen=True)
class Entry:
    """A table or figure of the paper, or an entry of our own, and whether it was measured."""

    label: str
    kind: str
    description: str
    status: str


@dataclass(frozen=True)
class Outcome:
    """The results that are complete, and why the other labels are not."""

    results: list[dict[str, Any]]
    unfinished: dict[str, str]


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
    finished: Callable[[dict[str, Any]], None] = lambda result: None,
) -> Outcome:
    """Measure tables and figures by their labels ("all", "tables", "figures", "ours" name many) into `out`/<preset>.

    `stop_after` "train" or "predict" ends after that stage, `time_limit` after so many seconds at the end of a unit of
    work; the same call goes on. `measures` adds other credal measures ("GH") to the tables of OOD detection, and
    `paper_solver` the paper's local solver on a subsample. `engine` trains and predicts (by default with torch).
    `finished` is called with every result.
    """
    from credalens_paper.pipeline.evaluate import Evaluator
    from credalens_paper.pipeline.models import TimeIsUp
    from credalens_paper.pipeline.work import StopHere, Workbench

    wanted, own = check_labels(labels), get_preset(preset)
    check_options(
        data_folder=data_folder,
        pretrained=pretrained,
        measures=measures,
        stop_after=stop_after,
        time_limit=time_limit,
        threads=threads,
    )
    models = _models(own, data_folder, Store(Path(out) / own.name, dtype=dtype), engine, time_limit, log)
    work = Workbench(models, Evaluator(models, threads), pretrained, stop_after)
    results: list[dict[str, Any]] = []
    unfinished: dict[str, str] = {}
    for place, label in enumerate(wanted):
        try:
            made = _measure(work, label, measures, paper_solver)
        except StopHere as stopped:
            unfinished[label] = f"stopped after the stage {str(stopped)!r}, as asked"
            continue
        except TimeIsUp as stopped:
            unfinished |= dict.fromkeys(wanted[place:], str(stopped))
            break
        results.append(made)
        finished(made)
    return Outcome(results, unfinished)


def check_labels(labels: Iterable[str], /) -> tuple[str, ...]:
    """The labels meant, each once, in the order given; "all", "tables", "figures" and "ours" stand for many.

    An underscore may stand for the space that some labels have.

    >>> len(check_labels(["all"])), check_labels(["PIA", "PIA"])
    (37, ('PIA',))
    """
    names = {file_name(label): label for label in GROUPS["all"]}
    found: dict[str, None] = {}
    for label in labels:
        own = names.get(file_name(label))
        if own is None and label not in GROUPS:
            raise ValueError(_unknown(label))
        found |= dict.fromkeys(GROUPS.get(label, (own,)))  # type: ignore[arg-type]
    if not found:
        raise ValueError("name at least one table or figure; `credalens reproduce --list` shows them all")
    return tuple(found)


def _unknown(label: str) -> str:
    lowered = {known.lower(): known for known in (*GROUPS, *GROUPS["all"])}
    close = [lowered[name] for name in get_close_matches(label.lower(), lowered, n=3)]
    hint = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
    return f"the paper has no table or figure {label!r}{hint}; `credalens reproduce --list` shows them all"


def list_entries(results: str | Path | None = None, /) -> list[Entry]:
    """All 36 tables and figures and our own entry with the status of their result file, "not measured" where there is none.

    >>> list_entries()[0].label, len(list_entries())
    ('OODMain', 37)
    """
    known = {} if results is None else {result["label"]: result for result in read_results(results)}
    return [
        Entry(label, _kind(label), OWN.get(label) or describe(label), _status_of(known.get(label)))
        for label in GROUPS["all"]
    ]


def _kind(label: str) -> str:
    if label in OWN:
        return "ours"
    return "table" if label in table_labels() else "figure"


def _status_of(result: dict[str, Any] | None) -> str:
    return "not measured" if result is None else str(result["status"])


def read_results(folder: str | Path, /) -> list[dict[str, Any]]:
    """The result files of a folder, in the order of the paper; a folder without any is an error."""
    place = Path(folder)
    found = {}
    for path in sorted(place.glob("*.json")):
        content = read_json(path)
        if isinstance(content, dict) and content.get("label") in GROUPS["all"]:
            found[content["label"]] = content
    if not found:
        raise FileNotFoundError(
            f"no result files (<label>.json) in {place}; measure something first, or name their folder"
        )
    return [found[label] for label in GROUPS["all"] if label in found]


def check_options(
    *,
    data_folder: str | Path | None = None,
    pretrained: str | None = None,
    measures: Sequence[str] = (),
    stop_after: str | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> None:
    """Refuse options of `reproduce` that would fail it later: hours may lie between its start and their use.

    >>> check_options(threads=0)
    Traceback (most recent call last):
    ValueError: threads must be at least 1, or None for all cores; got 0.
    """
    check_threads(threads)
    unknown = sorted(set(measures) - set(MEASURES))
    if unknown:
        raise ValueError(f"no other measure {unknown[0]!r}; there is {', '.join(MEASURES)}")
    if stop_after is not None and stop_after not in STAGES:
        raise ValueError(f"one can stop after {' or '.join(STAGES)}, got {stop_after!r}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"the time limit is a positive number of seconds, got {time_limit!r}")
    if data_folder is not None and not Path(data_folder).is_dir():
        raise NotADirectoryError(f"the data folder {data_folder} does not exist; name the one that holds the data sets")
    if pretrained is not None:
        check_pretrained(pretrained, "resnet50")  # the one network that is trained on ImageNet


def _models(
    preset: Preset,
    data_folder: str | Path | None,
    store: Store,
    engine: Any,
    time_limit: float | None,
    log: Callable[[str], None],
) -> Models:
    from credalens_paper.pipeline.engine import TorchEngine
    from credalens_paper.pipeline.images import Images
    from credalens_paper.pipeline.models import Deadline, Models

    images = Images(store, preset, data_folder)
    return Models(store, preset, images, engine or TorchEngine(), Deadline(time_limit), log)


def _measure(work: Workbench, label: str, measures: Sequence[str], paper_solver: bool) -> dict[str, Any]:
    from credalens_paper.experiments.figures import FIGURES
    from credalens_paper.experiments.tables import TABLES
    from credalens_paper.pipeline.exactness import exactness_result
    from credalens_paper.pipeline.figures import figure_result
    from credalens_paper.pipeline.runs import describe_runs
    from credalens_paper.pipeline.tables import table_result

    if label in TABLES:
        content = table_result(work, TABLES[label], measures=measures, paper_solver=paper_solver)
        content["paper_runs"] = runs(label)
    elif label in OWN:
        content = exactness_result(work, EXACTNESS)
    else:
        content = figure_result(work, FIGURES[label])
    made = provenance(preset=work.preset.as_dict(), engine=work.models.engine.about())
    result = {**content, "models": describe_runs(work), "status": _status(content), "provenance": made}
    work.models.store.save_result(label, result)
    return result


def _status(content: dict[str, Any]) -> str:
    parts = content.get("cells") or content.get("panels") or content.get("parts") or []
    if all("reason" in part for part in parts):
        return "not measured"
    whole = not any("reason" in part or part.get("missing") for part in parts)
    return "measured" if whole else "partly measured"
