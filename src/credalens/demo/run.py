"""Real networks first; then train, predict, save, evaluate, report: the way any user would go."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from credalens.checks.options import needing
from credalens.datasets import cifar10_ensemble
from credalens.demo import digits, ood_images
from credalens.evaluation import Evaluation, evaluate
from credalens.storage import save_predictions
from credalens.storage.atomic import atomic_folder
from credalens.storage.source import Progress

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = 3000


def evaluate_real_networks(*, rows: int = ROWS, progress: Progress | None = None) -> Evaluation:
    """Evaluate how well their uncertainty finds SVHN and Tiny-ImageNet, on the first ``rows`` images of each test set."""
    shipped = cifar10_ensemble()
    ood = {"SVHN": shipped.svhn[:, :rows], "Tiny-ImageNet": shipped.tiny_imagenet[:, :rows]}
    return evaluate(shipped.cifar10[:, :rows], ood, id_name="CIFAR-10", class_names=CLASSES, progress=progress)


TITLE = "Credal report: five small networks on digits"
REAL_TITLE = "Credal report: five ResNet-18 on CIFAR-10"
DIGITS = "digits"
LARGEST_SEED = 2**32 - 1  # of scikit-learn's random states


@dataclass(frozen=True, eq=False)
class Demo:
    """Where everything was written, and both evaluations.

    :ivar command: makes the report of the small ones again from their saved predictions.
    """

    folder: Path
    real: Evaluation
    digits: Evaluation
    command: str


def run_demo(
    folder: str | os.PathLike[str], /, *, seed: int = 0, count: int = 900, epochs: int = 20, real_rows: int = ROWS,
    made: Sequence[str] = (), progress: Progress | None = None,
) -> Demo:  # fmt: skip
    """Real networks on CIFAR-10, SVHN and Tiny-ImageNet; small ones on digits and ``count`` images of three other kinds.

    ``folder`` then holds the report of the real ones, and in ``digits`` that of the small ones with the predictions of their
    members, to evaluate again; ``made`` are lines for the foot of both pages. The same seed gives the same files.
    """
    check_seed(seed)
    for package in ("sklearn", "matplotlib", "jinja2", "vl_convert"):
        with needing(package, part="the demo", extra="all"):
            importlib.import_module(package)
    from credalens.report.files import check_apart, older_report

    report = progress or (lambda what, done, of: None)
    target = Path(folder)
    older = [*older_report(target), *(f"{DIGITS}/{name}" for name in older_report(target / DIGITS))]
    with atomic_folder(target, stale=older) as scratch:
        real = evaluate_real_networks(rows=real_rows, progress=report)
        real.report(scratch, title=REAL_TITLE, made=made)
        inner = scratch / DIGITS
        inner.mkdir()
        data = digits.load(seed)
        networks = digits.train(data, epochs=epochs, report=partial(report, "training"))
        rng = np.random.default_rng(seed)
        images = {DIGITS: data.test_images}
        images |= ood_images.make_all(data.test_images, count, rng, report=partial(report, "images"))
        members = {name: digits.predict(networks, pictures) for name, pictures in images.items()}
        (inner / "predictions").mkdir()
        for name, probs in members.items():
            save_predictions(_predictions(inner, name), probs, data.test_labels if name == DIGITS else None)
        labelled: dict[str, Any] = {"labels": data.test_labels, "id_name": DIGITS, "images": images}
        evaluation = evaluate(members.pop(DIGITS), members, **labelled, progress=report)
        evaluation.report(inner, title=TITLE, made=made)
        predictions = [_predictions(Path(DIGITS), name).as_posix() for name in images] if older else []
        check_apart(scratch, target, [*older, *predictions])
    return Demo(target, real, evaluation, _command(target / DIGITS, list(members)))


def check_seed(seed: int, /) -> int:
    """A seed that scikit-learn takes too.

    >>> check_seed(-1)
    Traceback (most recent call last):
    ValueError: seed must be a whole number from 0 to 4294967295; got -1.
    """
    problem = f"seed must be a whole number from 0 to {LARGEST_SEED}; got {seed!r}."
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise TypeError(problem)
    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(problem)
    return int(seed)


def _predictions(folder: Path, name: str) -> Path:
    return folder / "predictions" / f"{name.replace(' ', '-')}.npz"


def _command(folder: Path, ood_names: list[str]) -> str:
    parts = ["credalens", "evaluate", "--id", str(_predictions(folder, "digits"))]
    for name in ood_names:
        parts += ["--ood", f"{name}={_predictions(folder, name)}"]
    return shlex.join([*parts, "--name", "digits", "-o", f"{folder.parent}-again"])
