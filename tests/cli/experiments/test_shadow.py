"""``karat shadow``: exit codes, limits, the queue of a workspace, and a replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.shadow_traffic import run_of, write_shadow_log

import karat

Typed = Callable[..., Any]  # conftest.py

ENGINES = """[workspace]
name = "shadow"

[engine.old]
kind = "python"
function = "shadow_sides:old"

[engine.new]
kind = "python"
function = "shadow_sides:new"
"""
SIDES = """
def old(text):
    return [f"{text} {at}" for at in range(5)]


def new(text):
    return old(text)[::-1]
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A shadow log of 400 equal answers."""
    return write_shadow_log(tmp_path / "s.jsonl")


@pytest.mark.usefixtures("log")
def test_exit_codes(typed: Typed, tmp_path: Path) -> None:
    assert typed("shadow compare s.jsonl").out.startswith("Pass: within all 7 limits\n")
    (tmp_path / "limits.toml").write_text("[shadow]\nmin_requests = 500\n")
    found = json.loads(typed("shadow compare s.jsonl --limits limits.toml -f json", code=3).out)
    assert (found["verdict"], found["exit_code"]) == ("cannot_tell", 3)
    assert (found["schema_version"], found["requests"]) == (1, 400)
    (tmp_path / "limits.toml").write_text("[shadow]\nmax_p95_ms = 0.5\n")
    failed = typed("shadow compare s.jsonl --limits limits.toml -f md", code=1).out
    assert failed.startswith("**Fail: p95 latency 1.0 ms; the limit is 0.5 ms**")
    (tmp_path / "limits.toml").write_text("[shadow]\nmax_p95 = 0.5\n")
    wrong = typed("shadow compare s.jsonl --limits limits.toml", code=2).err
    assert "did you mean max_p95_ms?" in wrong
    assert "needs a workspace" in typed("shadow compare s.jsonl --queue", code=2).err


@pytest.mark.usefixtures("log")
def test_runs(typed: Typed, tmp_path: Path) -> None:
    ids = [f"q{at}" for at in range(400)]
    for name in ("a", "b"):
        karat.write_run(run_of([["a"]] * 400, [9] * 400, name, ids), tmp_path / f"{name}.jsonl")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n")
    out = typed("shadow compare a.jsonl b.jsonl --qrels qrels.txt --by frequency_band").out
    assert "nDCG where judged" in out
    assert "b against a: 400 requests of 400 queries" in out


def test_a_replay_and_the_queue(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shadow_sides", raising=False)
    (tmp_path / "shadow_sides.py").write_text(SIDES)
    typed("init .")
    declared = (tmp_path / "karat.toml").read_text()
    (tmp_path / "karat.toml").write_text(declared + ENGINES.split("\n\n", 1)[1])
    (tmp_path / "log.csv").write_text("query,count\n" + "".join(f"q{at},1\n" for at in range(40)))
    typed("golden choose log.csv --size 40")
    line = "shadow run old new --log log.csv --out s.jsonl --rate 500"
    done = typed(f"{line} -w . --judge-next 6 --queue --load 1,x", code=2)
    assert "--load '1,x' is not a list of numbers" in done.err
    done = typed(f"{line} -w . --judge-next 6 --queue", code=3)
    assert "karat: 40 requests sent to s.jsonl" in done.err
    assert "karat: 6 documents to judge, 6 new in the queue" in done.err
    again = typed(f"{line} -f json", code=3)
    assert "0 requests sent to s.jsonl, after 40 before the replay was interrupted" in again.err
    assert json.loads(again.out)["requests"] == 40
