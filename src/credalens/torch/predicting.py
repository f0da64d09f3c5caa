"""A whole data set: progress, mixed precision, and a folder from which an interrupted run continues."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from credalens.arrays import ArrayKind, rounding_of_all
from credalens.checks.options import check_choice, check_count
from credalens.core.classical import ClassicalUncertainty
from credalens.core.members import MemberArray
from credalens.prediction import ARRAYS, CredalPrediction
from credalens.torch.calling import moved
from credalens.torch.result_folder import VERSION, Arrays, digest, read_results, result_folder

RETURNS = ("numpy", "torch")
CLASSICAL = ("total", "aleatoric", "epistemic")
KEY_REMEDY = "Give key=lambda batch: ..., numbers or texts that tell the batches apart."
WEIGHTS_REMEDY = "Give that member as a plain callable, lambda *x: model(*x): its weights are not compared then."


@dataclass(frozen=True)
class Run:
    """How a data set is worked through: the options of ``CredalWrapper.predict``."""

    inputs: Callable[[Any], Any] | None
    batch_size: int
    autocast: torch.dtype | None
    progress: bool
    output: str | os.PathLike[str] | None
    key: Callable[[Any], Any] | None
    seed: int | None
    returns: str

    def __post_init__(self) -> None:
        check_choice(self.returns, RETURNS, "returns")
        if not isinstance(self.autocast, torch.dtype | None):
            raise TypeError(f"autocast must be a dtype such as torch.bfloat16, or None; got {self.autocast!r}.")
        if self.inputs is not None and not callable(self.inputs):
            raise TypeError(
                f"inputs must be a function of a batch, such as lambda batch: batch['image']; got {self.inputs!r}."
            )


def predict_batches(
    predict: Callable[..., CredalPrediction],
    data: Iterable[Any] | Tensor,
    run: Run,
    settings: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    device: torch.device | None,
) -> CredalPrediction:
    """One prediction of all batches, each by ``predict``; a folder holds the settings and a digest of the weights."""
    if run.output is not None:
        autocast = None if run.autocast is None else str(run.autocast)
        settings = {**settings, "autocast": autocast, "seed": run.seed, "digest": VERSION}
        settings["weights"] = digest(weights, "state_dict()", WEIGHTS_REMEDY)
    with nullcontext() if run.output is None else result_folder(Path(run.output), settings) as folder:
        batches, total = _batches(data, run.batch_size)
        results: list[Arrays] = []
        for index, batch in enumerate(_with_progress(batches, total) if run.progress else batches):
            if run.inputs is None:  # the first of a tuple such as (inputs, labels)
                args = (batch[0] if isinstance(batch, list | tuple) and batch else batch,)
            else:  # a tuple is several positional arguments
                selected = run.inputs(batch)
                args = selected if isinstance(selected, tuple) else (selected,)
            inputs_digest, arrays = "", None
            if folder:
                keyed, name = (args, "inputs") if run.key is None else (("key", run.key(batch)), "key(batch)")
                inputs_digest = digest(keyed, name, KEY_REMEDY)
                arrays = folder.read(index, inputs_digest)
            if arrays is None:
                args = args if device is None else moved(args, device)
                kind = "cpu" if device is None else device.type
                precision = torch.autocast(kind, dtype=run.autocast) if run.autocast else nullcontext()
                with precision, _seeded(run.seed, index, device):
                    arrays = _arrays(predict(*args))
                if folder:
                    folder.write(index, inputs_digest, arrays)
            results.append(arrays)
        if folder:
            folder.finish(len(results))
    return _joined(results, settings, run.returns)


def load_prediction(
    folder: str | os.PathLike[str], /, *, partial: bool = False, returns: str = "numpy"
) -> CredalPrediction:
    """Read what ``CredalWrapper.predict(loader, output=folder)`` wrote; with ``partial=True`` also of an unfinished run."""
    check_choice(returns, RETURNS, "returns")
    settings, results = read_results(Path(folder), partial=partial)
    return _joined(results, settings, returns)


def _batches(data: Iterable[Any] | Tensor, batch_size: int) -> tuple[Iterable[Any], int | None]:
    """The batches, and how many there are if that is known."""
    if isinstance(data, Tensor):
        split = torch.split(data, check_count(batch_size, "batch_size"))
        return split, len(split)
    if isinstance(data, np.ndarray):  # or its rows would be taken for batches
        raise TypeError(
            "data is a NumPy array; give a tensor, torch.from_numpy(data), or a loader, whose batches inputs=torch.as_tensor "
            "turns into tensors."
        )
    if isinstance(data, Mapping):
        raise TypeError("data is a dictionary, which is one batch; give a list of batches: predict([batch]).")
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise TypeError(
            f"data must be a tensor or an iterable of batches, such as a DataLoader; got {type(data).__name__}."
        )
    try:
        return data, len(data) if isinstance(data, Sized) else None
    except TypeError:  # a loader of an iterable data set has __len__, and no length
        return data, None


def _with_progress(batches: Iterable[Any], total: int | None) -> Iterable[Any]:
    try:
        from rich.console import Console
        from rich.progress import track
    except ModuleNotFoundError:
        return batches
    return track(batches, "credal prediction", total=total, console=Console(stderr=True))


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
    """The results of a batch, and what ``classical`` and ``hull`` need."""
    arrays = {name: getattr(prediction, name).cpu().numpy() for name in ARRAYS}
    if arrays["lower"].ndim < 2:
        raise ValueError(f"members must return (batch, ..., classes); got shape {arrays['lower'].shape} for a batch.")
    arrays["rounding"] = np.array(prediction._rounding)
    if prediction._members is None:
        return arrays | {f"classical_{name}": x.cpu().numpy() for name, x in vars(prediction.classical).items()}
    members = prediction._members.to_cpu()
    return {**arrays, "members": members.array, "members_dtype": np.array(members.array_kind.dtype)}


def _joined(results: list[Arrays], settings: Mapping[str, Any], returns: str) -> CredalPrediction:
    """One prediction from the arrays of all batches."""
    if not results:
        raise ValueError("there were no batches; an iterator that was already used gives none.")
    first = results[0]
    array_kind = ArrayKind(returns, "cpu", first["lower"].dtype.name)

    def joined(name: str) -> Any:
        return array_kind.restore(np.concatenate([arrays[name] for arrays in results]))

    members = classical = None
    if "members" in first:
        stacked = np.concatenate([arrays["members"] for arrays in results], axis=1)
        batch = (sum(len(arrays["lower"]) for arrays in results), *first["lower"].shape[1:-1])
        dtype = str(first.get("members_dtype", array_kind.dtype))  # decides how far from one their rows may sum
        members = MemberArray(stacked, batch, ArrayKind(returns, "cpu", dtype), accepted=True)
    else:
        classical = ClassicalUncertainty(*(joined(f"classical_{name}") for name in CLASSICAL))
    fields: dict[str, Any] = {name: joined(name) for name in ARRAYS}
    rounding = rounding_of_all(*(float(arrays.get("rounding", 0.0)) for arrays in results))
    return CredalPrediction(
        **fields,
        base=settings["base"],
        n_members=settings["n_members"],
        _members=members,
        _classical=classical,
        _rounding=rounding,
        temperatures=tuple(settings.get("temperatures", ())),
    )
