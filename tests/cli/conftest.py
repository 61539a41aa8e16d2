"""The command line in this process, as somebody types it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from karat.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


Typed = Callable[..., Done]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Typed:
    """Run karat in an empty folder, 80 columns wide; ``given`` is its standard input."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("KARAT_STORE", raising=False)
    monkeypatch.delenv("KARAT_RATER", raising=False)

    def run(line: str, *more: str, given: str = "", code: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["karat", *line.split(), *more])
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with pytest.raises(SystemExit) as stopped:
            main()
        done = Done(int(stopped.value.code or 0), *capsys.readouterr())
        assert done.code == code, done.err
        assert "Traceback" not in done.err
        if code == 2:
            assert done.err.startswith("karat: ")
        return done

    return run
