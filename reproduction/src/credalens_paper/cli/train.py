"""``credalens train``: the members of an ensemble, Bayesian networks, or a distilled network, into a folder."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from credalens.cli.engine import Address, Cpus, Device, Engine, Gpus, SideBySide, check_engine
from credalens.cli.targets import check_file, check_folder
from credalens_paper.cli.train_engine import LocalTrainer, RayTrainer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from credalens_paper.data import ImageSet
    from credalens_paper.training.run import TrainResult, TrainSpec

__all__ = ["train"]


def train(
    data: Annotated[str, typer.Option(metavar="NAME", help="cifar10, cifar100, svhn, imagenet, digits, ...")],
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where the data set is; digits, textures and photos need none.", show_default=False
        ),
    ] = None,
    backbone: Annotated[
        str, typer.Option(metavar="NAME", help="vgg16, resnet18, resnet50, efficientnet_b2 or vit_base.")
    ] = "resnet18",
    method: Annotated[
        str, typer.Option(metavar="NAME", help="ensemble, bnnr, bnnf, edd or edd_fair (from an ensemble's members).")
    ] = "ensemble",
    members: Annotated[int, typer.Option(metavar="N", min=1, help="Networks, from the seeds 0 to N - 1.")] = 5,
    schedule: Annotated[
        str, typer.Option(metavar="NAME", help="fast, paper (100 to 150 epochs) or smoke (a few steps).")
    ] = "fast",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write; what is there is kept.")] = Path("runs"),
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what the members predict on the test split, with its labels: .npz, .parquet, .safetensors; an "
            "older file is replaced.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Samples of each Bayesian network's prediction.")
    ] = 5,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Stretch or shorten the schedule.", show_default=False)
    ] = None,
    width: Annotated[float, typer.Option(metavar="FACTOR", help="Multiplies the number of channels.")] = 1.0,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="PIXELS", min=8, help="Side of the images.", show_default="32; 224 for large networks; digits 8"
        ),
    ] = None,
    pretrained: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Weights to start from.", show_default=False)
    ] = None,
    device: Device = None,
    side_by_side: SideBySide = 1,
    precision: Annotated[
        str, typer.Option(help="auto, float32 or bfloat16; auto is bfloat16 on CUDA.", rich_help_panel="Run")
    ] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as JSON and no progress bar.", rich_help_panel="Run")
    ] = False,
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
    on_ray = check_engine(engine, address=address, cpus=cpus, gpus=gpus)
    if on_ray and side_by_side != 1:
        raise typer.BadParameter("--side-by-side is for --engine local; on Ray, --gpus 0.2 puts five members on a GPU.")
    check_folder(out)
    _check_predictions(predictions)
    _check_device(device, precision, elsewhere=on_ray)
    pixels = size or _usual_size(data, backbone)
    shape = {"backbone": backbone, "width": width, "image_size": pixels, "pretrained": pretrained}
    specs_for = partial(_specs, method, members, data=data, schedule=schedule, **shape)
    specs_for(classes=2)  # whatever the data, so that bad options are refused before any are read
    training, test = _load(data, folder, "train", pixels), _test_split(data, folder, pixels, predictions)
    specs = specs_for(classes=len(training.class_names))
    options: dict[str, Any] = {"device": device, "precision": precision}
    local = nullcontext(LocalTrainer(side_by_side=side_by_side, shown=not as_json))
    try:
        with RayTrainer.on(address, cpus=cpus, gpus=gpus, shown=not as_json) if on_ray else local as trainer:
            results = trainer.train(specs, _training_data(training), out, epochs=epochs, **options)
            probs = None
            if test is not None:
                predict = partial(_predict, out=out.absolute(), test=test, samples=samples, **options)
                probs = trainer.predict(predict, specs)
    except KeyboardInterrupt:
        typer.echo(
            "interrupted; the same command goes on from the last checkpoints, which are made once a minute.", err=True
        )
        raise typer.Exit(130) from None
    summary: dict[str, Any] = {"networks": [_row(result) for result in results], **trainer.about()}
    if probs is not None and test is not None:
        _add_accuracy(summary, specs, probs, test)
        if predictions is not None:
            _save(predictions, _members(specs, probs), test)
    typer.echo(json.dumps(summary)) if as_json else _print(summary, predictions)


def _specs(method: str, members: int, **shared: Any) -> list[TrainSpec]:
    from credalens.checks.options import check_choice
    from credalens_paper.backbones import BACKBONES, check_pretrained
    from credalens_paper.training.run import TrainSpec

    check_choice(method, ("ensemble", "bnnr", "bnnf", "edd", "edd_fair"), "method")
    check_choice(shared["backbone"], BACKBONES, "backbone")
    if shared["pretrained"] is not None:
        check_pretrained(shared["pretrained"], shared["backbone"])
    if math.isinf(shared["width"]):
        raise typer.BadParameter("--width multiplies the number of channels and must be finite, got inf.")
    kind = method if method.startswith("bnn") else "snn"
    specs = [TrainSpec(method=kind, seed=seed, **shared) for seed in range(members)]
    if not method.startswith("edd"):
        return specs
    return [*specs, TrainSpec(method=method, seed=0, teachers=tuple(range(members)), **shared)]


def _check_predictions(path: Path | None) -> None:
    if path is not None and check_file(path).suffix not in (".npz", ".parquet", ".safetensors"):
        raise typer.BadParameter(f"--predictions ends in .npz, .parquet or .safetensors, got {path}.")


def _check_device(device: str | None, precision: str, *, elsewhere: bool) -> None:
    """Other machines may have a device that this one lacks, but a name must be one."""
    from credalens.checks.options import check_choice
    from credalens_paper.training.devices import PRECISIONS, find_device, named_device

    check_choice(precision, PRECISIONS, "precision")
    if not elsewhere:
        find_device(device)
    elif device is not None:
        named_device(device)


def _usual_size(data: str, backbone: str) -> int:
    from credalens_paper.data import DATA_SETS
    from credalens_paper.training.schedules import LARGE

    if backbone in LARGE:
        return 224
    return 32 if data in DATA_SETS else 8


def _load(data: str, folder: Path | None, split: str, pixels: int) -> ImageSet:
    """Photographs of any shape are cut to size when they are read; the others are resized on the device."""
    from credalens_paper.data import DATA_SETS, load_images

    needs_size = data not in DATA_SETS or DATA_SETS[data].crop
    return load_images(data, folder, split=split, size=pixels if needs_size else None)


def _test_split(data: str, folder: Path | None, pixels: int, predictions: Path | None) -> ImageSet | None:
    """The test split, or None where there is none and nobody asked for its predictions."""
    try:
        return _load(data, folder, "test", pixels)
    except FileNotFoundError:
        if predictions is not None:
            raise
        return None


def _training_data(images: ImageSet) -> Any:
    from credalens_paper.data import normalization
    from credalens_paper.training.run import TrainingData

    mean, std = normalization(images.name)
    return TrainingData(images.images, images.labels, mean, std)


def _predict(
    spec: TrainSpec, /, *, out: Path, test: ImageSet, samples: int, device: str | None, precision: str
) -> NDArray[np.float32]:
    """Class distributions (members, images, classes) of one network on the test split."""
    import torch

    from credalens_paper.backbones import build_backbone
    from credalens_paper.data import normalization
    from credalens_paper.training.dirichlet import expected_probability
    from credalens_paper.training.run import load_model, predict_concentrations, predict_members

    model = load_model(spec, out, build=build_backbone, device=device)
    mean, std = normalization(spec.data)
    options: dict[str, Any] = {"mean": mean, "std": std, "image_size": spec.image_size, "device": device}
    if spec.distilled:
        alpha = predict_concentrations(model, test.images, **options, precision=precision)
        return expected_probability(torch.from_numpy(alpha)).numpy()[None]
    count = samples if spec.bayesian else 1
    return predict_members(model, test.images, **options, precision=precision, samples=count, seed=spec.seed)


def _row(result: TrainResult) -> dict[str, Any]:
    last = result.history[-1]
    return {
        "key": result.spec.key,
        "folder": str(result.folder),
        "trained": result.trained,
        "epochs": last.epoch,
        "loss": last.loss,
        "accuracy": last.accuracy,
        "seconds": round(sum(record.seconds for record in result.history), 1),
    }


def _members(specs: list[TrainSpec], probs: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The predictions to use together: of all networks, or of the student alone."""
    import numpy as np

    students = [values for spec, values in zip(specs, probs, strict=True) if spec.distilled]
    return np.concatenate(students or probs)


