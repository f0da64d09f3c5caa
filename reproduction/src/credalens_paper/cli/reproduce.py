"""``credalens reproduce``: the paper's tables and figures by their labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from credalens.cli.shared_options import Address, Engine, check_engine
from credalens_paper.cli.train import Cpus, Device, Gpus, SideBySide

if TYPE_CHECKING:
    from credalens_paper.results.records import Result

NOTHING_MEASURED, TIME_IS_UP = 1, 3


def _option(text: str, metavar: str | None = None, /, *names: str) -> Any:
    """An option without a default to show."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=False)


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
    "Print result files of this folder; train nothing. Several: each label from the first that has it; --markdown counts "
    "the others too."
)
ADD_RUNS: Final = (
    "With --from-results: add the runs of the result files in this folder, later ones (--first-run) or those of another "
    "preset, and write what they were added to into OUT."
)
PRESET: Final = "smoke (minutes), fast (CIFAR, one GPU), scratch (large networks, small images), text (a CPU) or full."
OUT: Final = "Models, predictions, results: kept and reused."
ONLY: Final = "Work on this method (DE, ...), backbone or training set only."
SOLVER: Final = "SciPy's SLSQP beside the exact measures, on a subsample."
PRETRAINED: Final = "Weights of ResNet-50 for ImageNet, or of EfficientNet-Lite0."
FIRST_RUN: Final = "Leave out runs 0 to N - 1, which are measured elsewhere; see --add-runs."
MARKDOWN: Final = (
    "Write an index there too, and beside it a page for each result in tables/ and figures/ and one over all of them, in place "
    "of what is there."
)


