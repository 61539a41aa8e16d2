"""A bar for work that takes longer: on a terminal, on standard error, gone when it is done."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from karat.cli import progress


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen_of(monkeypatch: pytest.MonkeyPatch) -> _Screen:
    """A terminal for standard error; made in the test, for pytest sets its own after fixtures."""
    screen = _Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return screen


def test_without_a_terminal_nobody_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.working("events") as told:
        assert told is None
    assert capsys.readouterr().err == ""


def test_what_is_done_at_once_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    before = threading.active_count()
    with progress.working("events") as told:
        assert told is not None
        told(5, 10)
    assert screen.getvalue().strip() == ""
    assert threading.active_count() == before


def test_what_takes_longer_shows_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    with progress.working("events") as told:
        assert told is not None
        told(5, 10)
        until = time.monotonic() + 20
        while "50%" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "events" in screen.getvalue()
    assert "50%" in screen.getvalue()
