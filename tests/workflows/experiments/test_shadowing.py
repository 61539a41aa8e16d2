"""A candidate beside a search: whatever it does, the answer is as it was, and the log survives."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.errors import UsageError
from karat.formats.own.shadow_log import read_shadow_log

HITS = [("a", 2.0), ("b", 1.0)]


def waited(until: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not until() and time.monotonic() < end:
        time.sleep(0.005)
    return until()


def states(path: Path) -> list[tuple[str, str]]:
    runs = read_shadow_log(path).runs
    pairs: list[tuple[str, str]] = list(
        zip(*(runs[side].answers.sort("query_id")["state"] for side in ("baseline", "candidate")),
            strict=True)  # type: ignore[index]
    )  # fmt: skip
    return pairs


def test_both_answers_are_logged(tmp_path: Path) -> None:
    given: list[Any] = []

    def candidate(*arguments: Any, **keywords: Any) -> list[dict[str, Any]]:
        given.append((arguments, keywords))
        return [{"id": "c", "score": 1}]

    about = {"baseline": {"engine": "x"}, "candidate": {"engine": "y", "parameters": {"k": 3}}}
    with karat.Shadow(candidate, tmp_path / "s.jsonl", about=about) as shadow:

        @shadow.beside
        def search(text: str, size: int = 10) -> list[tuple[str, float]]:
            """Search."""
            return HITS[:size]

        assert search("read a file", size=1) == HITS[:1]
        assert (search.__name__, search.__doc__) == ("search", "Search.")
    assert given == [(("read a file",), {"size": 1})]
    found = read_shadow_log(tmp_path / "s.jsonl")
    assert found.requests["query"].to_list() == ["read a file"]
    tops = {side: run.rows["doc_id"].to_list() for side, run in found.runs.items()}
    assert tops == {"baseline": ["a"], "candidate": ["c"]}
    assert found.about["candidate"] == {"engine": "y", "parameters.k": "3"}


def test_a_list_that_changes_afterwards(tmp_path: Path) -> None:
    with karat.Shadow(lambda _text: [], tmp_path / "s.jsonl") as shadow:
        hits = shadow.beside(lambda _text: list(HITS))("q")
        hits.clear()
    assert read_shadow_log(tmp_path / "s.jsonl").runs["baseline"].rows["doc_id"].to_list() == [
        "a", "b",
    ]  # fmt: skip


def test_async_and_methods(tmp_path: Path) -> None:
    async def candidate(_text: str) -> list[str]:
        await asyncio.sleep(0)
        return ["c"]

    with karat.Shadow(candidate, tmp_path / "s.jsonl") as shadow:

        class Engine:
            @staticmethod
            @shadow.beside
            async def search(_text: str) -> list[str]:
                await asyncio.sleep(0)
                return ["a"]

        assert asyncio.run(Engine().search("q")) == ["a"]
    assert states(tmp_path / "s.jsonl") == [("ok", "ok")]


def test_errors_on_both_sides(tmp_path: Path) -> None:
    def candidate(text: str) -> list[str]:
        raise ValueError(text)

    def search(text: str) -> list[str]:
        if text == "bad":
            raise KeyError("served")
        return ["a"]

    async def later(text: str) -> list[str]:
        return search(text)

    with karat.Shadow(candidate, tmp_path / "s.jsonl", workers=1) as shadow:
        assert shadow.beside(search)("good") == ["a"]
        with pytest.raises(KeyError, match="served"):
            shadow.beside(search)("bad")
        with pytest.raises(KeyError, match="served"):
            asyncio.run(shadow.beside(later)("bad"))
    assert states(tmp_path / "s.jsonl") == [("ok", "failed"), *[("failed", "failed")] * 2]


def test_a_candidate_that_hangs_delays_nothing(tmp_path: Path) -> None:
    stuck = threading.Event()

    def candidate(_text: str) -> list[str]:
        stuck.wait(30)
        return []

    shadow = karat.Shadow(candidate, tmp_path / "s.jsonl", timeout=0.1, queue=3, workers=1)
    search = shadow.beside(lambda _text: ["a"])
    began = time.monotonic()
    assert all(search("q") == ["a"] for _ in range(200))
    assert time.monotonic() - began < 0.5
    assert shadow.dropped >= 190
    assert waited(lambda: read_shadow_log(tmp_path / "s.jsonl").requests.height >= 2)
    stuck.set()
    shadow.close()
    found = read_shadow_log(tmp_path / "s.jsonl")
    assert found.requests.height + found.dropped == 200
    errors = found.runs["candidate"].answers["error"].to_list()
    assert "timeout after 0.1 s" in errors
    assert search("q") == ["a"]  # after it is closed
    assert read_shadow_log(tmp_path / "s.jsonl").requests.height == found.requests.height


@pytest.mark.parametrize("value", [iter(["a"]), {"hits": []}, None, "text", [None]])
def test_what_is_no_list_is_not_read(tmp_path: Path, value: Any) -> None:
    with karat.Shadow(lambda _text: [], tmp_path / "s.jsonl") as shadow:
        assert shadow.beside(lambda _text: value)("q") is value
        assert shadow.beside(lambda _number: ["a"])(3) == ["a"]
        assert shadow.dropped == 2


def test_a_log_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with karat.Shadow(lambda _text: [], tmp_path / "s.jsonl") as shadow:

        def full(_line: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(shadow._log, "append", full)
        assert shadow.beside(lambda _text: ["a"])("q") == ["a"]
        assert waited(lambda: shadow.dropped == 1)


def test_a_share_of_the_requests(tmp_path: Path) -> None:
    with karat.Shadow(lambda _text: [], tmp_path / "s.jsonl", share=0.2, queue=1000) as shadow:
        search = shadow.beside(lambda _text: ["a"])
        for _ in range(500):
            search("q")
    # Binomial (500, .2): 100 ± 5 standard deviations of 8.9.
    assert 55 < read_shadow_log(tmp_path / "s.jsonl").requests.height < 145
    assert shadow.dropped == 0


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": 0}, {"queue": 0}, {"workers": 0}, {"share": 2}, {"about": {"a": {}}}],
)
def test_mistakes(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        karat.Shadow(lambda _text: [], tmp_path / "s.jsonl", **wrong)


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
threaded = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@forking
@threaded
def test_the_log_survives_a_kill_and_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for _ in range(2):
        child = os.fork()
        if child == 0:
            search = karat.Shadow(lambda _text: ["c"], path).beside(lambda _text: ["a"])
            while True:
                search("q")
                time.sleep(0.0005)
        before = path.stat().st_size if path.exists() else 0
        assert waited(lambda: path.exists() and path.stat().st_size > before + 4000)  # noqa: B023
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert len(states(path)) > 20
    assert {state for pair in states(path) for state in pair} == {"ok"}
    assert len({each.split("-")[0] for each in read_shadow_log(path).requests["id"]}) == 2


@forking
@threaded
def test_a_forked_worker_asks_too(tmp_path: Path) -> None:
    """As servers do that load the application before they fork."""
    shadow = karat.Shadow(lambda _text: ["c"], tmp_path / "s.jsonl")
    search = shadow.beside(lambda _text: ["a"])
    search("parent")
    child = os.fork()
    if child == 0:
        search("child")
        shadow.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    shadow.close()
    found = read_shadow_log(tmp_path / "s.jsonl").requests["query"]
    assert sorted(found) == ["child", "parent"]
