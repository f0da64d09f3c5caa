"""Observer: what the application tells about its work, for metrics, logs and pages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from credalens.guard import Decisions
    from credalens.prediction import CredalPrediction

LOG: Final = logging.getLogger("credalens.serve")


@dataclass(frozen=True)
class Answered:
    """One request to infer that was answered, well or badly.

    :ivar id: the request's own, or None.
    :ivar rows: 0 where the request could not be read.
    :ivar seconds: from its arrival to its answer.
    :ivar error: what the client was told; None where all went well.
    """

    model: str
    version: str
    status: int
    id: str | None
    rows: int
    seconds: float
    error: str | None


@dataclass(frozen=True, eq=False)
class BatchDone:
    """One batch that was predicted: several requests, one, or a part of one that is too large.

    :ivar requests: whose rows it holds.
    :ivar seconds: that the model and the credal prediction took.
    :ivar waiting: requests in the queue when it began, its own left out.
    :ivar decisions: of the guard, where there is one.
    """

    model: str
    version: str
    requests: int
    rows: int
    seconds: float
    waiting: int
    prediction: CredalPrediction
    decisions: Decisions | None


class Observer:
    """Is told of every answered request and of every batch; does nothing by itself. Override what you need.

    A server may have several. What they raise is logged and changes no answer.
    """

    def answered(self, event: Answered, /) -> None:
        """Called in the event loop, once for each request to infer: must be quick."""

    def batch_done(self, event: BatchDone, /) -> None:
        """Called in the thread that predicts, once for each batch, before its requests are answered."""

    async def run(self) -> None:
        """Runs while the server does, and is cancelled when it ends."""

    def routes(self) -> Sequence[BaseRoute]:
        """Routes that the application offers beside the protocol's, such as ``/metrics``."""
        return ()


def tell(observers: Sequence[Observer], which: Callable[[Observer], Callable[[Any], None]], event: Any, /) -> None:
    """Tell each observer, whatever another one raises: ``tell(observers, lambda x: x.answered, event)``."""
    for observer in observers:
        try:
            which(observer)(event)
        except Exception:
            LOG.exception("%s failed at %s", type(observer).__name__, type(event).__name__)
