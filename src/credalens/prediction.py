"""wrap(): turns member predictions into a credal prediction. The one call most users need."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from credalens.arrays import NUMPY, array_kind_of, entries, gpu_tensor, places_of, rounding, to_numpy, top_class
from credalens.checks.doubtful_members import warn_doubtful_logits, warn_many_members
from credalens.checks.intervals import check_mean, computed_intervals, read_intervals, trusted_intervals
from credalens.checks.members import batch_index
from credalens.checks.options import check_choice
from credalens.core.classical import ClassicalUncertainty, classical_of, from_bits, pairwise_kl_of
from credalens.core.decisions import decide
from credalens.core.decomposition import CredalArrays, decompose_bounds, decompose_members, members_left_out
from credalens.core.entropy import shannon_entropy
from credalens.core.hartley import hartley_of
from credalens.core.hull import ConvexHull
from credalens.core.intervals import ProbabilityIntervals, trimmed_between
from credalens.core.members import (
    MemberArray,
    Members,
    classes_last,
    in_common_precision,
    read_logits,
    read_probabilities,
    read_stack,
    roughest,
)
from credalens.core.options import MAX_NODES, TOLERANCE, Options, options_of
from credalens.core.recalibration import Recalibration, check_recalibration, recalibrated, temperatures_of
from credalens.core.scores import SCORES
from credalens.core.summary import MemberSummary

ARRAYS = CredalArrays._fields
__all__ = ["CredalPrediction", "from_summary", "wrap", "wrap_logits", "wrap_members"]


@dataclass(frozen=True, eq=False, repr=False)
class CredalPrediction:
    """A credal set for each input, its point prediction and its uncertainty, as arrays of the caller's library.

    - ``lower``, ``upper`` (*batch, classes): the lowest and the highest probability that any member gives.
    - ``probability`` (*batch, classes): the intersection probability, the point prediction of the credal set.
    - ``mean`` (*batch, classes): the averaged probability, for comparison.
    - ``total``, ``aleatoric``, ``epistemic`` (*batch): the highest entropy, the lowest entropy, their difference.
    - ``aleatoric_bound`` (*batch): a certified lower bound of the lowest entropy. It equals ``aleatoric`` up to 1e-9 bits, in
      float32 up to 1e-6, unless the work budget ended first, of which a warning says for how many rows, and how far apart the
      two are.
    - ``classical``, ``hartley``, ``hartley_bounds``, ``hull``: described below, and computed on first access.

    Entropies are accurate to the last digits of the results' dtype, but for ``aleatoric`` and ``epistemic`` of the rows that a
    warning counts; those of CUDA tensors narrower than float64 to about 2e-6 bits.

    ``temperatures`` are those that its members were divided by, if they were recalibrated (`Recalibration`).

    ``wrap``, ``MemberSummary.prediction`` and the adapters of torch and scikit-learn return it.
    """

    lower: Any
    upper: Any
    probability: Any
    mean: Any
    total: Any
    aleatoric: Any
    epistemic: Any
    aleatoric_bound: Any
    base: float
    n_members: int
    trim: float = 0.0
    _members: Members | None = field(default=None)
    _classical: Any = field(default=None)
    _threads: int | None = field(default=None)  # for what is computed on first access
    _rounding: float = 0.0  # of the members' probabilities, relatively: `credalens.arrays.rounding`
    temperatures: tuple[float, ...] = ()
    _has_mean: bool = True

    @staticmethod
    def from_intervals(
        lower: Any, upper: Any, mean: Any = None, *, base: float = 2, max_nodes: int = MAX_NODES,
        tolerance: float = TOLERANCE, threads: int | None = None,
    ) -> CredalPrediction:  # fmt: skip
        """The credal prediction of probability intervals from anywhere: Venn-Abers, experts, other libraries.

        Bounds (*batch, classes) must hold a distribution and be reached by one (`ProbabilityIntervals.tighten`). Without a
        ``mean`` inside them, ``mean`` is the intersection probability, and nothing that averages members is there: no
        ``classical``, no hull, none of the scores of averaging; with one there is "mean_least_confidence".

        >>> prediction = CredalPrediction.from_intervals([[0.5, 0.1]], [[0.9, 0.5]])
        >>> prediction.probability.round(3).tolist(), prediction.predict_set().tolist(), prediction.n_members
        ([[0.7, 0.3]], [[True, True]], 0)
        """
        options = Options(base=base, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
        intervals = read_intervals(lower, upper)
        low, high, given = intervals.lower, intervals.upper, intervals.lower
        if mean is not None:
            given = read_probabilities(mean, "mean").reshape(-1, low.shape[-1])
            check_mean(given, intervals)
        kind = intervals.array_kind
        arrays = decompose_bounds(low, high, given, kind.result_dtype, options, stacklevel=3)
        arrays = arrays if mean is not None else arrays._replace(mean=arrays.probability)
        return CredalPrediction(
            *arrays.map(intervals.restore), base=options.base, n_members=0, _threads=options.threads,
            _rounding=intervals.rounding, _has_mean=mean is not None,
        )  # fmt: skip

    @property
    def intervals(self) -> ProbabilityIntervals:
        """The bounds as ``ProbabilityIntervals``."""
        return ProbabilityIntervals._trusted(self.lower, self.upper)

    @property
    def _options(self) -> Options:
        return Options(base=self.base, trim=self.trim, threads=self._threads)

    @cached_property
    def classical(self) -> ClassicalUncertainty:
        """Total, aleatoric and epistemic uncertainty of the averaged prediction."""
        if self._classical is not None:
            return self._classical
        return classical_of(self._given_members("classical uncertainty"), self._options)

    @cached_property
    def _hartley(self) -> tuple[Any, Any, Any]:
        return hartley_of(trusted_intervals(self.lower, self.upper), self._options)

    @property
    def hartley(self) -> Any:
        """The generalized Hartley measure of the intervals, (*batch)."""
        return self._hartley[0]

    @property
    def hartley_bounds(self) -> tuple[Any, Any]:
        """The certified bracket (low, high) of ``hartley``: equal up to 16 classes, at most 1e-3 bit apart beyond."""
        return self._hartley[1:]

    @cached_property
    def hull(self) -> ConvexHull:
        """The convex hull of all members, also of those that ``trim`` leaves out; a prediction from a summary has none.

        It is a smaller credal set, unless ``trim`` narrows the intervals: it may reach beyond them then.
        """
        return ConvexHull._of_members(self._given_members("the hull").to_cpu())

    @cached_property
    def _pairwise_kl(self) -> Any:
        return pairwise_kl_of(self._given_members("mean_pairwise_kl"), self._options)

    def _given_members(self, what: str) -> Members:
        if self.n_members == 0:
            raise ValueError(f"{what} needs members' predictions, and this prediction was made from intervals.")
        if self._members is None:
            raise ValueError(
                f"{what} needs the members themselves, and this prediction was made from a summary of them or from a file; "
                "pass hull=True to CredalWrapper or CredalClassifier, which then keep them, or use wrap(probs)."
            )
        return self._members

    def score(self, name: str = "total", /) -> Any:
        """One uncertainty score of the catalogue (page "Which score"), (*batch): higher means less certain.

        Of the credal set "total", "epistemic", "aleatoric", "hartley", "imprecision", "entropy", "least_confidence" and
        "set_size"; of averaging "mean_total", "mean_epistemic", "mean_aleatoric", "mean_least_confidence" and
        "mean_pairwise_kl".
        """
        score = SCORES[check_choice(name, tuple(SCORES), "score")]
        if score.averaged and not self._has_mean:
            self._given_members(name)
        return score.compute(self)

    def predict(self) -> Any:
        """The class with the highest intersection probability, (*batch); the mean breaks ties."""
        return top_class(self.probability, ties=self.mean)

    def predict_set(self, rule: str = "maximality", costs: Any = None) -> Any:
        """The classes that remain possible under ``rule`` (see ``credal_decision``), as a mask (*batch, classes).

        With ``costs`` (actions, classes) the actions that remain, (*batch, actions). The rules that leave exactly one are
        "gamma_minimax", "expected_intersection" and "expected_mean".
        """
        intervals = computed_intervals(self.lower, self.upper, of_members=self._rounding)
        points = {"probability": self.probability, "mean": self.mean}
        return decide(intervals, rule, costs=costs, **points, threads=self._threads)

    def __len__(self) -> int:
        if not self.total.shape:
            raise TypeError(
                "a prediction for a single input has no length; give wrap a batch axis, (members, 1, classes)."
            )
        return int(self.total.shape[0])

    def __getitem__(self, key: Any, /) -> CredalPrediction:
        """The prediction for some inputs: an index, a slice, a list or a mask, or a tuple of these for several axes."""
        len(self)
        key = batch_index(key, len(self.total.shape))
        arrays = {name: entries(getattr(self, name), key) for name in ARRAYS}
        places = places_of(key, tuple(self.total.shape), array_kind_of(self.total)) if isinstance(key, tuple) else key
        members = self._members and self._members.take(places)
        classical = self._classical and ClassicalUncertainty(*(entries(x, key) for x in vars(self._classical).values()))
        return replace(self, **arrays, _members=members, _classical=classical)

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write everything but the members to an ``.npz`` file, which appears whole or not at all."""
        from credalens.storage.prediction_file import save_prediction

        save_prediction(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str], /) -> CredalPrediction:
        """Read what :meth:`save` wrote, as NumPy arrays; without members: no hull and no ``mean_pairwise_kl``."""
        from credalens.storage.prediction_file import load_prediction

        return load_prediction(path)

    def to_pandas(self, class_names: Sequence[str] | None = None) -> Any:
        """One row for each input: the predicted class, its probability and bounds, and the three uncertainties."""
        from credalens.storage.prediction_file import to_frame

        return to_frame(self, class_names)

    def __repr__(self) -> str:
        batch, classes = tuple(self.lower.shape[:-1]), self.lower.shape[-1]
        trim = f", trim={self.trim:g}" if self.trim else ""
        source = f"members={self.n_members}" if self.n_members else "intervals"
        return f"CredalPrediction({source}, batch={batch}, classes={classes}, base={self.base:g}{trim})"


