"""Train, predict, save, evaluate, report: the way any user would go, on data that come with scikit-learn."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from credalens.demo import digits as known
from credalens.demo import strangers
from credalens.evaluation.evaluate import Evaluation, evaluate
from credalens.evaluation.sources import Progress
from credalens.report.files import atomic_folder, write_report_files
from credalens.storage import save_predictions

__all__ = ["Demo", "check_seed", "run_demo"]

TITLE = "Credal report: five small networks on digits"
PREDICTIONS = "predictions"
LARGEST_SEED = 2**32 - 1  # of scikit-learn's random states


@dataclass(frozen=True, eq=False)
class Demo:
    """Where everything was written, and what was found."""

    folder: Path
    evaluation: Evaluation
    command: str
    """The command that makes the same report from the saved predictions."""


def run_demo(
    folder: str | os.PathLike[str],
    /,
    *,
    seed: int = 0,
    count: int = 900,
    epochs: int = 20,
    progress: Progress | None = None,
) -> Demo:
    """Five networks on one half of the digits, tested on the other half and on ``count`` images of three other kinds.

    ``folder`` then holds the report, its numbers, a threshold, and the members' predictions to evaluate again. The
    same seed gives the same files.
    """
    check_seed(seed)
    report = progress or (lambda what, done, of: None)
    target = Path(folder)
    with atomic_folder(target) as scratch:
        data = known.load(seed)
        report("training", 0, known.MEMBERS)
        networks = known.train(data, epochs=epochs, report=lambda done: report("training", done, known.MEMBERS))
        images = {"digits": data.test_images, **_strangers(data.test_images, count, seed, report)}
        members = {name: known.predict(networks, given) for name, given in images.items()}
        _save(scratch / PREDICTIONS, members, data.test_labels)
        others = {name: given for name, given in members.items() if name != "digits"}
        found = evaluate(members["digits"], others, labels=data.test_labels, id_name="digits", progress=report)
        shown = {name: np.round(255 * given).astype(np.uint8) for name, given in images.items()}
        write_report_files(found, scratch, title=TITLE, images=shown)
    return Demo(target, found, _command(target, list(others)))


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


def _strangers(
    test_images: NDArray[np.float64], count: int, seed: int, report: Progress
) -> dict[str, NDArray[np.float64]]:
    makers = {
        "letters": partial(strangers.letters, count),
        "photos": partial(strangers.photos, count),
        "textures": partial(strangers.textures, count),
        "corrupted digits": partial(strangers.corrupted, test_images),
    }
    rng, made = np.random.default_rng(seed), {}
    for done, (name, make) in enumerate(makers.items(), start=1):
        report("images", done - 1, len(makers))
        made[name] = make(rng)
        report("images", done, len(makers))
    return made


def _save(folder: Path, members: dict[str, NDArray[np.float64]], labels: NDArray[np.int64]) -> None:
    folder.mkdir()
    for name, probs in members.items():
        save_predictions(folder / _file(name), probs, labels if name == "digits" else None)


def _file(name: str) -> str:
    return f"{name.replace(' ', '-')}.npz"


def _command(folder: Path, others: list[str]) -> str:
    saved = folder / PREDICTIONS
    parts = ["credalens", "evaluate", "--id", str(saved / _file("digits"))]
    for name in others:
        parts += ["--ood", f"{name}={saved / _file(name)}"]
    return shlex.join([*parts, "-o", f"{folder}-again"])
