"""Replays against real engines on loopback: pace, order, lateness, and going on after a kill."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.search_server import SearchServer, serving

from karat.errors import InputError, KaratError, UsageError
from karat.formats.own.engines import read_engines
from karat.tables.engines import EngineConfig
from karat.workflows.experiments.replay import Pace, replay
from karat.workflows.experiments.shadow import compare_shadow

FAST = Pace(rate=400.0)
PAGES = ("read a file", "join two lists", "sort a list", "open a file", "lists of files")
_SQL = (
    "SELECT id, -bm25(pages), title FROM pages WHERE pages MATCH :p0 "
    "ORDER BY bm25(pages), id LIMIT :p1 OFFSET :p2"
)
_TOML = """[workspace]
name = "shadow"

[engine.old]
kind = "http"
url = "{old}/search?q={{query}}&n={{size}}"
hits = "$.results"
id = "$.id"
score = "$.rank.score"

[engine.new]
kind = "http"
url = "{new}/search?q={{query}}&n={{size}}"
hits = "$.results"
id = "$.id"
score = "$.rank.score"
"""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[SearchServer, SearchServer]]:
    """Two search APIs over one index."""
    database = tmp_path / "pages.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, title)")
        rows = [(f"p{at}", text) for at, text in enumerate(PAGES * 3)]
        connection.executemany("INSERT INTO pages VALUES (?, ?)", rows)
    connection.close()
    with serving(SearchServer(database, _SQL)) as old, serving(SearchServer(database, _SQL)) as new:
        (tmp_path / "karat.toml").write_text(_TOML.format(old=old.url, new=new.url))
        yield old, new


@pytest.fixture
def engines(tmp_path: Path, servers: Any) -> list[EngineConfig]:
    declared = read_engines(tmp_path)
    return [declared["old"], declared["new"]]


def log_of(path: Path, count: int = 30) -> Path:
    words = ["read", "file", "join", "lists", "sort", "open", "two"]
    rows = [f"{words[at % 7]} {words[at % 5]},{1_790_000_000 + at / 20}" for at in range(count)]
    path.write_text("query,timestamp\n" + "\n".join(rows) + "\n")
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def test_both_sides_are_asked_at_the_pace_of_the_log(
    tmp_path: Path, engines: list[EngineConfig], servers: tuple[SearchServer, SearchServer]
) -> None:
    out = tmp_path / "s.jsonl"
    began = time.monotonic()
    found = replay(engines, log_of(tmp_path / "log.csv"), out, Pace(speed=2.0))
    took = time.monotonic() - began
    assert took >= 29 / 20 / 2  # 30 requests, 20 a second, twice as fast
    assert (found.planned, found.asked, found.before) == (30, 30, 0)
    rows = sorted(lines(out), key=lambda row: int(row["id"]))
    gaps = [later["at_us"] - row["at_us"] for row, later in pairwise(rows)]
    assert sorted(gaps)[15] == pytest.approx(25_000, abs=10_000)
    # Each side's answers, and the baseline's twice.
    assert [len(server.asked) for server in servers] == [60, 30]
    assert all(list(row["answers"]) == ["baseline", "candidate", "again"] for row in rows)
    assert all(row["answers"]["baseline"]["latency_us"] > 0 for row in rows)
    head = json.loads(out.read_text().splitlines()[0])
    assert head["engines"] == {"baseline": "old", "candidate": "new"}
    result = compare_shadow([out])
    assert result.requests == 30
    assert result.groups[0].kinds["same"] == result.queries
    assert result.hashes["baseline"] is not None


def test_a_slow_engine_does_not_stop_the_clock(
    tmp_path: Path, engines: list[EngineConfig], servers: tuple[SearchServer, SearchServer]
) -> None:
    """Open loop: 20 requests within half a second, though the candidate takes 0.3 s for each."""
    servers[1].trouble += [0.3] * 20
    out, log = tmp_path / "s.jsonl", log_of(tmp_path / "log.csv", 20)
    began = time.monotonic()
    found = replay(engines, log, out, Pace(rate=40.0), again=False)
    assert time.monotonic() - began < 3.0  # one by one it would be 6 s
    assert found.late <= 4
    side = {each.side: each.p50_us for each in compare_shadow([out]).sides}
    assert side["candidate"] is not None
    assert side["candidate"] > 300_000
    few = replay(engines, log, tmp_path / "few.jsonl", Pace(rate=400.0), again=False, workers=1)
    assert few.asked == 20


def test_too_few_workers_are_late(
    tmp_path: Path, engines: list[EngineConfig], servers: tuple[SearchServer, SearchServer]
) -> None:
    servers[1].trouble += [0.1] * 10
    out = tmp_path / "s.jsonl"
    found = replay(engines, log_of(tmp_path / "log.csv", 10), out, FAST, workers=1, again=False)
    assert found.late >= 8
    result = compare_shadow([out])
    assert result.late == found.late
    assert any("were sent more than 50 ms late" in note for note in result.notes)


def test_errors_and_timeouts_are_logged(
    tmp_path: Path, engines: list[EngineConfig], servers: tuple[SearchServer, SearchServer]
) -> None:
    servers[1].trouble += [(500, {"error": "x"}), 0.5]
    out, log = tmp_path / "s.jsonl", log_of(tmp_path / "log.csv", 6)
    replay(engines, log, out, FAST, timeout=0.2, workers=1, again=False)
    candidate = compare_shadow([out]).sides[1]
    assert (candidate.failed, candidate.timeouts) == (2, 1)


def test_load_and_warm_up(tmp_path: Path, engines: list[EngineConfig]) -> None:
    out = tmp_path / "s.jsonl"
    pace = Pace(load=(20, 40), seconds=0.5, warm_up=5)
    replay(engines, log_of(tmp_path / "log.csv", 8), out, pace, again=False)
    result = compare_shadow([out])
    phases = [(row.phase, row.requests) for row in result.by_phase if row.side == "baseline"]
    assert phases == [("cold", 5), ("load 20", 10), ("load 40", 20)]
    assert result.requests == 30


def test_sides_are_asked_in_random_order(tmp_path: Path, engines: list[EngineConfig]) -> None:
    asked: list[str] = []
    (tmp_path / "sides.py").write_text(
        "ASKED = []\n"
        "def old(text):\n    ASKED.append('old')\n    return ['a']\n"
        "def new(text):\n    ASKED.append('new')\n    return ['a']\n"
    )
    configs = [
        replace(config, kind="python", function=f"sides:{config.name}", url="")
        for config in engines
    ]
    log = log_of(tmp_path / "log.csv", 40)
    for seed in (1, 1, 2):
        pace, out = Pace(rate=2000.0), tmp_path / f"{len(asked)}.jsonl"
        replay(configs, log, out, pace, workers=1, again=False, seed=seed)
        asked.append("".join(word[0] for word in sys.modules["sides"].ASKED))
        sys.modules["sides"].ASKED.clear()
    assert asked[0] == asked[1] != asked[2]
    firsts = asked[0][::2]
    # Binomial (40, .5): 20 ± 4 standard deviations of 3.2.
    assert 7 < firsts.count("o") < 33


def test_counts_are_traffic(tmp_path: Path, engines: list[EngineConfig]) -> None:
    log = tmp_path / "log.csv"
    log.write_text("query,count\nread,6\nfile,3\n")
    replay(engines, log, tmp_path / "s.jsonl", FAST, again=False)
    texts = [row["query"] for row in lines(tmp_path / "s.jsonl")]
    assert (texts.count("read"), texts.count("file")) == (6, 3)
    with pytest.raises(UsageError, match="no times"):
        replay(engines, log, tmp_path / "t.jsonl", Pace())


def test_a_replay_goes_on_where_it_stopped(
    tmp_path: Path, engines: list[EngineConfig], servers: tuple[SearchServer, SearchServer]
) -> None:
    out, log = tmp_path / "s.jsonl", log_of(tmp_path / "log.csv", 20)
    replay(engines, log, out, FAST)
    whole = out.read_bytes()
    out.write_bytes(b"\n".join(whole.split(b"\n")[:13])[:-5])  # 11 lines and a half
    servers[0].asked.clear()
    found = replay(engines, log, out, FAST)
    assert (found.asked, found.before, len(servers[0].asked)) == (9, 11, 18)
    assert sorted(int(row["id"]) for row in lines(out)) == list(range(1, 21))
    with pytest.raises(InputError, match="of other engines, queries or settings"):
        replay(engines, log, out, FAST, limit=5)


def test_an_engine_that_cannot_be_reached(tmp_path: Path, engines: list[EngineConfig]) -> None:
    away = replace(engines[1], url="http://127.0.0.1:9/search?q={query}")
    log = log_of(tmp_path / "log.csv", 3)
    replay([engines[0], away], log, tmp_path / "s.jsonl", FAST)
    assert compare_shadow([tmp_path / "s.jsonl"]).verdict == "fail"


@pytest.mark.parametrize(
    "pace", [Pace(speed=0), Pace(rate=-1), Pace(load=(0,)), Pace(rate=1, load=(1,))]
)
def test_numbers_out_of_range(tmp_path: Path, engines: list[EngineConfig], pace: Pace) -> None:
    with pytest.raises(UsageError):
        replay(engines, log_of(tmp_path / "log.csv", 3), tmp_path / "s.jsonl", pace)
    with pytest.raises(KaratError):
        replay(engines, tmp_path / "none.csv", tmp_path / "s.jsonl", FAST)


def killed(tmp_path: Path, after: float, count: int = 80) -> None:
    """Start a replay, kill it, and let it go on."""
    log, out = log_of(tmp_path / "log.csv", count), tmp_path / "s.jsonl"
    command = [
        sys.executable, "-m", "karat", "shadow", "run", "old", "new", "--log", str(log),
        "--out", str(out),
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1) as process:
        while process.poll() is None and (not out.exists() or out.stat().st_size < 2000):
            time.sleep(0.01)
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    before = [line for line in out.read_bytes().split(b"\n")[:-1] if line]
    declared = read_engines(tmp_path)
    found = replay([declared["old"], declared["new"]], log, out, Pace())
    assert found.before == len(before) - 1
    assert 0 < found.asked < count
    assert out.read_bytes().split(b"\n")[: len(before)] == before
    assert sorted(int(row["id"]) for row in lines(out)) == list(range(1, count + 1))


@pytest.mark.usefixtures("servers")
def test_a_killed_replay_goes_on(tmp_path: Path) -> None:
    killed(tmp_path, 0.0, 30)


@pytest.mark.deep
@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("after", [0.01, 0.1, 0.3, 0.7, 1.0, 1.5, 2.0])
def test_a_replay_killed_at_any_time_goes_on(tmp_path: Path, after: float) -> None:
    killed(tmp_path, after)


@pytest.mark.deep
def test_fifty_requests_a_second_for_a_minute(tmp_path: Path, engines: list[EngineConfig]) -> None:
    out = tmp_path / "s.jsonl"
    found = replay(engines, log_of(tmp_path / "log.csv", 200), out, Pace(load=(50,), seconds=60))
    assert found.asked == 3000
    result = compare_shadow([out])
    assert result.requests == 3000
    assert not any(row.different for row in result.differences)
