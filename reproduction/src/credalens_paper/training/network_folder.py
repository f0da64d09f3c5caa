"""A network and its folder, and what it predicts.

The folder holds spec.json, history.json and model.safetensors, and a checkpoint until these are there. The network is written
last: where it is, the training is finished. Both safetensors files carry a JSON note with the configuration (spec, schedule,
fingerprint of the data), which is compared before anything in the folder is used again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from credalens.bayes import BayesianLayer, to_bayesian, use_generator
from credalens.bayes.layers import INITIAL_STD
from credalens.storage.run_folder import check_settings
from credalens_paper import origin
from credalens_paper.backbones import build_backbone
from credalens_paper.data import normalization
from credalens_paper.training.devices import (
    INITIAL,
    Normalization,
    check_images,
    compile_network,
    derived_seed,
    find_device,
    find_precision,
    mixed,
    on_device,
    placed,
)
from credalens_paper.training.losses import concentration, expected_probability
from credalens_paper.training.spec import ESTIMATORS, Schedule, TrainSpec

Note = dict[str, Any]
Build = Callable[..., nn.Module]
"""``build(name, *, classes, width, image_size, pretrained, seed)``, such as ``credalens_paper.backbones.build_backbone``: a
network from images (n, 3, h, w) to logits (n, classes) whose first weights depend on the seed alone."""

MODEL: Final = "model.safetensors"
CHECKPOINT: Final = "checkpoint.safetensors"
REMEDY: Final = "Ask for the stored settings, train into another folder, or delete that of the network to begin again."


def is_finished(folder: Path, asked: Note, /) -> bool:
    """Whether the folder holds a trained network; an error where it differs in a part that ``asked`` names."""
    path = folder / MODEL
    if path.is_file():
        check_configuration(path, asked)
    return path.is_file()


def check_configuration(path: Path, asked: Note, /) -> None:
    """Compare the spec, the schedule or the data of a stored network with those asked for, as far as these are named."""
    stored = read_note(path)["configuration"]
    stored["schedule"] = Schedule.completed(stored["schedule"])
    check_settings({part: stored[part] for part in asked}, asked, path, REMEDY)


def to_bytes(tensors: dict[str, Tensor], note: Note, /) -> bytes:
    """Tensors and a JSON note as the content of one safetensors file."""
    how: dict[str, Any] = {"device": "cpu", "memory_format": torch.contiguous_format}
    # Copies always: safetensors refuses tensors that share memory, as tied weights do.
    copies = {name: tensor.detach().to(**how, copy=True) for name, tensor in tensors.items()}
    return save(copies, metadata={"note": json.dumps(note)})


def read_tensors(path: Path, /) -> tuple[dict[str, Tensor], Note]:
    """The tensors (on the CPU) and the note of a file that no training replaces meanwhile."""
    with _opened(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
        return tensors, _note(file, path)


def read_note(path: Path, /) -> Note:
    """The note alone, without reading the tensors; a training may replace the file meanwhile."""
    with _opened(path, "np") as file:  # for "pt" it would be opened twice, and may be two files
        return _note(file, path)


@contextmanager
def _opened(path: Path, framework: str) -> Iterator[Any]:
    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except SafetensorError as error:
        raise ValueError(f"{path} cannot be read ({error}). Delete it, and the training begins again.") from error


def _note(file: Any, path: Path) -> Note:
    note = (file.metadata() or {}).get("note")
    if note is None:
        raise ValueError(f"{path} was not written by credalens: it carries no note on its training.")
    return dict(json.loads(note))


def versions() -> Note:
    """What a training that starts now is made with."""
    found = origin.versions(("torch", "safetensors"))
    return {
        **{name: found[name] for name in ("credalens", "torch", "numpy", "safetensors", "python")},
        "commit": origin.commit(),
        "cuda": torch.version.cuda,
        "system": platform.system(),
        "threads": torch.get_num_threads(),
        "time": origin.now(),
    }


def make_network(
    spec: TrainSpec, build: Build, device: torch.device, /, *, initial_std: float | None = None
) -> nn.Module:
    """The network of a spec with its first weights; Bayesian ones have the same first means as the standard one."""
    if spec.pretrained is not None and spec.weights is None:
        raise ValueError(f"{spec.key} starts from weights {spec.pretrained}; name their folder in the spec's weights.")
    network = build(
        spec.backbone,
        classes=spec.classes,
        width=spec.width,
        image_size=spec.image_size,
        pretrained=spec.weights,
        seed=derived_seed(spec.seed, INITIAL),
    )
    if spec.bayesian:
        network = to_bayesian(network, estimator=ESTIMATORS[spec.method], initial_std=initial_std or INITIAL_STD)
    return placed(network, device)


def load_model(
    spec: TrainSpec, folder: str | Path, /, *, build: Build, device: str | torch.device | None = None
) -> nn.Module:
    """A trained network out of the folder that :func:`train_models` wrote, in evaluation mode."""
    path = Path(folder) / spec.key
    if not is_finished(path, {"spec": spec.as_dict()}):
        raise FileNotFoundError(f"{path / MODEL} does not exist: train {spec.key} first, or look into another folder.")
    network = make_network(spec, build, find_device(device))
    network.load_state_dict(read_tensors(path / MODEL)[0])
    return network.eval()


PIXELS: Final = {"cuda": 2**21, "cpu": 2**18}
"""Pixels in a batch: as many as keep a device busy without filling its memory."""


def predict_images(
    model: nn.Module,
    images: NDArray[np.uint8],
    /,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    samples: int = 1,
    image_size: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "auto",
    seed: int = 0,
    compile: bool = False,  # noqa: A002  (torch's word for it)
    concentrations: bool = False,
) -> NDArray[np.float32]:
    """Class distributions (samples, n, classes) of images (n, h, w, 3) of bytes, the softmax in float32.

    A standard network is one member. Each sample of a Bayesian one draws its weights anew, all from ``seed`` and batch by
    batch. Of a distilled one (EDD, EDD-Fair) these are ``concentrations``. ``image_size`` resizes the images for the network,
    which is moved to ``device`` and left in evaluation mode. ``compile`` fuses the batches of a Bayesian network, all of one
    size, whose draws are then others.
    """
    bayesian = any(isinstance(module, BayesianLayer) for module in model.modules())
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples!r}.")
    if samples > 1 and not bayesian:
        raise ValueError(
            f"samples={samples} of a network without Bayesian layers would all be equal; samples are for BNNR and "
            "BNNF. Predict the members of an ensemble network by network."
        )
    check_images(images)
    scale = Normalization(mean, std, find_device(device))
    on, fused = scale.device, compile and bayesian
    precision, network = find_precision(precision, on), placed(model, on).eval()
    full = compile_network(network) if fused else network
    output = concentration if concentrations else partial(torch.softmax, dim=-1)
    pixels = (image_size or max(images.shape[1:3])) ** 2 if images.ndim == 4 else images.shape[1]
    size = max(1, PIXELS.get(on.type, PIXELS["cpu"]) // pixels)

    def predict(chosen: NDArray[np.uint8]) -> NDArray[np.float32]:
        """A batch; one shape is compiled, so the last batch is filled up with black images."""
        count, draws = len(chosen), []
        if fused:
            chosen = np.concatenate([chosen, np.zeros((size - count, *images.shape[1:]), images.dtype)])
        x = scale(on_device(chosen, on), size=image_size)
        for _ in range(samples):
            with mixed(precision, on):
                logits: Tensor = full(x)
            draws.append(output(logits.float())[:count].cpu().numpy())
        return np.stack(draws)

    with ExitStack() as draws:
        if bayesian:  # compiled code draws from torch's global generators
            draws.enter_context(torch.random.fork_rng([on] if on.type == "cuda" else []))
            draws.enter_context(use_generator(model, None if compile else torch.Generator(on).manual_seed(seed)))
            torch.manual_seed(seed)
        draws.enter_context(torch.inference_mode())
        batches = [predict(images[start : start + size]) for start in range(0, len(images), size)]
    values = np.concatenate(batches, axis=1)
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(
            f"{int(bad.sum())} of {values.size} predictions are not numbers, the first at (sample, image, class) = "
            f"{first}. Has the network diverged, or is it not trained?"
        )
    return values


def predict_network(
    spec: TrainSpec, /, *, folder: Path, images: NDArray[Any], samples: int, device: str | None, precision: str
) -> NDArray[np.float32]:
    """Class distributions (members, images, classes) by a trained network out of its folder.

    A Bayesian network gives ``samples`` members, a standard one itself, a distilled one the mean of its Dirichlet.
    """
    network = load_model(spec, folder, build=build_backbone, device=device)
    mean, std = normalization(spec.data)
    options: dict[str, Any] = {"mean": mean, "std": std, "image_size": spec.image_size}
    options |= {"device": device, "precision": precision, "concentrations": spec.distilled}
    predicted = predict_images(network, images, samples=samples if spec.bayesian else 1, seed=spec.seed, **options)
    return expected_probability(torch.from_numpy(predicted)).numpy() if spec.distilled else predicted
