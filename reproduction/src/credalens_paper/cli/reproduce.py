"""``credalens reproduce``: the paper's tables and figures by their labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from credalens.cli.engine import Address, Cpus, Device, Engine, Gpus, SideBySide, check_engine
from credalens.cli.targets import check_file, check_folder

if TYPE_CHECKING:
    from credalens_paper.pipeline.engine import TorchEngine
    from credalens_paper.results.records import Result

__all__ = ["reproduce"]

NOTHING_MEASURED: Final = 1
TIME_IS_UP: Final = 3


def _size(text: str) -> Any:
    panel = "Size of the reproduction"
    return typer.Option(metavar="N", min=1, help=text, show_default="the preset's", rich_help_panel=panel)


def reproduce(
    labels: Annotated[
        list[str] | None,
        typer.Argument(metavar="LABEL", help="Tables and figures, or all, tables, figures, ours.", show_default=False),
    ] = None,
    list_them: Annotated[
        bool,
        typer.Option(
            "--list",
            help="List all tables and figures, and leave. Which are measured is looked up in OUT/PRESET/results, or in the "
            "folder of --from-results.",
        ),
    ] = False,
    preset: Annotated[
        str, typer.Option(help="smoke (minutes), fast (CIFAR-10, one GPU) or full (the paper's).")
    ] = "smoke",
    data_folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the data sets are.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Models, predictions, results: kept and reused.")] = Path(
        "runs"
    ),
    from_results: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Print result files of this folder; train nothing.", show_default=False),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write an index there too, and a page for each result in tables/ and figures/ beside it.",
            show_default=False,
        ),
    ] = None,
    findings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write what the results say there too, in place of what is there.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(metavar="GH", help="Another credal measure beside EU and TU.", show_default=False),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Work on this method (DE, BNNR, ...) or backbone only.", show_default=False),
    ] = None,
    paper_solver: Annotated[
        bool, typer.Option("--paper-solver", help="SciPy's SLSQP beside the exact measures, on a subsample.")
    ] = False,
    pretrained: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Pretrained ResNet-50 for the ImageNet entries.", show_default=False),
    ] = None,
    device: Device = None,
    side_by_side: SideBySide = 1,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compile", help="Fuse training with torch.compile: pays for many networks.", rich_help_panel="Run"
        ),
    ] = False,
    only_train: Annotated[
        bool, typer.Option("--only-train", help="Stop when all is trained.", rich_help_panel="Run")
    ] = False,
    only_predict: Annotated[
        bool, typer.Option("--only-predict", help="Stop when all is predicted.", rich_help_panel="Run")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Stop cleanly after that; exit code 3.", rich_help_panel="Run"),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Threads of the measures.", rich_help_panel="Run")
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Stored predictions: float32, float16.", rich_help_panel="Run")
    ] = "float32",
    members: Annotated[int | None, _size("Networks trained for the ensembles of five.")] = None,
    many_members: Annotated[int | None, _size("Networks trained for the ablation on N.")] = None,
    runs: Annotated[int | None, _size("Distinct deep ensembles.")] = None,
    bnn_runs: Annotated[int | None, _size("Bayesian networks of each kind.")] = None,
    edd_runs: Annotated[int | None, _size("Distilled networks of each kind.")] = None,
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
        credalens reproduce all --from-results results/fast --markdown results/README.md --findings docs/findings.md
        credalens reproduce all --preset fast --data-folder /shared/data --out /shared/runs --engine ray
    """
    from credalens_paper.experiments.entries import check_labels
    from credalens_paper.experiments.presets import get_preset
    from credalens_paper.pipeline import reproduce as pipeline
    from credalens_paper.results.records import read_results

    on_ray = check_engine(engine, address=address, cpus=cpus, gpus=gpus)
    size = get_preset(preset)
    if list_them:
        return _list(from_results, out / preset / "results", as_json=as_json)
    for path in (markdown, findings):
        if path is not None:
            check_file(path)
    show = _hide if as_json else _print
    if from_results is not None:
        wanted = check_labels(labels or ["all"])
        results = [result for result in read_results(from_results) if result.label in wanted]
        for result in results:
            show(result)
        return _write(results, {}, markdown, findings, as_json=as_json)
    wanted = check_labels(labels or [])
    size = size.changed(
        members=members, many_members=many_members, runs=runs, bnn_runs=bnn_runs, edd_runs=edd_runs
    ).only(only or [])
    if only_train and only_predict:
        raise typer.BadParameter("--only-train stops before anything is predicted; give it or --only-predict.")
    stop_after = "train" if only_train else "predict" if only_predict else None
    pipeline.check_options(data_folder, pretrained, measure or [], stop_after, time_limit, threads)
    check_folder(out)
    machine: dict[str, Any] = {"device": device, "side_by_side": side_by_side, "compile": compiled}
    try:
        with _ray_engine(address, cpus, gpus, **machine) if on_ray else _local_engine(**machine) as trainer:
            outcome = pipeline.reproduce(
                wanted,
                preset=size,
                data_folder=data_folder,
                out=out,
                engine=trainer,
                pretrained=pretrained,
                measures=measure or [],
                paper_solver=paper_solver,
                stop_after=stop_after,
                time_limit=time_limit,
                dtype=dtype,
                threads=threads,
                log=lambda line: typer.echo(line, err=True),
                finished=show,
            )
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on from here when it is given again.", err=True)
        raise typer.Exit(130) from None
    _write(outcome.results, outcome.unfinished, markdown, findings, as_json=as_json)
    if outcome.timed_out:
        raise typer.Exit(TIME_IS_UP)
    if stop_after is None and all(result.status == "not measured" for result in outcome.results):
        typer.echo(f"nothing was measured: {_first_reason(outcome.results)}.", err=True)
        raise typer.Exit(NOTHING_MEASURED)
    return None


