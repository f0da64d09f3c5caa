"""Recalibration: the temperatures that members need, fitted through the prediction that is used.

Members that are calibrated one by one give a pooled prediction that is not; so one temperature for all of them is fitted such
that the intersection probability, or the mean, has the lowest negative log-likelihood.
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from credalens.arrays import short_repr
from credalens.checks.arrays import read_labels, read_scores, refuse_values, row_tolerance, warn_shifted_labels
from credalens.checks.options import check_choice, check_count, check_temperatures, check_threads, count_text
from credalens.core.members import MemberArray, check_logits, classes_last, in_common_precision, read_stack, softmax_of
from credalens.core.temperature_search import (
    LOG_RANGE,
    NORMAL_95,
    LabelledMembers,
    best_log_b,
    standard_error,
)

THROUGH: Final = ("credal", "averaged", "members")
GIVEN: Final = "given"
WEIGHTS: Final = "A weight says how often a labelled input counts, such as 1."
FEW_WRONG: Final = 10
"""Of the labelled inputs: with fewer predicted wrong, half of the temperatures made NLL worse (results/recalibration.json)."""
ROWS_AT_A_TIME: Final = 1024
UNSURE: Final = 2.0
"""A range of the temperature whose ends are further apart than this, relatively, is worth a warning."""


@final
@dataclass(frozen=True, eq=False)
class Recalibration:
    r"""Temperatures of members: the probabilities p become proportional to :math:`p^{1/T}`, logits are divided by T.

    Zero stays zero, ties stay ties, and every member names the class that it named. Made by :meth:`fit`, used by
    ``wrap(probs, recalibration=)`` and wherever predictions are made, saved by :meth:`save`.

    :ivar temperatures: of each member, (members,). Above 1 they were too sure, below 1 not sure enough.
    :ivar ranges: where each temperature lies with probability 0.95 over labelled inputs, (members, 2).
    :ivar through: what was fitted: "credal", "averaged" or "members".
    :ivar classes: how many classes predictions must have.
    :ivar n: how many labelled inputs it was fitted on.
    :ivar impossible: how many of these no temperature makes possible, because every member gives their true class zero.
    :ivar nll_before: the mean negative log-likelihood, in nats, of the prediction that was fitted, without recalibration.
    :ivar nll_after: the same with it, on the inputs that it was fitted on.
    :ivar version: of credalens when it was fitted.
    """

    temperatures: NDArray[np.float64]
    ranges: NDArray[np.float64]
    through: str
    classes: int
    n: int
    impossible: int
    nll_before: float | None
    nll_after: float | None
    version: str
    __repr__ = short_repr

    @classmethod
    def fit(
        cls,
        probs: Any,
        labels: Any,
        *,
        logits: bool = False,
        through: str = "credal",
        weights: Any = None,
        member_axis: int = 0,
        class_axis: int = -1,
        threads: int | None = None,
    ) -> Recalibration:
        """Fit on labelled inputs that were not used in training: probabilities, or with ``logits=True`` logits, of all members.

        ``through`` says which prediction gets the lowest negative log-likelihood: one temperature for all members through
        the intersection probability ("credal") or the mean ("averaged"), or one for each member by itself ("members").
        Temperatures between 0.05 and 20 are searched, each valley of the loss to its bottom. ``labels`` are class indices,
        ``weights`` count rows more than once, or less.

        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(size=(1, 2000, 3)) + 0.3 * rng.normal(size=(5, 2000, 3))
        >>> labels = (logits.mean(0) + rng.gumbel(size=(2000, 3))).argmax(-1)
        >>> once, twice = (Recalibration.fit(c * logits, labels, logits=True).temperatures[0] for c in (1, 2))
        >>> round(float(twice / once), 5)
        2.0
        """
        from credalens import __version__

        check_choice(through, THROUGH, "through")
        name = "logits" if logits else "probs"
        members = _read(probs, name, member_axis, class_axis)
        data = _labelled(members, labels, weights, name, through, check_threads(threads))
        possible = _possible_rows(data)
        fitted = [data.rows(possible)] if through != "members" else data.members()
        log_b = np.array([best_log_b(part) for part in fitted])
        errors = np.array([standard_error(part, at) for part, at in zip(fitted, log_b, strict=True)])
        with np.errstate(over="ignore"):
            ranges = np.exp(-log_b[:, None] + NORMAL_95 * errors[:, None] * [-1, 1])
        _warn_unsure(np.exp(-log_b), ranges, len(data.labels), _some_wrong(data))
        shape = (len(members.array),)
        return cls(
            temperatures=np.broadcast_to(np.exp(-log_b), shape).copy(),
            ranges=np.broadcast_to(ranges, (*shape, 2)).copy(),
            through=through,
            classes=int(members.array.shape[-1]),
            n=len(data.labels),
            impossible=int((~possible).sum()),
            nll_before=float(np.mean([part.loss(0.0) for part in fitted])),
            nll_after=float(np.mean([part.loss(at) for part, at in zip(fitted, log_b, strict=True)])),
            version=__version__,
        )

    def apply(self, probs: Any, *, logits: bool = False, member_axis: int = 0, class_axis: int = -1) -> Any:
        """The recalibrated probabilities, as an array of the same library and shape.

        >>> import numpy as np
        >>> probs = np.array([[[0.9, 0.1]], [[0.5, 0.5]]])
        >>> halved = Recalibration.of([2.0, 2.0], classes=2)
        >>> halved.apply(probs).round(3).tolist()
        [[[0.75, 0.25]], [[0.5, 0.5]]]
        """
        name = "logits" if logits else "probs"
        members = recalibrated(_read(probs, name, member_axis, class_axis), self, name)
        shaped = members.array.reshape(len(members.array), *members.batch, self.classes)
        axes = member_axis % shaped.ndim, class_axis % shaped.ndim
        restored = np.moveaxis(shaped, (0, -1), axes).astype(members.array_kind.result_dtype)
        return members.array_kind.restore(np.ascontiguousarray(restored))

    @classmethod
    def of(cls, temperatures: Any, /, *, classes: int) -> Recalibration:
        """Temperatures that are known from elsewhere, one for each member."""
        from credalens import __version__

        values = np.array(temperatures, np.float64)
        if values.ndim != 1 or not len(values) or not ((values > 0) & (values < np.inf)).all():
            raise ValueError(
                f"temperatures must be positive, finite numbers, one for each member, such as [1.5] * 5; got {temperatures!r}."
            )
        unknown = np.repeat([[0.0, np.inf]], len(values), axis=0)
        classes = check_count(classes, "classes", least=2)
        return cls(values, unknown, GIVEN, classes, 0, 0, None, None, __version__)

    def check(self, members: int, classes: int, /) -> None:
        """Refuse predictions by another number of members or of other classes than those it was fitted on."""
        if classes != self.classes:
            raise ValueError(f"this recalibration is for {self.classes} classes and the members predict {classes}.")
        if members != len(self.temperatures):
            raise ValueError(
                f"this recalibration is for {count_text(len(self.temperatures), 'member')} and {members} came: a temperature "
                "depends on how many members are combined. Fit it again with these."
            )

    def temperature(self, member: int, classes: int, /) -> float:
        """The temperature of one member of those classes; refused where there are fewer members."""
        self.check(max(member + 1, len(self.temperatures)), classes)
        return float(self.temperatures[member])

    def __getitem__(self, members: slice, /) -> Recalibration:
        """The same for some members, such as ``r[3:]`` where the first three are elsewhere."""
        if not isinstance(members, slice) or not len(self.temperatures[members]):
            raise TypeError(f"a recalibration is cut by a slice of members, such as r[3:]; got [{members!r}].")
        return replace(self, temperatures=self.temperatures[members], ranges=self.ranges[members])

    def save(self, path: str | os.PathLike[str], /) -> None:
        """Write as JSON that a person can read; the file appears whole or not at all."""
        from credalens.storage.saved import SavedFormat

        SavedFormat("recalibration").write(path, vars(self))

    @staticmethod
    def load(path: str | os.PathLike[str], /) -> Recalibration:
        """Read what :meth:`save` wrote, to the bit."""
        from credalens.storage.saved import SavedFormat

        return SavedFormat("recalibration").read(path, Recalibration._restored)

    @staticmethod
    def _restored(stored: dict[str, Any]) -> Recalibration:
        temperatures, ranges = check_temperatures(stored["temperatures"]), np.array(stored["ranges"], np.float64)
        if not temperatures or ranges.shape != (len(temperatures), 2):
            raise ValueError(f"temperatures are {temperatures} and their ranges {ranges.tolist()}.")
        return Recalibration(
            np.array(temperatures),
            ranges,
            check_choice(stored["through"], (*THROUGH, GIVEN), "through"),
            check_count(stored["classes"], "classes", least=2),
            check_count(stored["n"], "n", least=0),
            check_count(stored["impossible"], "impossible", least=0),
            stored["nll_before"],
            stored["nll_after"],
            str(stored["version"]),
        )


def check_recalibration(x: Any, /) -> Recalibration | None:
    """A recalibration or None; anything else is refused."""
    if x is None or isinstance(x, Recalibration):
        return x
    raise TypeError(
        f"recalibration must be what Recalibration.fit(probs, labels) or Recalibration.load(path) returns; got "
        f"{type(x).__name__}. Temperatures that are known: Recalibration.of([1.5] * 5, classes=10)."
    )


def recalibrated(members: MemberArray, recalibration: Recalibration, name: str = "probs", /) -> MemberArray:
    """The probabilities of members whose shape was checked, in float64: "probs" are checked here, "logits" are read.

    Probabilities are divided by the largest of their row first, so that no power overflows.
    """
    recalibration.check(len(members.array), members.array.shape[-1])
    temperatures = recalibration.temperatures[:, None, None]
    if name == "logits":
        return softmax_of(members, name, temperatures)
    p = members.checked(name).array.astype(np.float64, order="C")
    p /= p.max(axis=-1, keepdims=True)
    np.power(p, 1 / temperatures, out=p)
    p /= p.sum(axis=-1, keepdims=True)
    kind = members.array_kind
    return replace(members, array=p, array_kind=replace(kind, dtype=kind.result_dtype.name).rounded_by(kind.rounding))


def temperatures_of(recalibration: Recalibration | None, /) -> tuple[float, ...]:
    """The temperatures as a prediction keeps them."""
    return () if recalibration is None else tuple(recalibration.temperatures.tolist())


def divided(x: Any, temperature: Any, kind: str, /) -> Any:
    """torch tensors (..., classes) of "logits", or of "probs", recalibrated on their device, in their dtype and with gradients.

    Rows of probabilities that are no distributions stay as they are, to be refused where values are checked.
    """
    if kind == "logits":
        return (x / temperature).to(x.dtype)
    wide = x if x.device.type == "mps" else x.double()
    positive, total = wide > 0, wide.sum(-1, keepdim=True)
    logs = wide.where(positive, 1.0).log() / temperature
    valid = (wide >= 0).all(-1, keepdim=True) & ((total - 1).abs() <= row_tolerance(str(x.dtype).rpartition(".")[2]))
    return logs.where(positive, -math.inf).softmax(-1).where(valid, wide).to(x.dtype)


def _read(probs: Any, name: str, member_axis: int, class_axis: int) -> MemberArray:
    """Members of a valid shape and dtype, classes last."""
    values = in_common_precision(probs, class_axis=class_axis) if name == "probs" else probs
    values, member_axis = classes_last(values, member_axis, class_axis, name)
    return read_stack(values, member_axis, name)


def _labelled(
    members: MemberArray, labels: Any, weights: Any, name: str, through: str, threads: int | None
) -> LabelledMembers:
    """What the search needs; inputs from which no temperature can be learnt are refused."""
    _, rows, classes = members.array.shape
    truth = read_labels(labels, "labels", np.broadcast_to(0, (*members.batch, classes))).ravel()
    if name == "logits":
        logs = check_logits(members, name)
    else:
        with np.errstate(divide="ignore"):
            logs = np.log(members.checked(name).array.astype(np.float64, order="C"))
    logs -= logs.max(axis=-1, keepdims=True)
    warn_shifted_labels(truth, logs.sum(axis=0).argmax(axis=-1), stacklevel=4)
    if len(present := np.unique(truth)) < 2:
        raise ValueError(
            f"all {count_text(rows, 'label')} are class {', '.join(map(str, present)) or 'none'}: of a single class the surest "
            "members are the best, so that no temperature can be learnt. Bring labelled inputs of at least two classes."
        )
    if not (np.isfinite(logs) & (logs < 0)).any():
        raise ValueError(
            f"each row of {name} has only zeros and equal highest values, as one-hot votes have, which no temperature changes. "
            "Bring the members' own probabilities or logits."
        )
    return LabelledMembers(logs, truth, _read_weights(weights, members.batch), through, threads)


def _read_weights(weights: Any, batch: tuple[int, ...]) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(math.prod(batch))
    values = read_scores(weights, "weights")
    if values.shape != batch:
        raise ValueError(f"weights must have shape {batch}, one number for each labelled input; got {values.shape}.")
    refuse_values(~((values >= 0) & (values < np.inf)), values, "weights", "negative or infinite", WEIGHTS)
    if not values.sum() > 0:
        raise ValueError(f"all weights are zero. {WEIGHTS}")
    return values.ravel()


def _possible_rows(data: LabelledMembers) -> NDArray[np.bool_]:
    """Rows whose true class some member gives more than zero; the others no temperature changes, and a warning counts them."""
    rows = np.arange(len(data.labels))
    possible = np.asarray((data.logs[:, rows, data.labels] > -np.inf).any(axis=0))
    impossible = int((~possible).sum())
    if impossible == len(rows):
        raise ValueError(
            "every member gives the true class of every input probability zero: are the labels of these inputs?"
        )
    if impossible:
        warnings.warn(
            f"of {impossible} of {count_text(len(rows), 'labelled input')} every member gives the true class probability zero, "
            "which no temperature changes; they are left out. Probabilities that were rounded to zero are kept by logits: "
            "pass these (logits=True).",
            stacklevel=4,
        )
    return possible


def _some_wrong(data: LabelledMembers) -> int:
    """How many labelled inputs the mean of the members names another class for; counted until they are not few."""
    wrong = 0
    for start in range(0, len(data.labels), ROWS_AT_A_TIME):
        rows = slice(start, start + ROWS_AT_A_TIME)
        p = np.exp(data.logs[:, rows])
        p /= p.sum(axis=-1, keepdims=True)
        wrong += int((p.mean(axis=0).argmax(axis=-1) != data.labels[rows]).sum())
        if wrong >= FEW_WRONG:
            break
    return wrong


def _warn_unsure(temperatures: NDArray, ranges: NDArray, n: int, wrong: int) -> None:
    """Warn of temperatures at the end of what was searched, or that other labelled inputs would have made quite different."""
    at_end = np.abs(np.log(temperatures)) > LOG_RANGE - 1e-3
    if at_end.any():
        warnings.warn(
            f"the best temperature of {count_text(n, 'labelled input')} lies at the end of what is searched, "
            f"{temperatures[at_end][0]:.3g}: "
            + (
                "the surer, the better, as where every prediction is right. Bring inputs on which some are wrong."
                if temperatures[at_end][0] < 1
                else "the less sure, the better, as where labels belong to other inputs. Check their order."
            ),
            stacklevel=4,
        )
    elif wrong < FEW_WRONG:
        warnings.warn(
            f"of {count_text(n, 'labelled input')} {wrong or 'none'} {'is' if wrong == 1 else 'are'} predicted wrong, and what "
            f"errors cost is what a temperature is learnt from: with fewer than {FEW_WRONG} every second one makes predictions "
            "worse elsewhere. Bring more labelled inputs, or do without.",
            stacklevel=4,
        )
    elif (ranges[:, 1] > UNSURE * ranges[:, 0]).any():
        widest = ranges[np.argmax(ranges[:, 1] / ranges[:, 0])]
        warnings.warn(
            f"{count_text(n, 'labelled input')} leave the temperature between {widest[0]:.3g} and {widest[1]:.3g} (95 %). "
            "Bring more of them; a few hundred with some errors among them are usually enough.",
            stacklevel=4,
        )
