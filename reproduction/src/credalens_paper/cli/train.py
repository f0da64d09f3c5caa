"""``credalens train``: the members of an ensemble, Bayesian networks, or a distilled network, into a folder."""

from __future__ import annotations

import json
import math
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from credalens.checks.options import check_choice, count_text
from credalens.cli.shared_options import PANEL, Address, Engine, check_engine
from credalens.storage import save_predictions
from credalens.storage.atomic import check_file, check_folder, check_no_input

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from credalens_paper.data import ImageSet
    from credalens_paper.ray_tasks import Done
    from credalens_paper.training.spec import TrainSpec


def _name(text: str) -> Any:
    return typer.Option(metavar="NAME", help=text)


def _count(text: str, **more: Any) -> Any:
    return typer.Option(metavar="N", min=1, help=text, **more)


def _path(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text, show_default=False)


PREDICTIONS: Final = (
    "Write what the members predict on the test split, with its labels: .npz, .parquet, .safetensors; an older file is "
    "replaced."
)
SIZE: Final[Any] = typer.Option(
    metavar="PIXELS",
    min=8,
    help="Side of the images, or features of texts.",
    show_default="32; 224 for large networks; digits 8; texts 1024",
)
PRECISION: Final[Any] = typer.Option(help="auto, float32 or bfloat16; auto is bfloat16 on CUDA.", rich_help_panel="Run")
CPUS: Final = "as many threads as torch has here; 1 with a GPU"
GPUS: Final = "1 if the cluster has one"
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, ...", show_default="CUDA if there is one", rich_help_panel="Run")
]
SideBySide = Annotated[int, _count("Networks trained at once on the device.", rich_help_panel="Run")]
Cpus = Annotated[int | None, _count("CPUs and threads of each network.", show_default=CPUS, rich_help_panel=PANEL)]
Gpus = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", min=0, help="Share of a GPU for each network.", show_default=GPUS, rich_help_panel=PANEL
    ),
]
JSON: Final[Any] = typer.Option("--json", help="Print the results as JSON and no progress bar.", rich_help_panel="Run")


