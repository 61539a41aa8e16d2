"""The server's log: one line a request or event, as JSON for programs or as text for eyes."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

FORMS = ("text", "json")
FIELDS = ("method", "path", "status", "ms", "person", "address")
"""What is known of a request, besides when it was answered."""


class JsonLines(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``message``, and what else is known.

    Of a request ``method``, ``path`` (without what follows ``?``, and without secrets), ``status``,
    ``ms``, ``person`` (null: nobody was signed in) and ``address``; of an error the number that
    its page showed as ``error``, and ``trace``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        said |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if hasattr(record, "error"):
            said["error"] = record.error
        if record.exc_info:
            said["trace"] = "".join(traceback.format_exception(*record.exc_info))
        # In ASCII: a line end that Unicode knows and JSON does not would cut the line in two.
        return json.dumps(said)


class Text(logging.Formatter):
    """One line for eyes; the traceback of an error follows it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = _printable(record.getMessage())
        if hasattr(record, "status"):
            who = "–" if record.person is None else _printable(str(record.person))  # type: ignore[attr-defined]
            said += f"  {record.ms:g} ms  {who}  {record.address}"  # type: ignore[attr-defined]
        line = f"{_time(record)} {record.levelname.lower():7} {said}"
        if record.exc_info:
            line += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return line


def log_config(form: str) -> dict[str, Any]:
    """What ``logging.config.dictConfig`` takes: our log on standard error, and no other.

    uvicorn's own log of requests is off, because it would hold the secrets of links.

    Args:
        form: ``text`` or ``json``.
    """
    formatter = {"text": Text, "json": JsonLines}[form]
    ours = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"ours": {"()": f"{__name__}.{formatter.__name__}"}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "ours",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            "karat": ours,
            "uvicorn.error": ours | {"level": "WARNING"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
    }


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _printable(text: str) -> str:
    """What strangers sent: nothing in it may command a terminal, or begin another line."""
    return "".join(c if c.isprintable() else "?" for c in text)
