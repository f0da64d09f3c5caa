"""One Ray task for each item of some work: retried when a worker is lost, the error that comes back is the one raised there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from credalens.engines.cluster import attempts_before, import_ray, machines, worker_name

Item = TypeVar("Item")
Result = TypeVar("Result")
LOOK: Final = 1.0  # seconds between two looks at what is done, so that Ctrl-C is heard


@dataclass(frozen=True)
class Request:
    """What a task asks of the machine it runs on. ``cpus`` are its threads too: they decide the last digits of sums.

    :ivar max_retries: how often it is begun again when its worker or machine is lost.
    """

    cpus: int = 1
    gpus: float = 0
    max_retries: int = 3

    def __post_init__(self) -> None:
        if self.cpus < 1 or self.gpus < 0 or self.max_retries < 0:
            raise ValueError(f"a task needs at least 1 CPU, and no less than 0 GPUs and retries; got {self}.")

    def check(self) -> None:
        """Refuse what no machine of the cluster has: Ray would wait for one for ever."""
        nodes = machines()
        if not any(node.get("CPU", 0) >= self.cpus and node.get("GPU", 0) >= self.gpus for node in nodes):
            most = max((node.get("CPU", 0) for node in nodes), default=0)
            raise ValueError(
                f"no machine of the cluster has {self.cpus} CPUs and {self.gpus:g} GPUs; the largest has {most:g} CPUs. "
                "Ask for less with --cpus and --gpus."
            )


def network_request(device: str | None = None, /, *, cpus: int | None = None, gpus: float | None = None) -> Request:
    """What a network asks for: a GPU where the cluster has one and nothing else was said, else the CPUs of torch here."""
    import torch

    wants_gpu = device.startswith("cuda") if device is not None else import_ray().cluster_resources().get("GPU", 0) > 0
    share = float(wants_gpu) if gpus is None else gpus
    return Request(cpus or (1 if share else torch.get_num_threads()), share)


@dataclass(frozen=True)
class Done(Generic[Item, Result]):
    """An item whose task has ended: what came out or what went wrong, where, how fast, and after how many losses."""

    item: Item
    result: Result | None
    error: BaseException | None
    worker: str = ""
    seconds: float = 0.0
    retries: int = 0


def for_each(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    request: Request,
    /,
    *,
    done: Callable[[Done[Item, Result]], None] = lambda ended: None,
) -> list[Result]:
    """What ``work`` gives for each item, in their order; ``done`` is called for each as it ends.

    All tasks end before the first error is raised, so that the results of the others are not lost.
    """
    if not items:
        return []
    ray = import_ray()
    request.check()
    shared = ray.put(work)  # once for each machine, however many items
    options = {"num_cpus": request.cpus, "num_gpus": request.gpus, "max_retries": request.max_retries}
    task = ray.remote(**options)(_run)
    waiting = {task.remote(shared, item, request.cpus): index for index, item in enumerate(items)}
    ended: dict[int, Done[Item, Result]] = {}
    try:
        while waiting:
            ready, _ = ray.wait(list(waiting), timeout=LOOK)
            for reference in ready:
                index = waiting.pop(reference)
                try:
                    ended[index] = Done(items[index], *ray.get(reference))
                except ray.exceptions.RayError as error:
                    lost = f"Ray gave up on a task after all its retries ({' '.join(str(error).split())[:300]})."
                    ended[index] = Done(items[index], None, RuntimeError(lost))
                done(ended[index])
    except BaseException:
        for reference in waiting:
            ray.cancel(reference, force=True)
        raise
    for index in range(len(items)):
        if (failure := ended[index].error) is not None:
            raise failure
    return [ended[index].result for index in range(len(items))]  # type: ignore[misc]


def _run(
    work: Callable[[Item], Result], item: Item, threads: int
) -> tuple[Result | None, Exception | None, str, float, int]:
    """On a worker. Errors travel as values: Ray would wrap them, and begin again where it takes them for its own."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)  # it does as many sums side by side, and rounds accordingly
    begin, result, failure = time.perf_counter(), None, None
    try:
        result = work(item)
    except Exception as error:
        failure = error
    return result, failure, worker_name(), time.perf_counter() - begin, attempts_before()