def train(
    data: Annotated[str, _name("cifar10, cifar100, svhn, imagenet, clinc150, digits, ...")],
    folder: Annotated[
        Path | None, _path("FOLDER", "Where the data set is; digits, textures and photos need none.")
    ] = None,
    backbone: Annotated[
        str, _name("vgg16, resnet18, resnet50, efficientnet_b2, efficientnet_lite0, vit_base; mlp for texts.")
    ] = "resnet18",
    method: Annotated[str, _name("ensemble, bnnr, bnnf, edd or edd_fair (from an ensemble's members).")] = "ensemble",
    members: Annotated[int, _count("Networks, from the seeds 0 to N - 1.")] = 5,
    schedule: Annotated[str, _name("fast, paper (100 to 150 epochs) or smoke (a few steps).")] = "fast",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write; what is there is kept.")] = Path("runs"),
    predictions: Annotated[Path | None, _path("FILE", PREDICTIONS)] = None,
    samples: Annotated[int, _count("Samples of each Bayesian network's prediction.")] = 5,
    epochs: Annotated[int | None, _count("Stretch or shorten the schedule.", show_default=False)] = None,
    width: Annotated[float, typer.Option(metavar="FACTOR", help="Multiplies the number of channels.")] = 1.0,
    size: Annotated[int | None, SIZE] = None,
    pretrained: Annotated[str | None, _path("FOLDER", "Weights to start from.")] = None,
    device: Device = None,
    side_by_side: SideBySide = 1,
    precision: Annotated[str, PRECISION] = "auto",
    as_json: Annotated[bool, JSON] = False,
    engine: Engine = "local",
    address: Address = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
) -> None:
    """Train networks whose predictions can be wrapped: a deep ensemble, Bayesian networks, or a distilled network.

    Each network gets a folder with model.safetensors, history.json and spec.json. Finished ones are kept. A run that was
    interrupted or killed goes on from its last checkpoint, of which there is one a minute, when the same command is given
    again, and ends with the weights that it would have had anyway.

    **Examples**

        credalens train --data digits --width 0.25 --members 3 --predictions members.npz
        credalens train --data cifar10 --folder data --backbone resnet18 --members 5 --side-by-side 5
        credalens train --data cifar10 --folder data --method edd --members 5 --schedule paper
        credalens train --data cifar10 --folder data --members 50 --engine ray --address head:6379 --out /shared/runs
    """
    from credalens.engines.cluster import ray_cluster
    from credalens_paper.backbones import build_backbone
    from credalens_paper.data import normalization
    from credalens_paper.ray_tasks import for_each, network_request
    from credalens_paper.training.devices import PRECISIONS, TrainingData, find_device, named_device
    from credalens_paper.training.network_folder import predict_network
    from credalens_paper.training.train_networks import train_models, train_models_on_ray

    on_ray = check_engine(engine, address=address, cpus=cpus, gpus=gpus)
    if on_ray and side_by_side != 1:
        raise typer.BadParameter("--side-by-side is for --engine local; on Ray, --gpus 0.2 puts five members on a GPU.")
    if math.isinf(width):
        raise typer.BadParameter("--width multiplies the number of channels and must be finite, got inf.")
    check_folder(out)
    if predictions is not None:
        if check_file(predictions).suffix not in (".npz", ".parquet", ".safetensors"):
            raise typer.BadParameter(f"--predictions ends in .npz, .parquet or .safetensors, got {predictions}.")
        check_no_input([predictions], [] if folder is None else folder.rglob("*"))
    check_choice(precision, PRECISIONS, "precision")
    if not on_ray:
        find_device(device)
    elif device is not None:  # other machines may have one that this one lacks, but a name must be one
        named_device(device)

    pixels = size or _usual_size(data, backbone)
    network = {"backbone": backbone, "width": width, "image_size": pixels, "pretrained": pretrained}
    specs_for = partial(ensemble_specs, method, members, data=data, schedule=schedule, **network)
    specs_for(classes=2)  # whatever the data, so that bad options are refused before any are read
    images, test = _load(data, folder, "train", pixels), None
    try:
        test = _load(data, folder, "test", pixels)
    except FileNotFoundError:
        if predictions is not None:  # else nobody asked for predictions of the test split
            raise
    specs, tasks = specs_for(classes=len(images.class_names)), list[Any]()

    def report(task: Done[TrainSpec, Any]) -> None:
        tasks.append(task)
        if not as_json:
            typer.echo(f"{task.item.key}: done, {task.seconds:.1f} s on {task.worker}", err=True)

    training = TrainingData(images.images, images.labels, *normalization(images.name))
    where: dict[str, Any] = {"device": device, "precision": precision}
    how: dict[str, Any] = {"build": build_backbone, "epochs": epochs, **where}
    share: dict[str, Any] = {"cpus": cpus, "gpus": gpus}
    probs: list[NDArray[np.float32]] = []
    try:
        with ray_cluster(address) if on_ray else nullcontext():
            if on_ray:
                networks = train_models_on_ray(specs, training, out, **how, **share, done=report)
            else:
                log = None if as_json or sys.stderr.isatty() else partial(typer.echo, err=True)
                options: dict[str, Any] = {"side_by_side": side_by_side, "progress": not as_json, "log": log}
                networks = train_models(specs, training, out, **how, **options)
            if test is not None:
                asked: dict[str, Any] = {"images": test.images, "samples": samples, **where}
                predict = partial(predict_network, folder=out.absolute(), **asked)
                tasks_of = network_request(device, **share) if on_ray else None
                probs = for_each(predict, specs, tasks_of, done=report) if tasks_of else list(map(predict, specs))
    except KeyboardInterrupt:
        typer.echo(
            "interrupted; the same command goes on from the last checkpoints, which are made once a minute.", err=True
        )
        raise typer.Exit(130) from None
    summary: dict[str, Any] = {"networks": []}
    for result in networks:
        last, seconds = result.history[-1], round(sum(record.seconds for record in result.history), 1)
        row = {"key": result.spec.key, "folder": str(result.folder), "trained": result.trained, "epochs": last.epoch}
        summary["networks"].append({**row, "loss": last.loss, "accuracy": last.accuracy, "seconds": seconds})
    if test is not None:
        import numpy as np

        for row, one in zip(summary["networks"], probs, strict=True):
            row["test_accuracy"] = _accuracy(one, test)
        students = [one for result, one in zip(networks, probs, strict=True) if result.spec.distilled]
        together = np.concatenate(students or probs)  # all networks, or the student alone
        summary |= {"members": len(together), "test_accuracy": _accuracy(together, test)}
        if predictions is not None:
            save_predictions(predictions, together, test.labels)
    if on_ray:
        summary |= {"workers": len({task.worker for task in tasks}), "retries": sum(task.retries for task in tasks)}
    typer.echo(json.dumps(summary)) if as_json else _print(summary, predictions)


