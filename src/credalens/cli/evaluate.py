"""``credalens evaluate``: ID predictions, and OOD ones if any, in, a table, a JSON file and an HTML report out."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credalens.checks.options import escaped
from credalens.cli.shared_options import (
    PREDICTION_FILES,
    Base,
    Count,
    File,
    MaxBytes,
    MemberAxis,
    Named,
    RecalibrationFile,
    Run,
    progress_bar,
    read_recalibration,
)

if TYPE_CHECKING:
    from rich.console import Console

    from credalens.evaluation import Evaluation, ModelComparison
    from credalens.storage import Predictions


def evaluate(
    id_file: Annotated[Path, File("--id",
        help=f"Members' predictions for in-distribution data, {PREDICTION_FILES}.",
    )],
    output: Annotated[Path, Named("--output", "-o", metavar="FOLDER", help="Where to write the report.")],
    ood: Annotated[list[str] | None, Named("--ood", metavar="NAME=FILE",
        help="Members' predictions for data that are out of distribution; give it once for each data set. Without it, labels "
        "are needed, and nothing is said about OOD detection.",
    )] = None,
    labels: Annotated[Path | None, File(
        help="True classes of the in-distribution rows; not needed if the file of --id contains labels.",
    )] = None,
    logits: Annotated[bool, typer.Option("--logits", help="All predictions are logits, not probabilities.")] = False,
    recalibration: RecalibrationFile = None,
    member_axis: MemberAxis = None,
    classes: Annotated[Path | None, File(help="Text file with the names of the classes, one per line.")] = None,
    model: Annotated[list[str] | None, Named("--model", metavar="NAME=FOLDER",
        help="Compare models on the same inputs. Each folder contains the files that --id and --ood name; the other models are "
        "compared with the first.",
    )] = None,
    title: Annotated[str, Named(metavar="TEXT", help="Title of the page.")] = "",
    name: Annotated[str, typer.Option(metavar="TEXT", help="Name of the in-distribution data.")] = "in-distribution",
    images: Annotated[Path | None, File(
        help="Pictures of the inputs: an .npz with an array for each data set, under its name, or an .npy for --id. Bytes or "
        "floats from 0 to 1, channels last or first.",
    )] = None,
    groups: Annotated[Path | None, File(
        help="Columns of the in-distribution rows, such as site or month. Accuracy and false alarms are compared by their "
        "values. A .csv with a heading, or .parquet.",
    )] = None,
    figures: Annotated[bool, typer.Option(
        "--figures", help="Also write every chart as PNG and SVG, into FOLDER/figures.",
    )] = False,
    full_paths: Annotated[bool, typer.Option(
        "--full-paths", help="Keep the folders of files, as typed, in report.json and at the foot of the page.",
    )] = False,
    false_alarm_rate: Annotated[float, typer.Option(
        metavar="RATE", help="Share of in-distribution inputs that the threshold may flag.",
    )] = 0.05,
    base: Base = "2",  # type: ignore[assignment]
    bins: Annotated[int, Count(help="Number of bins of the calibration error.")] = 15,
    replicates: Annotated[int, Run(metavar="N", min=40,
        help="Bootstrap draws for the intervals of AUPRC and FPR95; a 95 % interval needs at least 40.",
    )] = 300,
    seed: Annotated[int, Run(metavar="N", min=0, help="Seed of those draws.")] = 0,
    threads: Annotated[int | None, Count(help="Threads; by default all cores.", rich_help_panel="Run")] = None,
    max_bytes: MaxBytes = None,
    as_json: Annotated[bool, Run("--json", help="Print the results as JSON, without a progress bar.")] = False,
) -> None:  # fmt: skip
    """Evaluate saved predictions: are credal predictions better than averaged ones, and does uncertainty detect OOD data?

    Writes FOLDER/report.html, one page that opens without a network, FOLDER/report.json with all numbers, and
    FOLDER/guard.json, a guard for the recommended score (see credalens guard). The files appear when everything is done; an
    older report in the folder is replaced. They name files without their folders, unless --full-paths is given.

    **Examples**

        credalens evaluate --id test.npz --ood svhn=svhn.npz -o report
        credalens evaluate --id test.npz --labels labels.npy -o report
        credalens evaluate --id test.npy --labels labels.npy --ood svhn=svhn.npy --ood noise=noise.npy -o report
        credalens evaluate --id test.npz --groups sites.csv --images images.npz --title "Clinic, May" -o report
        credalens evaluate --model small=a --model large=b --id test.npz --ood svhn=svhn.npz -o comparison
        credalens evaluate --id test.parquet --ood svhn=svhn.parquet --logits --figures --json -o report
    """
    from credalens.cli.side_files import made_by, read_class_names, read_groups, read_images
    from credalens.evaluation import compare_models
    from credalens.evaluation import evaluate as evaluate_members
    from credalens.report.files import NAMES, older_report, write_report
    from credalens.storage import open_predictions
    from credalens.storage.atomic import check_folder, check_no_input

    check_folder(output, option="--output")
    ood_files, models = _named_files("--ood", ood or []), _named_files("--model", model or [])
    read = [folder / path for folder in models.values() or [Path()] for path in (id_file, *ood_files.values())]
    inputs = [*read, labels, classes, groups, images, recalibration]
    check_no_input([output / name for name in NAMES], inputs)
    check_no_input([output / name for name in older_report(output)], inputs)
    open_file = partial(open_predictions, logits=logits, max_bytes=max_bytes, member_axis=member_axis)
    options: dict[str, Any] = {
        "recalibration": read_recalibration(recalibration),
        "logits": logits, "id_name": name, "false_alarm_rate": false_alarm_rate, "base": base, "bins": bins,
        "replicates": replicates, "seed": seed, "full_paths": full_paths, "threads": threads,
        "groups": None if groups is None else read_groups(groups, max_bytes=max_bytes),
        "images": None if images is None else read_images(images, max_bytes=max_bytes),
    }  # fmt: skip
    made = [made_by(full_paths=full_paths)]

    def evaluated(folder: Path, progress: Any) -> Evaluation:
        members = open_file(folder / id_file)
        return evaluate_members(
            members,
            labels=labels_of(labels, members, max_bytes),
            ood={of: open_file(folder / path) for of, path in ood_files.items()},
            class_names=None if classes is None else read_class_names(classes, members.classes),
            progress=progress,
            **options,
        )

    with progress_bar(hidden=as_json) as progress:
        if models:
            comparison = compare_models({of: evaluated(folder, progress) for of, folder in models.items()})
            comparison.report(output, title=title, made=made)
        else:
            evaluation = evaluated(Path(), progress)
            write_report(evaluation, output, title=title, figures=figures, made=made, progress=progress)
    if as_json:
        result = comparison.as_dict() if models else evaluation.headline()
        typer.echo(escaped(json.dumps({"report": str(output / "report.html"), **result}, ensure_ascii=False)))
    elif models:
        _print_comparison(comparison, output)
    else:
        print_evaluation(evaluation, output)


def _named_files(option: str, pairs: list[str]) -> dict[str, Path]:
    named: dict[str, Path] = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (name.strip() and equals and path):
            wanted = "NAME=FOLDER, such as small=a" if option == "--model" else "NAME=FILE, such as svhn=svhn.npz"
            raise typer.BadParameter(f"{option} {pair!r}: write {wanted}.")
        if name in named:
            raise typer.BadParameter(f"{option} {name!r} is given twice; each needs its own name.")
        named[name] = Path(path)
        if option == "--model" and not named[name].is_dir():
            raise typer.BadParameter(f"--model {name}={path}: is not a folder.")
    if option == "--model" and len(named) == 1:
        raise typer.BadParameter("--model is given once; a comparison needs two models or more.")
    return named


def labels_of(path: Path | None, members: Predictions, max_bytes: int | None) -> Any:
    """The labels of a file, or those that stand beside the predictions; None where there are none."""
    from credalens.storage import read_labels

    source = path or (members.path if members.has_labels else None)
    if source is None:
        return None
    return read_labels(source, rows=members.rows, classes=members.classes, max_bytes=max_bytes)


def print_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """The tables, the summary, and where the report is."""
    from rich.console import Console

    from credalens.report.terminal import print_result

    console = Console(highlight=False)
    print_result(evaluation, console)
    _print_place(console, folder)


def _print_comparison(comparison: ModelComparison, folder: Path) -> None:
    from rich.console import Console

    from credalens.report.comparison import models_table, sentence
    from credalens.report.terminal import to_rich

    console = Console(highlight=False)
    console.print(to_rich(models_table(comparison, caught=False), console))
    for one in comparison.differences:
        console.print(escaped(sentence(comparison, one)), markup=False)
    _print_place(console, folder)


def _print_place(console: Console, folder: Path) -> None:
    console.print(f"\nReport: {escaped((folder / 'report.html').resolve())}", soft_wrap=True, markup=False)
