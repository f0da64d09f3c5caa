"""CredalWrapper: a module around the models people already have."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import reduce
from typing import Any, final

import torch
from torch import Tensor, nn

from credalens.checks.doubtful_members import warn_of_members
from credalens.checks.options import check_choice, check_count
from credalens.core.members import in_common_precision, roughest
from credalens.core.options import MAX_NODES, TOLERANCE, Options
from credalens.core.recalibration import Recalibration, check_recalibration, divided, temperatures_of
from credalens.core.summary import MemberSummary
from credalens.guard import Decisions, Guard
from credalens.guard.decider import guard_in_use
from credalens.prediction import CredalPrediction
from credalens.torch.calling import (
    Call,
    SampleWatch,
    check_device,
    check_mode,
    check_same_architecture,
    input_device,
    member_call,
    member_modules,
    member_name,
    naming_member,
    sampling,
    stacked_bytes,
    vectorised_pass,
)
from credalens.torch.member_outputs import (
    OUTPUTS,
    MemberOutput,
    OutputForm,
    naming_bad_member,
    output_tensor,
    probabilities,
    summary_of_output,
    warn_doubtful_output,
)
from credalens.torch.operators import credal_prediction, prediction_in_graph, wrap_outputs
from credalens.torch.predicting import Run, predict_batches

SETTINGS = ("n_members", "samples", "outputs", "class_axis", "base", "max_nodes", "tolerance", "hull")
"""Attributes that decide about the numbers, beside the weights: a folder of results holds them."""
FEW = 8  # members whose outputs need no more memory than a summary; on a GPU they take less time together


@final
class CredalWrapper(nn.Module):
    """Makes trained models credal: called on a batch, it returns a ``CredalPrediction`` of tensors on the batch's device.

    ``members`` is a list of modules (a deep ensemble), any iterable of callables, or one stochastic module or callable
    that is run ``samples`` times: a Bayesian network, or a network with dropout, whose dropout layers, and nothing else, are
    switched on during the call. With several members *and* ``samples`` each is sampled that often. Random draws are the
    members' own; call ``torch.manual_seed`` first to repeat them.

    - ``outputs``: what members return, "logits" (default) or "probabilities"; as a tensor (*batch, classes), a
      dictionary or object with such an entry (Hugging Face), or first in a tuple.
    - ``class_axis``: which axis of it holds the classes, such as -3 for maps (batch, classes, height, width); in results
      they are last.
    - ``hull=True`` keeps the members' outputs for ``prediction.hull``: memory grows with their number. By default each
      is folded into a ``MemberSummary`` and released; on a GPU up to eight are kept, so that it never waits.
    - ``gradients=True`` lets the prediction be differentiated (see ``credal_prediction``); memory grows as well. By default
      no gradient is recorded.
    - ``vectorised=True`` runs members of identical architecture as one pass: the same numbers up to rounding, faster
      for small networks. It takes a stacked copy of the weights (``vectorised_bytes``) and the activations of all members
      at once; ``member_chunk`` limits both to that many members.
    - ``base`` of the logarithm, 2 for bits; ``max_nodes`` and ``tolerance`` are the budget of the lowest entropy, as in
      ``wrap``; ``threads`` limits the cores used by the solvers.
    - ``recalibration``: a ``credalens.Recalibration`` fitted on predictions of these members; their outputs are divided by its
      temperatures where they are, before anything is computed from them.
    - ``guard``: a ``credalens.guard.Guard`` fitted on predictions of this wrapper, which ``decide`` uses.

    Members that are modules are its children: ``to``, ``eval``, ``train`` and ``state_dict`` reach them. Members must be in
    evaluation mode if their layers depend on it, except after ``train()`` with ``gradients=True``, for training through it.

    >>> members = [nn.Linear(4, 3) for _ in range(5)]
    >>> prediction = CredalWrapper(members)(torch.ones(2, 4))
    >>> prediction
    CredalPrediction(members=5, batch=(2,), classes=3, base=2)
    >>> bool((prediction.lower <= prediction.probability).all())
    True
    """

    def __init__(
        self,
        members: Iterable[Callable[..., Any]] | Callable[..., Any],
        /,
        *,
        samples: int | None = None,
        outputs: str = "logits",
        class_axis: int = -1,
        recalibration: Recalibration | None = None,
        hull: bool = False,
        gradients: bool = False,
        vectorised: bool = False,
        member_chunk: int | None = None,
        base: float = 2,
        max_nodes: int = MAX_NODES,
        tolerance: float = TOLERANCE,
        threads: int | None = None,
        guard: Guard | None = None,
    ) -> None:
        super().__init__()
        self.guard = None if guard is None else guard_in_use(guard)
        self.samples = None if samples is None else check_count(samples, "samples")
        self.outputs = check_choice(outputs, OUTPUTS, "outputs")
        self.class_axis = class_axis
        self.recalibration = check_recalibration(recalibration)
        self.hull, self.gradients, self.vectorised = hull, gradients, vectorised
        self.member_chunk = None if member_chunk is None else check_count(member_chunk, "member_chunk")
        options = Options(base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
        self.base, self.threads = options.base, options.threads
        self.max_nodes, self.tolerance = options.max_nodes, options.tolerance
        if vectorised and samples is not None:
            raise ValueError("vectorised=True runs several members once each; with samples= use vectorised=False.")
        if vectorised and gradients:
            raise ValueError("a vectorised pass copies the weights and gives no gradients; use vectorised=False.")
        if member_chunk is not None and not vectorised:
            raise ValueError("member_chunk limits a vectorised pass; without vectorised=True members run one by one.")
        self.members = member_modules(members, samples)
        if vectorised:
            check_same_architecture(self.each_member)
        self.temperatures = temperatures_of(recalibration)  # numbers, since a graph knows no arrays of NumPy's
        if recalibration is not None:
            recalibration.check(self.n_members, recalibration.classes)
        self.training = False  # train() is for training through the wrapper
        self._warned = False

    def forward(self, *args: Any, **kwargs: Any) -> CredalPrediction:
        """The credal prediction for one batch. All arguments go to every member; a lone dictionary as its keywords."""
        if not self.gradients:
            prediction = self.predict_batch(*args, **kwargs)
            waits = _runs_ahead(prediction.lower.device)  # nobody waits for a GPU here; predict() looks at its results
            if not (waits or torch.compiler.is_compiling()):
                self._warn_crude_members(prediction, stacklevel=4)
            return prediction
        outputs = list(self._each_output((args, kwargs)))
        self._warn_doubtful(outputs[0], stacklevel=4)
        dtype = reduce(torch.promote_types, (output.tensor.dtype for output in outputs), torch.float32)
        probs = [probabilities(output.tensor, self.outputs) for output in outputs]
        with naming_bad_member(outputs, self.outputs):
            prediction = credal_prediction(torch.stack(in_common_precision(probs)), dtype=dtype, **self._budget)
        rounding = roughest([output.tensor for output in outputs], logits=self.outputs == "logits")
        return replace(prediction, _rounding=rounding, temperatures=self.temperatures)

    def predict_batch(self, *args: Any, **kwargs: Any) -> CredalPrediction:
        """The credal prediction for one batch without gradients, whatever the wrapper's options."""
        call = args, kwargs
        few_on_gpu = self.n_members <= FEW and _runs_ahead(input_device(call))
        in_graph = torch.compiler.is_compiling()
        if not (self.hull or few_on_gpu or in_graph):
            return self.summarise(*args, **kwargs).prediction(**self._budget)
        with torch.no_grad():
            outputs = list(self._each_output(call))
        options = {"class_axis": self.class_axis, **self._budget}
        if in_graph:
            tensors = [output.tensor for output in outputs]
            prediction = prediction_in_graph(tensors, self.outputs, together=few_on_gpu, hull=self.hull, **options)
        else:
            prediction = wrap_outputs(outputs, self.outputs, **options)
        return replace(prediction, temperatures=self.temperatures) if self.temperatures else prediction

    def predict(
        self,
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
        run = Run(inputs, batch_size, autocast, progress, output, key, seed, returns)
        settings = {name: getattr(self, name) for name in SETTINGS} | {"temperatures": [*self.temperatures]}
        weights = {} if output is None else self.state_dict()
        device = next((x.device for x in (*self.parameters(), *self.buffers())), None)
        prediction = predict_batches(self.predict_batch, data, run, settings, weights, device)
        self._warn_crude_members(prediction)
        return prediction

    def decide(self, *args: Any, **kwargs: Any) -> Decisions:
        """Decide about one batch by the guard: ``.accepted``, ``.p_value``, ``.reason``, ``.prediction``."""
        return guard_in_use(self.guard).decide(self.predict_batch(*args, **kwargs))

    def summarise(self, *args: Any, **kwargs: Any) -> MemberSummary:
        """The summary of the members for one batch, to be merged with others or reduced over processes.

        With members on several processes, ``wrapper.summarise(x).all_reduce().prediction()`` is the prediction of all.
        """
        summary = MemberSummary()
        with torch.no_grad(), closing(self._each_output((args, kwargs))) as outputs:
            for output in outputs:
                if not summary.count:
                    self._warn_doubtful(output, stacklevel=6)
                summary = summary.merge(summary_of_output(output, self.outputs))
                del output  # released before the next member runs
        summary.temperatures = self.temperatures
        return summary

    def _warn_crude_members(self, prediction: CredalPrediction, /, *, stacklevel: int = 2) -> None:
        """Warn of a single member, or of several that are the same or nearly one-hot; not of what sampling has told."""
        if not self._warned:
            warn_of_members(prediction, stacklevel=stacklevel + 1)

    def _warn_doubtful(self, output: MemberOutput, *, stacklevel: int) -> None:
        if self.outputs == "logits" and not torch.compiler.is_compiling():
            warn_doubtful_output(output.tensor, self.class_axis, stacklevel=stacklevel + 1)

    @property
    def each_member(self) -> list[nn.Module]:
        """The members, in order."""
        return list(self.members)

    @property
    def n_members(self) -> int:
        """How many predictions go into one credal prediction, members times samples."""
        return len(self.members) * (self.samples or 1)

    @property
    def vectorised_bytes(self) -> int:
        """Bytes of weights that a vectorised pass copies at once; activations of as many members come on top."""
        return stacked_bytes(self.each_member[: self.member_chunk])

    def extra_repr(self) -> str:
        """The options that differ from the defaults, for printing."""
        options = [f"outputs={self.outputs!r}"]
        options += [f"samples={self.samples}"] if self.samples else []
        options += [f"class_axis={self.class_axis}"] if self.class_axis != -1 else []
        options += ["recalibrated"] if self.recalibration is not None else []
        options += [f"{name}=True" for name in ("hull", "gradients", "vectorised") if getattr(self, name)]
        return ", ".join(options)

    @property
    def _budget(self) -> dict[str, Any]:
        """The options of every function that makes a prediction."""
        return {name: getattr(self, name) for name in ("base", "max_nodes", "tolerance", "threads")}

    def _each_output(self, call: Call) -> Generator[MemberOutput, None, None]:
        """Run every pass and yield its output, divided by its temperature."""
        if self.recalibration is None:
            yield from self._each_raw_output(call)
            return
        kind = "logits" if self.outputs == "logits" else "probs"
        for n, (member, tensor) in enumerate(self._each_raw_output(call)):
            if not n:
                self._warn_doubtful(MemberOutput(member, tensor), stacklevel=7)  # while its values are the member's
            self.recalibration.check(self.n_members, tensor.shape[-1])
            recalibrated = MemberOutput(member, divided(tensor, self.temperatures[n], kind))
            del tensor
            yield recalibrated
            del recalibrated

    def _each_raw_output(self, call: Call) -> Generator[MemberOutput, None, None]:
        """Run every pass and yield its output. Only the caller keeps outputs, so it decides how many are in memory.

        All members are checked before the first runs; on a GPU each just before it runs, while the GPU is still busy with
        the member before it.
        """
        device = input_device(call)
        form = OutputForm(device)
        check_early = self.vectorised or not _runs_ahead(device)
        for n, member in enumerate(self.members if check_early else ()):
            self._check_member(member, device, member_name(n, member))
        if self.vectorised:
            yield from self._vectorised_outputs(call, form)
            return
        for n, member in enumerate(self.members):
            name = member_name(n, member)
            if not check_early:
                self._check_member(member, device, name)
            yield from self._member_outputs(member, name, call, form)

    def _check_member(self, member: nn.Module, device: torch.device | None, name: str) -> None:
        check_device(member, device, name)
        if not (self.gradients and self.training):
            check_mode(member, name, sampled=self.samples is not None)

    def _member_outputs(self, member: nn.Module, name: str, call: Call, form: OutputForm) -> Iterator[MemberOutput]:
        """One output, or ``samples`` of them."""
        member_args = member_call(member, call)
        if self.samples is None:
            yield self._output(member, name, member_args, form)
            return
        watch = SampleWatch()
        with sampling(member):
            for _ in range(self.samples):
                yield self._output(member, name, member_args, form, watch)
        self._warned = self._warned or watch.warn_if_identical(name)

    def _output(
        self, member: nn.Module, name: str, call: Call, form: OutputForm, watch: SampleWatch | None = None
    ) -> MemberOutput:
        args, kwargs = call
        with naming_member(name, call):
            returned = member(*args, **kwargs)
        tensor = self._tensor(returned, name)
        form.check(tensor, name)
        if watch is not None:
            watch.see(tensor)
        return MemberOutput(name, tensor)

    def _tensor(self, returned: Any, name: str) -> torch.Tensor:
        return output_tensor(returned, self.outputs, name, class_axis=self.class_axis)

    def _vectorised_outputs(self, call: Call, form: OutputForm) -> Iterator[MemberOutput]:
        members = self.each_member
        chunk = self.member_chunk or len(members)
        for start in range(0, len(members), chunk):
            part = members[start : start + chunk]
            with naming_member("a member", call):
                stacked = vectorised_pass(part, call, lambda returned: self._tensor(returned, "a member"))
            for n, (member, tensor) in enumerate(zip(part, stacked, strict=True), start=start):
                form.check(tensor, member_name(n, member))
                yield MemberOutput(member_name(n, member), tensor)


def _runs_ahead(device: torch.device | None) -> bool:
    """Whether the CPU continues while this device computes, until it asks for a value."""
    return device is not None and device.type == "cuda"