def _add_accuracy(
    summary: dict[str, Any], specs: list[TrainSpec], probs: list[NDArray[np.float32]], test: ImageSet
) -> None:
    for row, values in zip(summary["networks"], probs, strict=True):
        row["test_accuracy"] = _accuracy(values, test)
    members = _members(specs, probs)
    summary |= {"members": len(members), "test_accuracy": _accuracy(members, test)}


def _accuracy(members: NDArray[np.float32], test: ImageSet) -> float:
    """Accuracy of the averaged prediction."""
    return float((members.mean(0).argmax(-1) == test.labels).mean())


def _save(path: Path, members: NDArray[np.float32], test: ImageSet) -> None:
    from credalens.storage import save_predictions

    save_predictions(path, members, test.labels)


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
        retries = f"{summary['retries']} retr{'y' if summary['retries'] == 1 else 'ies'}"
        console.print(f"{summary['workers']} workers; {retries}.")
    if "members" in summary:
        accuracy = f"{100 * summary['test_accuracy']:.2f} %"
        console.print(f"Averaged prediction of {summary['members']}: {accuracy} correct on the test split.")
    else:
        console.print("No test split was found, so nothing was predicted.")
    if predictions is not None:
        console.print(f"Written to {predictions}", soft_wrap=True, markup=False)
