"""The log as JSON lines: one object for each request and for whatever else is logged."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, final

from credalens.serve.observer import LOG, Answered, Observer


@final
class LogLines(Observer):
    """Logs every answered request at the level INFO, to the logger ``credalens.serve``; an observer of ``app`` by default."""

    def answered(self, event: Answered, /) -> None:
        """Log it."""
        if LOG.isEnabledFor(logging.INFO):
            LOG.info("request", extra={"fields": asdict(event)})


@final
class JsonFormatter(logging.Formatter):
    """Formats a log record as a line of JSON: set it on the handler of the logger ``credalens.serve``.

    The line has time, level, logger, message, and the fields of the request.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
    """What ``logging.config`` takes: everything of the server to standard error, as JSON lines."""
    logger = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": f"{__name__}.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {"uvicorn": logger, LOG.name: logger},
    }
