"""What uncertainty costs: time of the measures by the number of classes, of inference by the number of members.

No training is needed: the time of a network does not depend on its weights, so they are random. Every value is one
repeat, after a first call that does not count; what takes long is repeated less often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from credalens import probability_intervals, wrap
from credalens_paper.experiments.cell_keys import CellKey
from credalens_paper.experiments.presets import Preset
from credalens_paper.measures.exactness import slsqp_entropies

if TYPE_CHECKING:
    from torch import nn

Array = NDArray[np.float64]
MEMBERS: Final = 5
CONCENTRATION: Final = 0.3
"""Of the Dirichlet that the timed predictions are drawn from: one or two classes share most of the probability."""
CALLS: Final = 50  # calls in one repeat where a single one is too short for the clock
BATCH: Final = 1000
MOST_SECONDS: Final = 15.0
"""A cell whose repeats take longer than that gets fewer of them, so that a table takes minutes on any machine."""
LEAST_REPEATS: Final = 2
ESTIMATORS: Final = {"BNNR": "reparameterization", "BNNF": "flipout"}


def measure_costs(cells: Iterable[CellKey], preset: Preset, /, *, check: Callable[[], None]) -> dict[CellKey, Any]:
    """Milliseconds (or megabytes) of every cell, repeat by repeat, or the reason why there are none."""
    costs: dict[CellKey, Any] = {}
    for cell in cells:
        check()
        costs[cell] = _measures(cell, preset) if cell.C is not None else _inference(cell, preset)
    _network.cache_clear()
    return costs


def cpu_threads(cells: Iterable[CellKey], /) -> int:
    """Threads that the times on the CPU are for: torch's where networks are timed, otherwise one."""
    if all(cell.metric != "cpu_ms" for cell in cells):
        return 1
    import torch

    return torch.get_num_threads()


def classical_numpy(members: Array, /) -> tuple[float, float, float]:
    """Total, aleatoric and epistemic uncertainty of the averaged prediction of one input, in plain NumPy."""

    def entropy(p: Array) -> Array:
        return 0.0 - (p * np.log2(np.where(p > 0, p, 1))).sum(axis=-1)

    total, aleatoric = float(entropy(members.mean(axis=0))), float(entropy(members).mean())
    return total, aleatoric, total - aleatoric


def _measures(cell: CellKey, preset: Preset) -> list[float]:
    """Both entropies of one input whose members are drawn at random."""
    rng = np.random.default_rng([preset.repeats, cell.C or 0])
    inputs = rng.dirichlet(np.full(cell.C or 0, CONCENTRATION), (preset.repeats, MEMBERS))
    if cell.variant == "credal, batched":
        batch = rng.dirichlet(np.full(cell.C or 0, CONCENTRATION), (MEMBERS, BATCH))
        return [value / BATCH for value in _repeats(lambda _: wrap(batch, threads=1), preset.repeats)]
    if cell.variant == "SLSQP":
        bounds = [tuple(probability_intervals(members)) for members in inputs]
        return _repeats(lambda i: slsqp_entropies(*bounds[i]), preset.repeats)
    measure: Callable[[Array], Any] = classical_numpy if cell.variant == "classical" else wrap
    return _repeats(lambda i: measure(inputs[i]), preset.repeats, calls=CALLS)


def _repeats(work: Callable[[int], Any], repeats: int, *, calls: int = 1) -> list[float]:
    """Milliseconds of every repeat; fewer repeats where the time for them is spent.

    The first call does not count, unless it takes so long that warming up is a small part of it.
    """
    started = time.perf_counter()
    work(0)
    first = time.perf_counter() - started
    times = [1000 * first] if first > MOST_SECONDS else []
    while len(times) < repeats and (time.perf_counter() - started < MOST_SECONDS or len(times) < LEAST_REPEATS):
        begun = time.perf_counter()
        for _ in range(calls):
            work(len(times))
        times.append(1000 * (time.perf_counter() - begun) / calls)
    return times


@cache
def _network(backbone: str, method: str, seed: int, width: float, pixels: int) -> nn.Module:
    """A network with random weights, made once and used by all cells that need it."""
    from credalens.bayes import to_bayesian
    from credalens_paper.backbones import build_backbone

    network = build_backbone(backbone, classes=10, width=width, image_size=pixels, seed=seed).eval()
    return to_bayesian(network, estimator=ESTIMATORS[method]) if method in ESTIMATORS else network


def _inference(cell: CellKey, preset: Preset) -> list[float] | str:
    measured = preset.substituted(cell)
    backbone, method, N = str(cell.backbone), str(cell.method), measured.N or 1
    if measured.metric == "uncertainty_ms":
        members = np.random.default_rng(N).dirichlet(np.full(10, CONCENTRATION), N)
        return _repeats(lambda _: wrap(members).epistemic, preset.repeats, calls=CALLS)
    count = 1 if method in ESTIMATORS else N  # one Bayesian network gives all samples
    pixels = preset.pixels(backbone)
    networks = [_network(backbone, method, seed, preset.width, pixels) for seed in range(count)]
    if measured.metric == "model_size_mb":
        tensors = [tensor for one in networks for tensor in (*one.parameters(), *one.buffers())]
        return [sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6]
    return _predictions(networks * (N // count), measured.metric, pixels, preset.repeats)


def _predictions(members: list[nn.Module], metric: str, pixels: int, repeats: int) -> list[float] | str:
    """Time for all members' predictions of one input, results on the host included."""
    import torch

    device = "cuda" if metric == "gpu_ms" else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        return "no CUDA device on this machine"
    placed = [network.to(device) for network in members]
    x = torch.zeros(1, 3, pixels, pixels, device=device)

    def predict(_: int) -> Any:
        with torch.inference_mode():
            return torch.stack([network(x).softmax(-1) for network in placed]).cpu()

    times = _repeats(predict, repeats)
    for network in members:
        network.to("cpu")
    return times