def reproduce(
    labels: Annotated[list[str] | None, typer.Argument(metavar="LABEL", help=LABELS, show_default=False)] = None,
    list_them: Annotated[bool, typer.Option("--list", help=LIST)] = False,
    preset: Annotated[str, typer.Option(help=PRESET)] = "smoke",
    data_folder: Annotated[Path | None, _option("Where the data sets are.", "FOLDER")] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help=OUT)] = Path("runs"),
    from_results: Annotated[list[Path] | None, _option(FROM_RESULTS, "FOLDER")] = None,
    add_runs: Annotated[list[Path] | None, _option(ADD_RUNS, "FOLDER")] = None,
    markdown: Annotated[Path | None, _option(MARKDOWN, "FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    measure: Annotated[list[str] | None, _option("Another credal measure beside EU and TU.", "GH")] = None,
    only: Annotated[list[str] | None, _option(ONLY, "NAME")] = None,
    paper_solver: Annotated[bool, _option(SOLVER, None, "--paper-solver")] = False,
    pretrained: Annotated[str | None, _option(PRETRAINED, "FOLDER")] = None,
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
    first_run: Annotated[int | None, _size(FIRST_RUN, least=0)] = None,
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
    from credalens_paper.pages.result_page import render_result
    from credalens_paper.results.records import read_repeated, read_results

    on_ray = check_engine(engine, address=address, cpus=cpus, gpus=gpus)
    sizes = {"members": members, "many_members": many_members, "runs": runs, "bnn_runs": bnn_runs, "edd_runs": edd_runs}
    size = get_preset(preset).changed(**sizes, first_run=first_run).only(only or [])
    if list_them:
        return _list(from_results or [], out / preset / "results", as_json=as_json)
    pages = [] if markdown is None else [check_file(markdown)]
    folders = from_results or [out / preset / "results"]
    check_no_input(pages, (path for folder in (*folders, *(add_runs or [])) for path in folder.glob("*.json")))

    def show(result: Result) -> None:
        """Print a result; as JSON all are printed at the end."""
        if not as_json:
            typer.echo(render_result(result) + "\n")

    if from_results:
        wanted = check_labels(labels or ["all"])
        results = [result for result in read_results(*from_results) if result.label in wanted]
        if add_runs:
            from credalens_paper.pipeline.combine_runs import combine_all

            more = [result for folder in add_runs for result in read_results(folder)]
            results = combine_all(results, more, out)
        for result in results:
            show(result)
        return _write(results, {}, markdown, read_repeated(*from_results, labels=wanted), as_json=as_json)
    if add_runs:
        raise typer.BadParameter("--add-runs adds to the result files of --from-results FOLDER; give that too.")
    wanted = check_labels(labels or [])
    if only_train and only_predict:
        raise typer.BadParameter("--only-train stops before anything is predicted; give it or --only-predict.")
    if on_ray and side_by_side != 1:
        raise typer.BadParameter(
            "--side-by-side is for --engine local; on Ray, --gpus 0.2 puts five networks on a GPU."
        )

    from credalens.engines.cluster import ray_cluster
    from credalens_paper.pipeline import measure_entries
    from credalens_paper.pipeline.engines import RayPool, TorchEngine
    from credalens_paper.pipeline.plan import LEFT_OUT

    check_folder(out)
    stop_after = "train" if only_train else "predict" if only_predict else None
    machine: dict[str, Any] = {"device": device, "compile": compiled}
    try:
        with ray_cluster(address) if on_ray else nullcontext():
            pool: dict[str, Any] = {"pool": RayPool(**machine, cpus=cpus, gpus=gpus)} if on_ray else {}
            outcome = measure_entries.reproduce(
                wanted,
                preset=size,
                data_folder=data_folder,
                out=out,
                engine=TorchEngine(**machine, side_by_side=side_by_side, **pool),
                pretrained=pretrained,
                measures=measure or [],
                paper_solver=paper_solver,
                stop_after=stop_after,
                time_limit=time_limit,
                dtype=dtype,
                threads=threads,
                log=_log,
                finished=show,
            )
    except KeyboardInterrupt:
        _log("interrupted; the same command goes on from here when it is given again.")
        raise typer.Exit(130) from None
    _write(outcome.results, outcome.unfinished, markdown, as_json=as_json)
    if outcome.timed_out:
        raise typer.Exit(TIME_IS_UP)
    if stop_after is None and all(result.status == "not measured" for result in outcome.results):
        reasons = [part.reason for result in outcome.results for part in result.parts if part.reason is not None]
        first = next((reason for reason in reasons if LEFT_OUT not in reason), reasons[0])  # out of focus comes last
        _log(f"nothing was measured: {first}.")
        raise typer.Exit(NOTHING_MEASURED)
    return None


def _log(line: str) -> None:
    typer.echo(line, err=True)


def _list(asked: Sequence[Path], default: Path, *, as_json: bool) -> None:
    """All entries, with their status in the folders that were asked for, or in that of this preset, which may be empty."""
    from credalens_paper.experiments.index import DESCRIPTIONS, OURS
    from credalens_paper.experiments.paper_entries import TABLES
    from credalens_paper.pages.markdown import markdown_table
    from credalens_paper.results.records import read_results

    folders = asked or [default]
    empty = not asked and not any(default.glob("*.json"))
    status = {} if empty else {result.label: result.status for result in read_results(*folders)}
    kinds = {label: "ours" if label in OURS else "table" if label in TABLES else "figure" for label in DESCRIPTIONS}
    rows = [[label, kinds[label], status.get(label, "not measured"), text] for label, text in DESCRIPTIONS.items()]
    if as_json:
        names = ("label", "kind", "status", "description")
        return typer.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    typer.echo(markdown_table(["Label", "Kind", "Status", "What it shows"], rows))
    note = "holds no results yet" if empty else "was looked at for results"
    return _log(
        f"{', '.join(map(str, folders))} {note}; --from-results FOLDER, or --out and --preset, name another place."
    )


def _write(
    results: Sequence[Result],
    unfinished: dict[str, str],
    markdown: Path | None,
    repeated: Sequence[Result] = (),
    *,
    as_json: bool,
) -> None:
    from credalens_paper.json_records import to_json
    from credalens_paper.pages.write_pages import write_pages

    if markdown is not None:
        write_pages(results, markdown, repeated)
    if as_json:
        typer.echo(json.dumps({"results": to_json(results), "unfinished": unfinished}))
    for label, why in unfinished.items():
        _log(f"{label}: {why}.")
