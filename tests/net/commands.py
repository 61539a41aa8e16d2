"""Commands as typed, in this process, at a time that stands still and with chance that repeats."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import polars as pl
import pytest
from tests.net.snapshots import shortened

from karat.cli.main import main
from karat.clients import search_function
from karat.demo import _documents, engines

NOW = 1_772_438_400
"""Seconds UTC: 2026-03-02, 8 o'clock."""
DOCUMENTS = Path(__file__).resolve().parent / "demo_documents.jsonl.gz"


@contextmanager
def repeatable(seed: str, seconds: float = 0.0) -> Iterator[pytest.MonkeyPatch]:
    """The clock stands still, and secrets repeat."""
    chance = random.Random(seed)

    def token_bytes(count: int | None = None) -> bytes:
        return chance.randbytes(32 if count is None else count)

    def token_hex(count: int | None = None) -> str:
        return token_bytes(count).hex()

    def token_urlsafe(count: int | None = None) -> str:
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        return "".join(chance.choices(letters, k=-(-4 * (count or 32) // 3)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: NOW + seconds)
        patch.setattr(time, "time_ns", lambda: int((NOW + seconds) * 1_000_000_000))
        patch.setattr(search_function, "perf_counter_ns", lambda: 0)
        patch.setattr(secrets, "token_bytes", token_bytes)
        patch.setattr(secrets, "token_hex", token_hex)
        patch.setattr(secrets, "token_urlsafe", token_urlsafe)
        yield patch


def typed(line: str, folder: Path, given: str = "", minutes: int = 0) -> str:
    """What a command leaves: its output, its messages and its exit code, masked."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with repeatable(line, 60.0 * minutes) as patch:
        patch.chdir(folder)
        for name in ("KARAT_STORE", "KARAT_RATER", "KARAT_WEBHOOK_SECRET", "FORCE_COLOR"):
            patch.delenv(name, raising=False)
        for name, value in {
            "COLUMNS": "80",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "LOGNAME": "eve",
        }.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["karat", *shlex.split(line)])
        patch.setattr(sys, "path", list(sys.path))
        patch.delitem(sys.modules, Path(engines.MODULE).stem, raising=False)  # of another demo
        patch.setattr(sys, "stdin", io.StringIO(given))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as stopped:
            main()
        code = stopped.value.code
        out.flush()
        err.flush()
    printed, said = (each.buffer.getvalue().decode("utf-8", "replace") for each in (out, err))
    assert "Traceback" not in said, said
    parts = [f"$ karat {line}", shortened(masked(readable(printed), folder)).rstrip("\n")]
    if said:
        parts += ["--- standard error", masked(said, folder).rstrip("\n")]
    return "\n".join([*parts, f"--- exit code {int(code or 0)}"])


def readable(text: str) -> str:
    """JSON of one long line as many short ones; anything else as it is."""
    if text.startswith(("{", "[")) and text.count("\n") < 3:
        try:
            return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
        except ValueError:
            pass
    return text.rstrip("\n")


def masked(text: str, folder: Path) -> str:
    """The text without what is another on another day or machine."""
    path = os.fspath(folder)
    text = text.replace(path, "FOLDER").replace(path.replace("_", "&#95;"), "FOLDER")
    text = re.sub(rf"(?<![\d.]){re.escape(metadata.version('karat'))}(?![\d.])", "VERSION", text)
    text = re.sub(r"(?<![\w.])-?\d+\.\d{11,}(?:e-?\d+)?", _rounded, text)
    today = datetime.now(UTC)  # of what does not ask the clock that stands still
    for day in (today - timedelta(days=1), today):
        text = re.sub(rf"{day:%Y-%m-%d}([T ][\d:.]+(Z|\+00:00)?)?", "TODAY", text)
        text = re.sub(rf"(?<![\d-]){day:%m-%d} \d\d:\d\d", "MM-DD TODAY", text)
    if "own_search_of_the_net" in text or "queries asked" in text:  # how long a search took here
        text = re.sub(r"\b(p50|p95) [\d.,]+ m?s\b", r"\1 TIME", text)
    text = re.sub(r"(documents? in) [\d.]+ ms", r"\1 TIME", text)
    text = re.sub(r'"seconds": \d+\.\d{5,}', '"seconds": "TIME"', text)
    text = re.sub(r'"seconds": [\d.e-]+(,\s+"reason")', r'"seconds": "TIME"\1', text)  # of a fit
    return re.sub(r'"((?:p50|p95|p99|max)_us)": [\d.]+', r'"\1": "TIME"', text)


def _rounded(number: re.Match[str]) -> str:
    # Threads add in any order, so the last digits are another each time.
    value = float(number[0])
    return "0.0" if abs(value) < 1e-12 else f"{value:.10g}"


def build_demo(folder: Path) -> None:
    """What ``karat demo`` makes of fewer documents, and what it prints."""
    lines = gzip.decompress(DOCUMENTS.read_bytes()).decode().splitlines()
    found = pl.DataFrame([json.loads(line) for line in lines])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_documents, "collect", lambda: found)
        printed = typed("demo demo", folder)
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