@contextmanager
def _local_engine(**options: Any) -> Iterator[TorchEngine]:
    from credalens_paper.pipeline.engine import TorchEngine

    yield TorchEngine(**options)


@contextmanager
def _ray_engine(
    address: str | None, cpus: int | None, gpus: float | None, /, *, side_by_side: int, **options: Any
) -> Iterator[TorchEngine]:
    """Connected to the cluster while the block lasts."""
    from credalens.engines.cluster import ray_cluster
    from credalens_paper.pipeline.engine import TorchEngine
    from credalens_paper.pipeline.ray import RayPool

    if side_by_side != 1:
        raise typer.BadParameter(
            "--side-by-side is for --engine local; on Ray, --gpus 0.2 puts five networks on a GPU."
        )
    with ray_cluster(address):
        yield TorchEngine(**options, pool=RayPool(**options, cpus=cpus, gpus=gpus))


def _list(asked: Path | None, default: Path, *, as_json: bool) -> None:
    """All entries, with their status in the folder that was asked for, or in that of this preset, which may be empty."""
    from credalens_paper.results.listing import list_entries
    from credalens_paper.results.rendering.markdown import markdown_table

    folder = asked or default
    empty = asked is None and not any(default.glob("*.json"))
    entries = list_entries(None if empty else folder)
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in entries]))
        return
    rows = [[entry.label, entry.kind, entry.status, entry.description] for entry in entries]
    typer.echo(markdown_table(["Label", "Kind", "Status", "What it shows"], rows))
    note = "holds no results yet" if empty else "was looked at for results"
    typer.echo(f"{folder} {note}; --from-results FOLDER, or --out and --preset, name another place.", err=True)


def _print(result: Result) -> None:
    from credalens_paper.results.rendering.pages import render_result

    typer.echo(render_result(result) + "\n")


def _hide(result: Result) -> None:
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
    *,
    as_json: bool,
) -> None:
    from credalens.storage import atomic_file
    from credalens_paper.findings.document import render_findings
    from credalens_paper.findings.results_pages import write_pages
    from credalens_paper.json_records import to_json

    if markdown is not None:
        write_pages(results, markdown)
    if findings is not None:
        with atomic_file(findings) as file:
            file.write(render_findings(results).encode())
    if as_json:
        typer.echo(json.dumps({"results": to_json(results), "unfinished": unfinished}))
    for label, why in unfinished.items():
        typer.echo(f"{label}: {why}.", err=True)
