"""Observer: is told of requests and batches, for metrics, logs and pages; LogLines writes the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from credalens.guard import Decisions
    from credalens.prediction import CredalPrediction

LOG: Final = logging.getLogger("credalens.serve")


@dataclass(frozen=True)
class Answered:
    """An answered inference request, as ``Observer.answered`` gets it.

    :ivar id: that the request gave itself, or None.
    :ivar rows: 0 if the request could not be read.
    :ivar seconds: from its arrival to its answer.
    :ivar error: the message that the client got; None if the request succeeded.
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
    """A predicted batch, as ``Observer.batch_done`` gets it: one request, several, or a part of a large one that was answered.

    :ivar seconds: that the model and the credal prediction took.
    :ivar waiting: number of requests in the queue when the batch began, without those of the batch.
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
    """Base class for metrics and logs of your own: override what you need, and pass it to ``app(..., observers=[...])``.

    A server may have several observers. An exception in one is logged, and changes no answer.

    >>> class CountErrors(Observer):
    ...     errors = 0
    ...     def answered(self, event):
    ...         self.errors += event.error is not None
    """

    def answered(self, event: Answered, /) -> None:
        """Called in the event loop after each inference request; must be quick."""

    def batch_done(self, event: BatchDone, /) -> None:
        """Called in the thread that predicts, after all parts of a batch and before its requests are answered."""

    async def run(self) -> None:
        """Started with the server and cancelled when it ends."""

    def routes(self) -> Sequence[BaseRoute]:
        """More routes of the application, such as ``/metrics``."""
        return ()


def tell(observers: Sequence[Observer], which: Callable[[Observer], Callable[[Any], None]], event: Any, /) -> None:
    """Tell each observer, whatever another one raises: ``tell(observers, lambda x: x.answered, event)``."""
    for observer in observers:
        try:
            which(observer)(event)
        except Exception:
            LOG.exception("%s failed at %s", type(observer).__name__, type(event).__name__)


@final
class LogLines(Observer):
    """Logs every answered request at the level INFO, to the logger ``credalens.serve``; an observer of ``app`` by default."""

    def answered(self, event: Answered, /) -> None:
        """Log the request."""
        if LOG.isEnabledFor(logging.INFO):
            LOG.info("request", extra={"fields": asdict(event)})


@final
class JsonFormatter(logging.Formatter):
    """Formats a log record as a line of JSON: set it on the handler of the logger ``credalens.serve``.

    The line has time, level, logger, message, and the fields of the request.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_config() -> dict[str, Any]:
    """The configuration for ``logging.config`` that writes the server's log to standard error, as lines of JSON."""
    logger = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": f"{__name__}.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {"uvicorn": logger, LOG.name: logger},
    }
