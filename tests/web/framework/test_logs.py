"""The log: one line for each request, which programs can read, and strangers cannot forge."""

from __future__ import annotations

import json
import logging
import logging.config
from datetime import UTC, datetime

import pytest

from karat.web.framework.logs import JsonLines, Text, log_config


def record(message: str, **about: object) -> logging.LogRecord:
    made = logging.LogRecord("karat.access", logging.INFO, "f.py", 1, message, (), None)
    made.created = datetime(2026, 3, 1, 2, 0, 0, 123_000, tzinfo=UTC).timestamp()
    for name, value in about.items():
        setattr(made, name, value)
    return made


ASKED = {
    "method": "GET",
    "path": "/judge/shop",
    "status": 200,
    "ms": 12.3,
    "person": "anna",
    "address": "10.0.0.7",
}


def test_a_request_is_an_object_with_what_is_known_of_it() -> None:
    line = JsonLines().format(record("GET /judge/shop 200", **ASKED))
    assert json.loads(line) == {
        "time": "2026-03-01T02:00:00.123Z",
        "level": "info",
        "message": "GET /judge/shop 200",
        **ASKED,
    }
    shown = Text().format(record("GET /judge/shop 200", **ASKED))
    assert shown == "2026-03-01T02:00:00.123Z info    GET /judge/shop 200  12.3 ms  anna  10.0.0.7"


def test_nobody_is_null_in_one_and_a_dash_in_the_other() -> None:
    nobody = record("GET / 303", **{**ASKED, "person": None})
    assert json.loads(JsonLines().format(nobody))["person"] is None
    assert "  –  " in Text().format(nobody)


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_no_stranger_can_begin_a_line_or_command_a_terminal(form: logging.Formatter) -> None:
    said = "GET /\nforged\u2028 line \x1b[2J 200"
    line = form.format(record(said, **{**ASKED, "person": "an\nna\x1b"}))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line


def test_an_error_has_its_number_and_its_trace() -> None:
    made = record("error 1a2b", error="1a2b")
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    said = json.loads(JsonLines().format(made))
    assert said["error"] == "1a2b"
    assert said["trace"].endswith("ValueError: two\nlines\n")
    assert Text().format(made).splitlines()[1].startswith("Traceback")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_servers_own_log_of_requests_is_off(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would hold the secrets of links."""
    loggers = ("karat", "uvicorn.error", "uvicorn.access")
    before = {name: logging.getLogger(name) for name in ("", *loggers)}
    held = {n: (each.handlers[:], each.level, each.propagate) for n, each in before.items()}
    try:
        logging.config.dictConfig(log_config(form))
        logging.getLogger("uvicorn.access").info("GET /link/secret")
        logging.getLogger("uvicorn.error").info("Uvicorn running")
        logging.getLogger("uvicorn.error").warning("careful")
        logging.getLogger("karat.access").info("GET / 200", extra=ASKED)
    finally:
        for name, (handlers, level, propagate) in held.items():
            before[name].handlers[:] = handlers
            before[name].setLevel(level)
            before[name].propagate = propagate
    first, second = capsys.readouterr().err.splitlines()
    assert "careful" in first
    assert "GET / 200" in second
