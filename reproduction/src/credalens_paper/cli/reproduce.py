"""``credalens reproduce``: the paper's tables and figures by their labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from credalens.cli.shared_options import Address, Cpus, Device, Engine, Gpus, SideBySide, check_engine

if TYPE_CHECKING:
    from credalens_paper.pipeline.torch_engine import TorchEngine
    from credalens_paper.results.records import Result

__all__ = ["reproduce"]

NOTHING_MEASURED: Final = 1
TIME_IS_UP: Final = 3


def _option(text: str, metavar: str | None = None, /, *names: str, panel: str | None = None, **more: Any) -> Any:
    """An option without a default to show."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, rich_help_panel=panel, **more)


def _size(text: str, *, least: int = 1) -> Any:
    panel = "Size of the reproduction"
    return typer.Option(metavar="N", min=least, help=text, show_default="the preset's", rich_help_panel=panel)


def _run(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Run", **more)


LABELS: Final = "Tables and figures, or all, tables, figures, ours."
LIST: Final = (
    "List all tables and figures, and leave. Which are measured is looked up in OUT/PRESET/results, or in the folder of "
    "--from-results."
)
FROM_RESULTS: Final = (
    "Print result files of this folder; train nothing. Several: each label from the first that has it; --findings counts "
    "the others too."
)
ADD_RUNS: Final = (
    "With --from-results: add the runs of the result files in this folder, later ones (--first-run) or those of another "
    "preset, and write what they were added to into OUT."
)
MARKDOWN: Final = (
    "Write an index there too, and a page for each result in tables/ and figures/ beside it, in place of what is there."
)


def reproduce(
    labels: Annotated[list[str] | None, typer.Argument(metavar="LABEL", help=LABELS, show_default=False)] = None,
    list_them: Annotated[bool, typer.Option("--list", help=LIST)] = False,
    preset: Annotated[
        str,
        typer.Option(
            help="smoke (minutes), fast (CIFAR, one GPU), scratch (large networks, small images), text (a CPU) or full."
        ),
    ] = "smoke",
    data_folder: Annotated[Path | None, _option("Where the data sets are.", "FOLDER")] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Models, predictions, results: kept and reused.")] = Path(
        "runs"
    ),
    from_results: Annotated[list[Path] | None, _option(FROM_RESULTS, "FOLDER")] = None,
    add_runs: Annotated[list[Path] | None, _option(ADD_RUNS, "FOLDER")] = None,
    markdown: Annotated[Path | None, _option(MARKDOWN, "FILE")] = None,
    findings: Annotated[
        Path | None, _option("Write what the results say there too, in place of what is there.", "FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    measure: Annotated[list[str] | None, _option("Another credal measure beside EU and TU.", "GH")] = None,
    only: Annotated[
        list[str] | None, _option("Work on this method (DE, ...), backbone or training set only.", "NAME")
    ] = None,
    paper_solver: Annotated[
        bool, _option("SciPy's SLSQP beside the exact measures, on a subsample.", None, "--paper-solver")
    ] = False,
    pretrained: Annotated[
        str | None, _option("Weights of ResNet-50 for ImageNet, or of EfficientNet-Lite0.", "FOLDER")
    ] = None,
    device: Device = None,
    side_by_side: SideBySide = 1,
    compiled: Annotated[bool, _run("Fuse training with torch.compile: pays for many networks.", "--compile")] = False,
    only_train: Annotated[bool, _run("Stop when all is trained.", "--only-train")] = False,
    only_predict: Annotated[bool, _run("Stop when all is predicted.", "--only-predict")] = False,
    time_limit: Annotated[float | None, _run("Stop cleanly after that; exit code 3.", metavar="SECONDS")] = None,
    threads: Annotated[int | None, _run("Threads of the measures.", metavar="N", min=1)] = None,
    dtype: Annotated[str, _run("Stored predictions: float32, float16.")] = "float32",
    members: Annotated[int | None, _size("Networks trained for the ensembles of five.")] = None,
    many_members: Annotated[int | None, _size("Networks trained for the ablation on N.")] = None,
    runs: Annotated[int | None, _size("Distinct deep ensembles.")] = None,
    bnn_runs: Annotated[int | None, _size("Bayesian networks of each kind.")] = None,
    edd_runs: Annotated[int | None, _size("Distilled networks of each kind.")] = None,
    first_run: Annotated[
        int | None, _size("Leave out runs 0 to N - 1, which are measured elsewhere; see --add-runs.", least=0)
    ] = None,
    engine: Engine = "local",
    address: Address = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
) -> None:
    """Measure tables and figures of the paper and print them beside its numbers, wins and losses alike.

    What is missing is trained, predicted and evaluated; what is there is reused, and a run that was stopped or killed
    goes on when the same command is given again. Entries whose data are not found are listed as not measured;
    where that is all of them, the exit code is 1.

    **Examples**

        credalens reproduce --list
        credalens reproduce --list --from-results results/fast
        credalens reproduce all --preset smoke
        credalens reproduce OODMain OODMainTU --preset fast --data-folder data --compile
        credalens reproduce OODMain --preset fast --data-folder data --only-train --time-limit 500
        credalens reproduce FineTuned --preset scratch --data-folder data --pretrained weights
        credalens reproduce TextIntents TextScores --preset text --data-folder data
        credalens reproduce all --from-results results/fast --from-results results/scratch --markdown results/README.md
        credalens reproduce OODMain --preset fast --data-folder data --only BNNR --first-run 3 --bnn-runs 8 --out later
        credalens reproduce OODMain --from-results results/fast --add-runs later/fast/results --out combined
        credalens reproduce all --preset fast --data-folder /shared/data --out /shared/runs --engine ray
    """
    from credalens.storage.atomic import check_file, check_folder, check_no_input
    from credalens_paper.experiments.index import check_labels
    from credalens_paper.experiments.presets import get_preset
    from credalens_paper.pipeline import measure_entries as pipeline
    from credalens_paper.results.records import read_repeated, read_results

    on_ray = check_engine(engine, address=address, cpus=cpus, gpus=gpus)
    sizes = {
        "members": members,
        "many_members": many_members,
        "runs": runs,
        "bnn_runs": bnn_runs,
        "edd_runs": edd_runs,
        "first_run": first_run,
    }
    size = get_preset(preset).changed(**sizes).only(only or [])
    if list_them:
        return _list(from_results or [], out / preset / "results", as_json=as_json)
    pages = [check_file(path) for path in (markdown, findings) if path is not None]
    folders = from_results or [out / preset / "results"]
    check_no_input(pages, (path for folder in (*folders, *(add_runs or [])) for path in folder.glob("*.json")))
    if len({path.resolve() for path in pages}) < len(pages):
        raise typer.BadParameter("--markdown and --findings name the same file; give each its own.")
    show = _show_nothing if as_json else _print
    if from_results:
        wanted = check_labels(labels or ["all"])
        results = [result for result in read_results(*from_results) if result.label in wanted]
        if add_runs:
            from credalens_paper.pipeline.combine_runs import combine_all

            more = [result for folder in add_runs for result in read_results(folder)]
            results = combine_all(results, more, out)
        for result in results:
            show(result)
        repeated = read_repeated(*from_results, labels=wanted)
        return _write(results, {}, markdown, findings, repeated, as_json=as_json)
    if add_runs:
        raise typer.BadParameter("--add-runs adds to the result files of --from-results FOLDER; give that too.")
    wanted = check_labels(labels or [])
    if only_train and only_predict:
        raise typer.BadParameter("--only-train stops before anything is predicted; give it or --only-predict.")
    options: dict[str, Any] = {
        "data_folder": data_folder,
        "pretrained": pretrained,
        "measures": measure or [],
        "stop_after": "train" if only_train else "predict" if only_predict else None,
        "time_limit": time_limit,
        "threads": threads,
    }
    pipeline.check_options(**options)
    check_folder(out)
    machine: dict[str, Any] = {"device": device, "side_by_side": side_by_side, "compile": compiled}
    try:
        with _ray_engine(address, cpus, gpus, **machine) if on_ray else _local_engine(**machine) as trainer:
            options |= {"preset": size, "out": out, "engine": trainer, "paper_solver": paper_solver, "dtype": dtype}
            outcome = pipeline.reproduce(wanted, **options, log=_log, finished=show)
    except KeyboardInterrupt:
        _log("interrupted; the same command goes on from here when it is given again.")
        raise typer.Exit(130) from None
    _write(outcome.results, outcome.unfinished, markdown, findings, as_json=as_json)
    if outcome.timed_out:
        raise typer.Exit(TIME_IS_UP)
    if options["stop_after"] is None and all(result.status == "not measured" for result in outcome.results):
        _log(f"nothing was measured: {_first_reason(outcome.results)}.")
        raise typer.Exit(NOTHING_MEASURED)
    return None


def _log(line: str) -> None:
    typer.echo(line, err=True)


@contextmanager
def _local_engine(**options: Any) -> Iterator[TorchEngine]:
    from credalens_paper.pipeline.torch_engine import TorchEngine

    yield TorchEngine(**options)


@contextmanager
def _ray_engine(
    address: str | None, cpus: int | None, gpus: float | None, /, *, side_by_side: int, **options: Any
) -> Iterator[TorchEngine]:
    """Connected to the cluster while the block lasts."""
    from credalens.engines.cluster import ray_cluster
    from credalens_paper.pipeline.ray_pool import RayPool
    from credalens_paper.pipeline.torch_engine import TorchEngine

    if side_by_side != 1:
        raise typer.BadParameter(
            "--side-by-side is for --engine local; on Ray, --gpus 0.2 puts five networks on a GPU."
        )
    with ray_cluster(address):
        yield TorchEngine(**options, pool=RayPool(**options, cpus=cpus, gpus=gpus))


def _list(asked: Sequence[Path], default: Path, *, as_json: bool) -> None:
    """All entries, with their status in the folders that were asked for, or in that of this preset, which may be empty."""
    from credalens_paper.experiments.index import DESCRIPTIONS, kind_of
    from credalens_paper.results.records import read_results
    from credalens_paper.results.rendering.markdown import markdown_table

    folders = asked or [default]
    empty = not asked and not any(default.glob("*.json"))
    status = {} if empty else {result.label: result.status for result in read_results(*folders)}
    rows = [[label, kind_of(label), status.get(label, "not measured"), text] for label, text in DESCRIPTIONS.items()]
    if as_json:
        names = ("label", "kind", "status", "description")
        return typer.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    typer.echo(markdown_table(["Label", "Kind", "Status", "What it shows"], rows))
    note = "holds no results yet" if empty else "was looked at for results"
    return _log(
        f"{', '.join(map(str, folders))} {note}; --from-results FOLDER, or --out and --preset, name another place."
    )


def _print(result: Result) -> None:
    from credalens_paper.results.rendering.pages import render_result

    typer.echo(render_result(result) + "\n")


def _show_nothing(result: Result) -> None:
    """All results are printed as JSON at the end."""


def _first_reason(results: Sequence[Result]) -> str:
    """Why the first part that was asked for was not measured; parts out of focus come last."""
    from credalens_paper.pipeline.plan import LEFT_OUT

    reasons = [part.reason for result in results for part in result.parts if part.reason is not None]
    return next((reason for reason in reasons if LEFT_OUT not in reason), reasons[0])


def _write(
    results: Sequence[Result],
    unfinished: dict[str, str],
    markdown: Path | None,
    findings: Path | None,
    repeated: Sequence[Result] = (),
    *,
    as_json: bool,
) -> None:
    from credalens.storage import atomic_file
    from credalens_paper.findings.document import render_findings
    from credalens_paper.findings.results_pages import write_pages
    from credalens_paper.json_records import to_json

    if markdown is not None:
        write_pages(results, markdown, repeated)
    if findings is not None:
        with atomic_file(findings) as file:
            file.write(render_findings([*results, *repeated]).encode())
    if as_json:
        typer.echo(json.dumps({"results": to_json(results), "unfinished": unfinished}))
    for label, why in unfinished.items():
        _log(f"{label}: {why}.")
