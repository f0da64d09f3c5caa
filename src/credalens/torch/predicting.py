"""A whole data set: progress, mixed precision, and a folder from which an interrupted run continues."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalens.arrays import ArrayKind, rounding_of_all
from credalens.checks.members import MemberArray
from credalens.checks.options import check_choice, check_count
from credalens.core.classical import ClassicalUncertainty
from credalens.prediction import CredalPrediction
from credalens.torch.calling import args_of_batch, moved
from credalens.torch.result_folder import VERSION, Arrays, digest, read_results, result_folder

if TYPE_CHECKING:
    from credalens.torch.wrapper import CredalWrapper

RETURNS = ("numpy", "torch")
FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")
CLASSICAL = ("total", "aleatoric", "epistemic")
KEY_REMEDY = "Give key=lambda batch: ..., numbers or texts that tell the batches apart."
WEIGHTS_REMEDY = "Give that member as a plain callable, lambda *x: model(*x): its weights are not compared then."


def predict(
    wrapper: CredalWrapper,
    data: Iterable[Any] | Tensor,
    /,
    *,
    inputs: Callable[[Any], Any] | None = None,
    batch_size: int = 256,
    autocast: torch.dtype | None = None,
    progress: bool = True,
    output: str | os.PathLike[str] | None = None,
    key: Callable[[Any], Any] | None = None,
    seed: int | None = None,
    returns: str = "numpy",
) -> CredalPrediction:
    """The credal prediction for every row of a data set, (rows, ..., classes), without gradients.

    - ``data``: a loader, or a tensor that is split into batches of ``batch_size``. A batch is a tensor, a dictionary, or
      a tuple that begins with the inputs; ``inputs`` selects them otherwise. Batches are moved to the members' device.
    - ``autocast=torch.bfloat16`` runs the members in mixed precision.
    - ``progress`` shows a bar on stderr if rich is installed (extra ``cli``).
    - ``output``: a folder. The results of each batch are written before the next batch begins, and the same call continues
      an interrupted run: finished batches are read from the loader but not computed. Results of different runs never
      mix: the folder holds the settings and a digest of the weights (not those of plain callables) and of the inputs of
      each batch. ``load_prediction`` reads such a folder.
    - ``key``: gives what tells a batch from others, such as its row numbers, and is digested in place of its inputs; needed
      where inputs cannot be digested, which is an error otherwise.
    - ``seed``: torch's global generators are seeded with (seed, index of the batch) for every batch, and restored
      afterwards, so that draws depend neither on earlier ones nor on an interruption. Generators that members own are
      not seeded.
    - ``returns``: "numpy" or "torch" (on the CPU).

    >>> from credalens.torch import CredalWrapper
    >>> wrapper = CredalWrapper([torch.nn.Linear(4, 3) for _ in range(5)])
    >>> wrapper.predict(torch.ones(1000, 4), progress=False)
    CredalPrediction(members=5, batch=(1000,), classes=3, base=2)
    """
    check_choice(returns, RETURNS, "returns")
    if not isinstance(autocast, torch.dtype | None):
        raise TypeError(f"autocast must be a dtype such as torch.bfloat16, or None; got {autocast!r}.")
    if inputs is not None and not callable(inputs):
        raise TypeError(f"inputs must be a function of a batch, such as lambda batch: batch['image']; got {inputs!r}.")
    device = next((x.device for x in (*wrapper.parameters(), *wrapper.buffers())), None)
    settings = {} if output is None else _settings(wrapper, autocast, seed)
    with nullcontext() if output is None else result_folder(Path(output), settings) as folder:
        batches, total = _batches(data, batch_size)
        results: list[Arrays] = []
        for index, batch in enumerate(_with_progress(batches, total, progress)):
            args = args_of_batch(batch, inputs)
            inputs_digest = _inputs_digest(batch, args, key) if folder else ""
            arrays = folder.read(index, inputs_digest) if folder else None
            if arrays is None:
                args = args if device is None else moved(args, device)
                with _precision(device, autocast), _seeded(seed, index, device):
                    arrays = _arrays(wrapper.predict_batch(*args))
                if folder:
                    folder.write(index, inputs_digest, arrays)
            results.append(arrays)
        if folder:
            folder.finish(len(results))
    prediction = _joined(results, wrapper.base, wrapper.n_members, returns)
    wrapper._warn_crude_members(prediction)
    return prediction


def load_prediction(
    folder: str | os.PathLike[str], /, *, partial: bool = False, returns: str = "numpy"
) -> CredalPrediction:
    """Read what ``CredalWrapper.predict(loader, output=folder)`` wrote; with ``partial=True`` also of an unfinished run."""
    check_choice(returns, RETURNS, "returns")
    settings, results = read_results(Path(folder), partial=partial)
    return _joined(results, settings["base"], settings["n_members"], returns)


def _settings(wrapper: CredalWrapper, autocast: torch.dtype | None, seed: int | None) -> dict[str, Any]:
    return {
        "n_members": wrapper.n_members,
        "samples": wrapper.samples,
        "outputs": wrapper.outputs,
        "class_axis": wrapper.class_axis,
        "base": wrapper.base,
        "max_nodes": wrapper.max_nodes,
        "tolerance": wrapper.tolerance,
        "hull": wrapper.hull,
        "autocast": None if autocast is None else str(autocast),
        "seed": seed,
        "digest": VERSION,
        "weights": _digest(wrapper.state_dict(), "state_dict()", WEIGHTS_REMEDY),
    }


def _inputs_digest(batch: Any, args: tuple[Any, ...], key: Callable[[Any], Any] | None) -> str:
    if key is not None:
        return _digest(("key", key(batch)), "key(batch)", KEY_REMEDY)
    return _digest(args, "inputs", KEY_REMEDY)


def _digest(x: Any, name: str, remedy: str) -> str:
    try:
        return digest(x, name)
    except TypeError as error:
        raise TypeError(f"{error} {remedy}") from error


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


def _with_progress(batches: Iterable[Any], total: int | None, progress: bool) -> Iterable[Any]:
    if not progress:
        return batches
    try:
        from rich.console import Console
        from rich.progress import track
    except ModuleNotFoundError:
        return batches
    return track(batches, "credal prediction", total=total, console=Console(stderr=True))


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
    """The results of a batch, and what ``classical`` and ``hull`` need."""
    arrays = {name: _on_cpu(getattr(prediction, name)) for name in FIELDS}
    if arrays["lower"].ndim < 2:
        raise ValueError(f"members must return (batch, ..., classes); got shape {arrays['lower'].shape} for a batch.")
    arrays["rounding"] = np.array(prediction._rounding)
    if prediction._members is None:
        return arrays | {f"classical_{name}": _on_cpu(getattr(prediction.classical, name)) for name in CLASSICAL}
    members = prediction._members.to_cpu()
    return {**arrays, "members": members.array, "members_dtype": np.array(members.array_kind.dtype)}


def _on_cpu(x: Tensor) -> NDArray:
    return x.cpu().numpy()


def _joined(results: list[Arrays], base: float, n_members: int, returns: str) -> CredalPrediction:
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
        members = MemberArray(stacked, batch, ArrayKind(returns, "cpu", dtype))
    else:
        classical = ClassicalUncertainty(*(joined(f"classical_{name}") for name in CLASSICAL))
    fields: dict[str, Any] = {name: joined(name) for name in FIELDS}
    rounding = rounding_of_all(*(float(arrays.get("rounding", 0.0)) for arrays in results))
    return CredalPrediction(
        **fields, base=base, n_members=n_members, _members=members, _classical=classical, _rounding=rounding
    )
