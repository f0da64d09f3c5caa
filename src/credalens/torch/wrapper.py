"""CredalWrapper: a module around the models people already have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, final

import torch
from torch import Tensor, nn

from credalens.checks.member_array import in_common_precision
from credalens.checks.options import (
    check_base,
    check_choice,
    check_count,
    check_max_nodes,
    check_threads,
    check_tolerance,
)
from credalens.core.entropy import MAX_NODES, TOLERANCE
from credalens.core.members import MemberSummary
from credalens.prediction import CredalPrediction, wrap, wrap_logits
from credalens.torch.calling import Call, input_device, resolved
from credalens.torch.folding import Fold, Keep, Sink, Watch, runs_ahead
from credalens.torch.gradients import credal_prediction
from credalens.torch.members import check_options, member_name, read_members
from credalens.torch.modes import check_device, check_mode, sampling
from credalens.torch.outputs import OUTPUTS, output_tensor, probabilities
from credalens.torch.predicting import BATCH_SIZE, predict
from credalens.torch.vectorised import check_same_architecture, stacked_bytes, vectorised_pass

__all__ = ["CredalWrapper"]

FEW = 8  # members whose outputs take no more memory than a summary, and on a GPU less time when taken together


@final
class CredalWrapper(nn.Module):
    """Makes trained models credal: call it on a batch and get a ``CredalPrediction`` of tensors on the batch's device.

    ``members`` is a list of modules (a deep ensemble), any iterable of callables, or one stochastic module or callable
    that is run ``samples`` times: a Bayesian network, or a network with dropout, whose dropout layers, and only those,
    are switched on meanwhile. With several members *and* ``samples`` each is sampled that often. Random draws are the
    members' own; call ``torch.manual_seed`` first to repeat them.

    - ``outputs``: what members return, "logits" (default) or "probabilities"; as a tensor (*batch, classes), a
      dictionary or object with such an entry (Hugging Face), or first in a tuple.
    - ``hull=True`` keeps the members' outputs for ``prediction.hull``: memory grows with their number. By default each
      is folded into a ``MemberSummary`` and forgotten; on a GPU up to eight are taken together, so that it never waits.
    - ``gradients=True`` lets the prediction be differentiated (see ``credal_prediction``); memory grows as well. By default
      nothing is recorded.
    - ``vectorised=True`` runs members of identical architecture as one pass: the same numbers up to rounding, quicker
      for small networks. It takes a stacked copy of the weights (``vectorised_bytes``) and the activations of all members
      at once; ``member_chunk`` limits both to that many members.
    - ``base`` is the logarithm's, 2 for bits; ``max_nodes`` and ``tolerance`` are the budget of the lowest entropy, as in
      ``wrap``; ``threads`` limits the cores used by the solvers.

    A module like any other: members that are modules are its children, so that ``to``, ``eval``, ``train`` and
    ``state_dict`` reach them. Members must be in evaluation mode where that matters; only with ``gradients=True`` and after
    ``train()`` they run as they are.

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
        hull: bool = False,
        gradients: bool = False,
        vectorised: bool = False,
        member_chunk: int | None = None,
        base: float = 2,
        max_nodes: int = MAX_NODES,
        tolerance: float = TOLERANCE,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.samples = None if samples is None else check_count(samples, "samples")
        self.outputs = check_choice(outputs, OUTPUTS, "outputs")
        self.hull, self.gradients, self.vectorised = hull, gradients, vectorised
        self.member_chunk = None if member_chunk is None else check_count(member_chunk, "member_chunk")
        self.base, self.threads = check_base(base), check_threads(threads)
        self.max_nodes, self.tolerance = check_max_nodes(max_nodes), check_tolerance(tolerance)
        check_options(self)
        self.members = read_members(members, samples)
        if vectorised:
            check_same_architecture(self.each_member)
        self.training = False  # a wrapper predicts; train() is for those who train through it
        self._warned = False

    def forward(self, *args: Any, **kwargs: Any) -> CredalPrediction:
        """The credal prediction for one batch. All arguments go to every member; a lone dictionary as its keywords."""
        if self.gradients:
            keep = self._keep((args, kwargs))
            if runs_ahead(keep.device):
                keep.check()
            dtype = reduce(torch.promote_types, (raw.dtype for raw in keep.raw), torch.float32)
            probs = torch.stack(in_common_precision([probabilities(raw, self.outputs) for raw in keep.raw]))
            return credal_prediction(probs, dtype=dtype, **self._budget)
        return self.predict_batch(*args, **kwargs)

    def predict_batch(self, *args: Any, **kwargs: Any) -> CredalPrediction:
        """The same without gradients, whatever the wrapper's options."""
        at_once = self.n_members <= FEW and runs_ahead(input_device((args, kwargs)))
        if not self.hull and not at_once:
            return self.summarise(*args, **kwargs).prediction(**self._budget)
        with torch.no_grad():
            keep = self._keep((args, kwargs))
        made = wrap_logits if self.outputs == "logits" else wrap
        try:
            return made(keep.raw, **self._budget)
        except ValueError:
            keep.check()  # says which member it was, and what about it
            raise

    def summarise(self, *args: Any, **kwargs: Any) -> MemberSummary:
        """The summary of the members for one batch, to be merged with others or reduced over processes.

        With members spread over processes, ``wrapper.summarise(x).all_reduce().prediction()`` is everyone's prediction.
        """
        fold = Fold(self.outputs, input_device((args, kwargs)))
        with torch.no_grad():
            self._run((args, kwargs), fold)
        return fold.summary

    def predict(
        self,
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
        """The credal prediction for a whole data set, without gradients (see ``credalens.torch.predicting.predict``).

        ``data`` is a loader, or a tensor that is split into batches of ``batch_size``. A batch may be a tensor, a
        dictionary, or a tuple that begins with the inputs; ``inputs`` picks them otherwise. Batches are moved to the
        members' device. ``autocast=torch.bfloat16`` runs the members in mixed precision. With an ``output`` folder every
        batch is on disk before the next is begun, and the same call resumes an interrupted run. ``seed`` makes the
        draws of each batch repeatable, interrupted or not. ``returns`` is "numpy" or "torch" (on the CPU).
        """
        return predict(
            self,
            data,
            inputs=inputs,
            batch_size=batch_size,
            autocast=autocast,
            progress=progress,
            output=output,
            seed=seed,
            returns=returns,
        )

    @property
    def each_member(self) -> list[nn.Module]:
        """The members, in order."""
        return list(self.members)

    @property
    def n_members(self) -> int:
        """How many predictions go into one credal prediction: members times samples."""
        return len(self.members) * (self.samples or 1)

    @property
    def vectorised_bytes(self) -> int:
        """Bytes of weights that a vectorised pass copies at once; activations of as many members come on top."""
        return stacked_bytes(self.each_member[: self.member_chunk])

    def extra_repr(self) -> str:
        """The options that differ from the defaults, for printing."""
        shown = [f"outputs={self.outputs!r}"]
        shown += [f"samples={self.samples}"] if self.samples else []
        shown += [f"{name}=True" for name in ("hull", "gradients", "vectorised") if getattr(self, name)]
        return ", ".join(shown)

    @property
    def _budget(self) -> dict[str, Any]:
        """What every way to a prediction is told."""
        return {
            "base": self.base,
            "max_nodes": self.max_nodes,
            "tolerance": self.tolerance,
            "threads": self.threads,
        }

    def _keep(self, call: Call) -> Keep:
        keep = Keep(self.outputs, input_device(call))
        self._run(call, keep)
        return keep

    def _run(self, call: Call, sink: Sink) -> None:
        """Give the output of every pass to ``sink``, which alone decides whether it outlives the next.

        All members are looked at before the first runs; on a GPU each just before it runs, while the one before still does.
        """
        members = self.each_member
        one_by_one = runs_ahead(sink.device) and not self.vectorised
        for n, member in enumerate(members if not one_by_one else []):
            self._check(n, member, sink)
        if self.vectorised:
            self._run_vectorised(members, call, sink)
            return
        for n, member in enumerate(members):
            if one_by_one:
                self._check(n, member, sink)
            self._run_member(n, member, call, sink)

    def _check(self, n: int, member: nn.Module, sink: Sink) -> None:
        who = member_name(n, member)
        check_device(member, sink.device, who)
        if not (self.gradients and self.training):
            check_mode(member, who, sampled=self.samples is not None)

    def _run_member(self, n: int, member: nn.Module, call: Call, sink: Sink) -> None:
        who = member_name(n, member)
        args, kwargs = resolved(member, call)
        if self.samples is None:
            sink(output_tensor(_named(who, member, args, kwargs), self.outputs, who), who)
            return
        watch = Watch()

        def take(raw: Tensor) -> None:  # a function, so that no output is held while the next is computed
            watch.see(raw)
            sink(raw, who)

        with sampling(member):
            for _ in range(self.samples):
                take(output_tensor(_named(who, member, args, kwargs), self.outputs, who))
        if watch.identical and not self._warned:
            self._warned = True
            watch.warn(who)

    def _run_vectorised(self, members: Sequence[nn.Module], call: Call, sink: Sink) -> None:
        chunk = self.member_chunk or len(members)
        for start in range(0, len(members), chunk):
            part = members[start : start + chunk]
            raw = vectorised_pass(part, call, lambda found: output_tensor(found, self.outputs, "a member"))
            for n, member in enumerate(part):
                sink(raw[n], member_name(start + n, member))


def _named(who: str, member: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a member; an error that it raises also says which member it was."""
    try:
        return member(*args, **kwargs)
    except Exception as error:
        error.add_note(f"Raised by {who} of the CredalWrapper.")
        raise