def wrap(
    probs: Any,
    *,
    member_axis: int = 0,
    class_axis: int = -1,
    base: float = 2,
    trim: float = 0,
    recalibration: Recalibration | None = None,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> CredalPrediction:
    """Turn the probabilities of N members into a credal prediction.

    ``probs`` has shape (members, *batch, classes), or its members lie along ``member_axis`` and its classes along
    ``class_axis``; in results the classes are last. Rows must sum to one. Results have the library, device and batch shape
    of ``probs``; their dtype is float64 for float64 and float32 for narrower input. Everything is computed in float64.
    ``probs`` is not copied: ``classical`` and ``hull`` read it again on first access. ``max_nodes`` and ``tolerance`` bound
    the search for the lowest entropy (see ``lower_entropy``).

    ``trim`` leaves out, class by class, that share of the members at each end: 0.1 of 40 members the four lowest and the
    four highest values, of fewer than ten members none. The bounds still hold the mean, so that the set is never empty, and
    every bound is attained. With ten members or more that calibrates the intersection probability better and finds fewer OOD
    inputs by total uncertainty. Scores of averaging and the hull are of all members.

    ``recalibration`` divides the logits of the members by temperatures that `Recalibration.fit` found, before anything else.

    >>> prediction = wrap([[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.7, 0.1, 0.2]])
    >>> prediction.probability.round(4), round(float(prediction.epistemic), 3)
    (array([0.325 , 0.2875, 0.3875]), 0.428)
    """
    options = options_of(base=base, trim=trim, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
    return _predict(probs, "probs", member_axis, class_axis, options, check_recalibration(recalibration))


def wrap_logits(
    logits: Any,
    *,
    member_axis: int = 0,
    class_axis: int = -1,
    base: float = 2,
    trim: float = 0,
    recalibration: Recalibration | None = None,
    max_nodes: int = MAX_NODES,
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> CredalPrediction:
    """Turn the logits of N members into a credal prediction: a softmax in float64 over the classes, then ``wrap``.

    Warns if a few rows that it looks at are probabilities already.

    >>> wrap_logits([[[2.0, 0.0]], [[0.0, 2.0]]]).probability.tolist()
    [[0.5, 0.5]]
    """
    options = options_of(base=base, trim=trim, max_nodes=max_nodes, tolerance=tolerance, threads=threads)
    return _predict(logits, "logits", member_axis, class_axis, options, check_recalibration(recalibration))


def _predict(
    given: Any, kind: str, member_axis: int, class_axis: int, options: Options, recalibration: Recalibration | None
) -> CredalPrediction:
    """The credal prediction of "probs" or "logits": computed on their GPU where that is possible, else on the CPU."""
    logits = kind == "logits"
    warn_many_members(given, kind, class_axis=class_axis, stacklevel=3)
    least_rounding = roughest(given, logits=logits)
    values = given if logits else in_common_precision(given, class_axis=class_axis)
    values, member_axis = classes_last(values, member_axis, class_axis, kind)
    prediction = _on_gpu(values, kind, member_axis, options, least_rounding, recalibration)
    if prediction is None:
        members = _read_members(values, kind, member_axis, recalibration)
        prediction = CredalPrediction(
            *decompose_members(members, options, kind, stacklevel=4),
            base=options.base,
            n_members=len(members.array),
            trim=options.trim,
            _members=members.as_accepted(),
            _threads=options.threads,
            _rounding=max(least_rounding, members.array_kind.rounding),
            temperatures=temperatures_of(recalibration),
        )
    if logits:
        warn_doubtful_logits(values, class_axis=class_axis, stacklevel=3)  # now, when a GPU has nothing left to do
    return prediction


def _read_members(values: Any, kind: str, member_axis: int, recalibration: Recalibration | None) -> MemberArray:
    """Members for the CPU path, which checks the rows of those that are read as they are."""
    if recalibration is not None:
        return recalibrated(read_stack(values, member_axis, kind), recalibration, kind)
    return read_logits(values, member_axis=member_axis) if kind == "logits" else read_stack(values, member_axis, kind)


def wrap_members(values: Any, *, logits: bool, **options: Any) -> CredalPrediction:
    """``wrap_logits`` where the members' values are logits, else ``wrap``; with their options."""
    return wrap_logits(values, **options) if logits else wrap(values, **options)


def _on_gpu(
    values: Any,
    kind: str,
    member_axis: int,
    options: Options,
    least_rounding: float,
    recalibration: Recalibration | None,
) -> CredalPrediction | None:
    """The credal prediction of CUDA tensors, computed on their device; None where the CPU has to compute it.

    That is where Triton is missing, for trimmed intervals, and where values are wrong: the CPU path raises the error.
    """
    if options.trim or (tensor := gpu_tensor(values)) is None:
        return None
    from credalens.cuda import as_gpu_members

    members = as_gpu_members(tensor, kind, member_axis=member_axis)
    if members is not None and recalibration is not None:
        members = members.recalibrated(recalibration)
    if members is None or (arrays := members.decompose(options)) is None:
        return None
    rounded = max(least_rounding, rounding(array_kind_of(tensor).dtype, logits=kind == "logits"))
    return CredalPrediction(
        *arrays,
        base=options.base,
        n_members=len(members.tensor),
        _members=members,
        _rounding=rounded,
        temperatures=temperatures_of(recalibration),
    )


def from_summary(summary: MemberSummary, options: Options, /) -> CredalPrediction:
    """The credal prediction of a summary's members."""
    if summary.count == 0:
        raise ValueError("this MemberSummary has no members yet; call update(probs) before prediction().")
    kind, out = summary.array_kind or NUMPY, members_left_out(options.trim, summary.count, stacklevel=4)
    lower, upper, total = (to_numpy(x)[0] for x in (*summary.bounds(out), summary.sum_probability))
    *batch, classes = lower.shape
    low, high = (np.ascontiguousarray(x, np.float64).reshape(-1, classes) for x in (lower, upper))
    mean = (total / summary.count).reshape(-1, classes)
    if out:
        low, high, mean = trimmed_between(low, high, mean)
    arrays = decompose_bounds(low, high, mean, kind.result_dtype, options, stacklevel=4)
    entropy = np.asarray(to_numpy(summary.sum_entropy)[0], np.float64).reshape(-1) / summary.count

    def restore(rows: Any) -> Any:
        return kind.restore_rows(rows, tuple(batch))

    return CredalPrediction(
        *arrays.map(restore),
        base=options.base,
        n_members=summary.count,
        trim=options.trim,
        _classical=from_bits(shannon_entropy(mean), entropy, restore, options),
        _threads=options.threads,
        _rounding=kind.rounding,
        temperatures=summary.temperatures,
    )
