"""Members' outputs: a server that stands behind other model servers and does nothing but the credal part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from numpy.typing import NDArray

from credalens.checks.bad_rows import BadRowError
from credalens.checks.options import check_base
from credalens.guard import Guard
from credalens.prediction import CredalPrediction, wrap, wrap_logits
from credalens.serve.models.served import ServedModel, TensorSpec
from credalens.serve.protocol.datatypes import FLOATS
from credalens.serve.protocol.errors import RequestError

QUICK_VALUES: Final = 4096  # `wrap` takes less than a millisecond for them


def member_outputs(
    guard: Guard | None = None, /, *, logits: bool = False, base: float | None = None, name: str = "credal",
    version: str = "1",
) -> ServedModel:  # fmt: skip
    """The model of a server that only does the credal part, behind servers that run the members.

    Its one input is ``probs``, or ``logits``: members x rows x classes. With a guard, the number of members and classes, the
    base and the trim must be those of the guard.

    >>> member_outputs().inputs[0].name
    'probs'
    """
    tensor = "logits" if logits else "probs"
    shape = (-1, -1, -1) if guard is None else (guard.n_members, -1, guard.classes)
    options = wrap_options(guard, base)

    def predict(inputs: dict[str, NDArray]) -> CredalPrediction:
        with words_for_clients(400):
            return wrap_members(inputs[tensor], logits=logits, **options)

    spec = TensorSpec(tensor, FLOATS, shape)
    return ServedModel(
        name,
        version,
        "credalens_members",
        (spec,),
        predict,
        row_axis=1,
        class_axis=2,
        quick_values=QUICK_VALUES,
        guard=guard,
        wraps=f"input {tensor!r}",
        classes=None if guard is None else guard.classes,
    )


def wrap_options(guard: Guard | None, base: float | None, /) -> dict[str, Any]:
    """The options of ``wrap``: those of the guard, where there is one."""
    base = None if base is None else check_base(base)
    if guard is None:
        return {"base": base or 2.0}
    if base not in (None, guard.base):
        raise ValueError(f"the guard was fitted in base {guard.base:g} and base {base:g} was passed; leave base out.")
    return {"base": guard.base, "trim": guard.trim}


@contextmanager
def words_for_clients(status: int, prefix: str = "") -> Iterator[None]:
    """What our own checks say about members' outputs may be told; a bad row is named by who knows where it was."""
    try:
        yield
    except BadRowError:
        raise
    except (ValueError, TypeError) as error:
        raise RequestError(f"{prefix}{error}", status=status) from error


def wrap_members(members: Any, /, *, logits: bool, **options: Any) -> CredalPrediction:
    """``wrap`` or ``wrap_logits``."""
    return wrap_logits(members, **options) if logits else wrap(members, **options)
