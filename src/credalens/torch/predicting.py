"""A whole data set: progress, mixed precision, and a folder of parts from which an interrupted run goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from torch import Tensor

from credalens.arrays import ArrayKind
from credalens.checks.member_array import MemberArray
from credalens.checks.options import check_choice, check_count
from credalens.core.classical import ClassicalUncertainty
from credalens.prediction import CredalPrediction
from credalens.torch.batch_results import Arrays, BatchResults, InFolder, InMemory, digest, read_results
from credalens.torch.calling import call_of_batch, moved

if TYPE_CHECKING:
    from credalens.torch.wrapper import CredalWrapper

__all__ = ["BATCH_SIZE", "load_prediction", "predict"]

BATCH_SIZE = 256
RETURNS = ("numpy", "torch")
FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")
DEFAULTS = {"max_nodes": 20_000, "tolerance": 1e-12}  # in manifests from before there was a choice
CLASSICAL = ("total", "aleatoric", "epistemic")


def predict(
    wrapper: CredalWrapper,
    data: Iterable[Any] | Tensor,
    /,
    *,
    inputs: Callable[[Any], Any] | None = None,
    batch_size: int = BATCH_SIZE,
    autocast: torch.dtype | None = None,
    progress: bool = True,
    output: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    returns: str = "numpy",
) -> CredalPrediction:
    """The credal prediction of a wrapper for every row of a data set, (rows, ..., classes).

    With ``output`` the results of a batch are on disk, whole, before the next batch begins. The same call goes on where a
    run was interrupted: batches with a part are read from the loader but not computed. Each part remembers its inputs
    and the folder its settings and weights (those of plain callables cannot be seen), so that results of different runs
    never mix. ``load_prediction`` reads such a folder.

    ``seed`` starts torch's global generators anew for every batch, from the pair (seed, index of the batch), and puts them
    back at the end: the draws then depend neither on what ran before nor on an interruption. It does not reach
    generators that members own.

    >>> from credalens.torch import CredalWrapper
    >>> wrapper = CredalWrapper([torch.nn.Linear(4, 3) for _ in range(5)])
    >>> wrapper.predict(torch.ones(1000, 4), progress=False)
    CredalPrediction(members=5, batch=(1000,), classes=3, base=2)
    """
    check_choice(returns, RETURNS, "returns")
    if not isinstance(autocast, torch.dtype | None):
        raise TypeError(f"autocast must be a dtype such as torch.bfloat16, or None; got {autocast!r}.")
    device = next((x.device for x in (*wrapper.parameters(), *wrapper.buffers())), None)
    results: BatchResults = InMemory()
    if output is not None:
        results = InFolder(output, _settings(wrapper, autocast, seed), defaults=DEFAULTS)
    batches, total = _batches(data, batch_size)
    index = -1
    for index, batch in enumerate(_tracked(batches, total, progress)):
        args, kwargs = call_of_batch(batch, inputs)
        inputs_digest = "" if output is None else digest((args, kwargs))
        if results.has(index, inputs_digest):
            continue
        args = args if device is None else moved(args, device)
        with _precision(device, autocast), _seeded(seed, index, device):
            prediction = wrapper.predict_batch(*args, **kwargs)
        results.add(index, inputs_digest, _arrays(prediction))
    return _joined(results.finish(index + 1), wrapper.base, wrapper.n_members, returns)


def load_prediction(
    folder: str | os.PathLike[str], /, *, partial: bool = False, returns: str = "numpy"
) -> CredalPrediction:
    """The prediction in the output folder of ``predict``; with ``partial=True`` also that of an unfinished run so far."""
    check_choice(returns, RETURNS, "returns")
    settings, results = read_results(Path(folder), partial=partial)
    return _joined(results, settings["base"], settings["n_members"], returns)


def _settings(wrapper: CredalWrapper, autocast: torch.dtype | None, seed: int | None) -> dict[str, Any]:
    return {
        "n_members": wrapper.n_members,
        "samples": wrapper.samples,
        "outputs": wrapper.outputs,
        "base": wrapper.base,
        "max_nodes": wrapper.max_nodes,
        "tolerance": wrapper.tolerance,
        "hull": wrapper.hull,
        "autocast": None if autocast is None else str(autocast),
        "seed": seed,
        "weights": digest(wrapper.state_dict()),
    }


def _batches(data: Iterable[Any] | Tensor, batch_size: int) -> tuple[Iterable[Any], int | None]:
    """The batches, and how many there are if that is known."""
    if isinstance(data, Tensor):
        split = torch.split(data, check_count(batch_size, "batch_size"))
        return split, len(split)
    if not isinstance(data, Iterable):
        raise TypeError(
            f"data must be a tensor or an iterable of batches, such as a DataLoader; got {type(data).__name__}."
        )
    try:
        return data, len(data) if isinstance(data, Sized) else None
    except TypeError:  # a loader of an iterable data set has __len__, and no length
        return data, None


def _tracked(batches: Iterable[Any], total: int | None, progress: bool) -> Iterator[Any]:
    console = Console(stderr=True)
    yield from track(batches, "credal prediction", total=total, console=console, disable=not progress)


def _precision(device: torch.device | None, autocast: torch.dtype | None) -> AbstractContextManager[Any]:
    if autocast is None:
        return nullcontext()
    kind = "cpu" if device is None else device.type
    return torch.autocast(kind, dtype=autocast)


@contextmanager
def _seeded(seed: int | None, index: int, device: torch.device | None) -> Iterator[None]:
    if seed is None:
        yield
        return
    accelerators = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(accelerators):
        torch.manual_seed(int(np.random.SeedSequence((seed, index)).generate_state(1, np.uint64)[0] >> 1))
        yield


def _arrays(prediction: CredalPrediction) -> Arrays:
    """What has to be kept of a batch: the results, and what the lazy ones are made from."""
    arrays = {name: np.asarray(getattr(prediction, name).cpu()) for name in FIELDS}
    if arrays["lower"].ndim < 2:
        raise ValueError(f"members must return (batch, ..., classes); got shape {arrays['lower'].shape} for a batch.")
    if prediction._members is None:
        own = prediction.classical
        return {**arrays, **{f"classical_{part}": np.asarray(getattr(own, part).cpu()) for part in CLASSICAL}}
    members = prediction._members.read()
    return {**arrays, "members": members.array, "members_dtype": np.array(members.array_kind.dtype)}


def _joined(parts: list[Arrays], base: float, n_members: int, returns: str) -> CredalPrediction:
    if not parts:
        raise ValueError("there were no batches; a loader that was used up before gives none.")
    array_kind = ArrayKind(returns, "cpu", parts[0]["lower"].dtype.name)
    results: dict[str, Any] = {name: array_kind.restore(_concatenated(parts, name, 0)) for name in FIELDS}
    members = classical = None
    if "members" in parts[0]:
        batch = (sum(len(part["lower"]) for part in parts), *parts[0]["lower"].shape[1:-1])
        dtype = str(parts[0].get("members_dtype", array_kind.dtype))  # what their rows may miss one by follows it
        members = MemberArray(_concatenated(parts, "members", 1), batch, ArrayKind(returns, "cpu", dtype))
    else:
        classical = ClassicalUncertainty(
            *(array_kind.restore(_concatenated(parts, f"classical_{part}", 0)) for part in CLASSICAL)
        )
    return CredalPrediction(**results, base=base, n_members=n_members, _members=members, _classical=classical)


def _concatenated(parts: list[Arrays], name: str, axis: int) -> NDArray:
    return np.concatenate([part[name] for part in parts], axis=axis)