def ensemble_specs(method: str, members: int, /, **fields: Any) -> list[TrainSpec]:
    """The networks of an "ensemble", of "bnnr" or "bnnf" from the seeds 0 to ``members`` - 1, or a student and its teachers.

    The field ``pretrained`` is here the folder of the weights to start from.

    >>> fields = {"data": "cifar10", "backbone": "vgg16", "schedule": "fast", "classes": 10}
    >>> [spec.method for spec in ensemble_specs("edd", 2, **fields)]
    ['snn', 'snn', 'edd']
    """
    from credalens_paper.backbones import IMAGE, TEXT, open_pretrained
    from credalens_paper.data import has_texts
    from credalens_paper.training.spec import DISTILLED, ESTIMATORS, METHODS, TrainSpec

    check_choice(method, ("ensemble", *METHODS[1:]), "method")
    check_choice(fields["backbone"], (TEXT,) if has_texts(fields["data"]) else IMAGE, "backbone")
    if fields.get("pretrained") is not None:
        weights = open_pretrained(fields["pretrained"], fields["backbone"])
        fields |= {"pretrained": weights.digest, "weights": weights.folder}
    kind = method if method in ESTIMATORS else "snn"
    specs = [TrainSpec(method=kind, seed=seed, **fields) for seed in range(members)]
    if method in DISTILLED:
        specs.append(TrainSpec(method=method, seed=0, teachers=tuple(range(members)), **fields))
    return specs


def _usual_size(data: str, backbone: str) -> int:
    from credalens_paper.backbones import LARGE, LITE
    from credalens_paper.data import DATA_SETS, has_texts
    from credalens_paper.data.texts import FEATURES

    if backbone in (*LARGE, LITE):
        return 224
    if has_texts(data):
        return FEATURES
    return 32 if data in DATA_SETS else 8


def _load(data: str, folder: Path | None, split: str, pixels: int) -> ImageSet:
    """Photographs of any shape are cut to size when they are read; the others are resized on the device."""
    from credalens_paper.data import DATA_SETS, has_texts, load_images

    needs_size = data not in DATA_SETS or DATA_SETS[data].crop or has_texts(data)
    return load_images(data, folder, split=split, size=pixels if needs_size else None)


def _accuracy(members: NDArray[np.float32], test: ImageSet) -> float:
    """Accuracy of the averaged prediction."""
    return float((members.mean(0).argmax(-1) == test.labels).mean())


def _print(summary: dict[str, Any], predictions: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table()
    table.add_column("network", overflow="fold")
    for name in ("epochs", "loss", "accuracy", "test", "seconds"):
        table.add_column(name, justify="right")
    for row in summary["networks"]:
        test = f"{100 * row['test_accuracy']:.2f} %" if "test_accuracy" in row else "-"
        numbers = (str(row["epochs"]), f"{row['loss']:.4f}", f"{100 * row['accuracy']:.2f} %", test)
        table.add_row(row["key"] + ("" if row["trained"] else " (kept)"), *numbers, f"{row['seconds']:.1f}")
    console.print(table)
    if "workers" in summary:
        workers, retries = count_text(summary["workers"], "worker"), count_text(summary["retries"], "retry", "retries")
        console.print(f"{workers}; {retries}.")
    if "members" in summary:
        accuracy = f"{100 * summary['test_accuracy']:.2f} %"
        console.print(f"Averaged prediction of {summary['members']}: {accuracy} correct on the test split.")
    else:
        console.print("No test split was found, so nothing was predicted.")
    if predictions is not None:
        console.print(f"Written to {predictions}", soft_wrap=True, markup=False)
