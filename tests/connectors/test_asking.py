"""A search is called for each query: in order, timed, retried, left behind when it is late."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from karat.connectors.asking import Manner, ask

TEXTS = [f"query {i}" for i in range(12)]


class Gauge:
    """Counts calls, and how many there are at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.calls: Counter[str] = Counter()

    def enter(self, text: str) -> None:
        with self.lock:
            self.calls[text] += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> None:
        with self.lock:
            self.now -= 1

    def search(self, text: str) -> list[str]:
        self.enter(text)
        time.sleep(0.01)
        self.leave()
        return [text]

    async def search_async(self, text: str) -> list[str]:
        self.enter(text)
        await asyncio.sleep(0.01)
        self.leave()
        return [text]


@pytest.mark.parametrize("concurrency", [1, 4, 50])
@pytest.mark.parametrize("kind", ["plain", "async", "promised", "partial", "object"])
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_every_query_is_asked_once_and_no_more_at_once_than_allowed(
    concurrency: int, kind: str, timeout: float | None
) -> None:
    gauge = Gauge()

    class Client:
        async def __call__(self, text: str) -> list[str]:
            return await gauge.search_async(text)

    async def with_limit(text: str, limit: int) -> list[str]:
        return (await gauge.search_async(text))[:limit]

    search: Any = {
        "plain": gauge.search,
        "async": gauge.search_async,
        "promised": lambda text: gauge.search_async(text),  # noqa: PLW0108 - not async itself
        "partial": functools.partial(with_limit, limit=5),
        "object": Client(),
    }[kind]
    replies = ask(search, TEXTS, Manner(concurrency, timeout))
    assert [reply.value for reply in replies] == [[text] for text in TEXTS]
    assert {reply.error for reply in replies} == {None}
    assert all(10_000 <= reply.latency_us < 5_000_000 for reply in replies)  # it sleeps 10 ms
    assert gauge.calls == Counter(TEXTS)
    assert gauge.most <= concurrency
    if concurrency > 1:
        assert gauge.most > 1


def test_one_at_a_time_stays_in_the_thread_of_the_caller() -> None:
    """As a connection of sqlite3 asks for."""
    replies = ask(lambda _: [threading.get_ident()], TEXTS[:3], Manner())
    assert {reply.value[0] for reply in replies} == {threading.get_ident()}


@pytest.mark.parametrize("manner", [Manner(3), Manner(1, 5.0), Manner(3, 5.0)])
def test_context_variables_reach_the_search(manner: Manner) -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")
    tenant.set("us")

    async def search(_: str) -> str:
        return tenant.get()

    for each in (lambda _: tenant.get(), search):
        assert {reply.value for reply in ask(each, TEXTS[:3], manner)} == {"us"}


def test_an_error_is_recorded_and_the_rest_goes_on() -> None:
    def search(text: str) -> list[str]:
        if text == "query 1":
            raise ValueError("no\nindex \ud800")
        if text == "query 2":
            raise KeyError
        return ["a"]

    async def search_async(text: str) -> list[str]:
        if text == "query 3":
            raise asyncio.CancelledError
        return search(text)

    for each, more in ((search, []), (search_async, ["CancelledError"])):
        for concurrency in (1, 3):
            replies = ask(each, TEXTS, Manner(concurrency))
            errors = [reply.error for reply in replies if reply.error]
            assert errors == ["ValueError: no index ?", "KeyError", *more]


def test_a_generator_is_read_within_the_time() -> None:
    def search(_: str) -> Iterator[str]:
        time.sleep(0.02)
        yield "a"

    (reply,) = ask(search, ["x"], Manner())
    assert reply.value == ["a"]
    assert reply.latency_us >= 20_000


class Flaky:
    """Fails a few times for each query, and then answers at once."""

    def __init__(self, failures: int) -> None:
        self.failures, self.calls = failures, Counter[str]()

    def search(self, text: str) -> list[str]:
        self.calls[text] += 1
        if self.calls[text] <= self.failures:
            time.sleep(0.1)
            raise ConnectionError("refused")
        return ["a"]

    async def search_async(self, text: str) -> list[str]:
        return self.search(text)


@pytest.mark.parametrize("kind", ["search", "search_async"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_fails_is_tried_again_and_timed_when_it_succeeds(kind: str, concurrency: int) -> None:
    flaky = Flaky(1)
    replies = ask(getattr(flaky, kind), TEXTS[:3], Manner(concurrency, retries=2))
    assert [(r.value, r.error, r.tries) for r in replies] == [(["a"], None, 2)] * 3
    assert all(reply.latency_us < 100_000 for reply in replies)  # neither the failure nor the wait
    flaky = Flaky(9)
    (reply,) = ask(getattr(flaky, kind), ["x"], Manner(concurrency, retries=1))
    assert (reply.value, reply.error, reply.tries) == (None, "ConnectionError: refused", 2)
    assert flaky.calls == Counter(x=2)


def test_without_retries_nothing_is_tried_again() -> None:
    flaky = Flaky(1)
    (reply,) = ask(flaky.search, ["x"], Manner())
    assert (reply.error, reply.tries) == ("ConnectionError: refused", 1)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_late_call_is_left_behind(concurrency: int) -> None:
    release = threading.Event()

    def search(text: str) -> list[str]:
        if text in ("query 0", "query 3"):
            release.wait(30)
        return ["a"]

    async def search_async(text: str) -> list[str]:
        if text in ("query 0", "query 3"):
            await asyncio.sleep(30)
        return ["a"]

    try:
        for each, left in ((search, 2), (search_async, 0)):
            manner = Manner(concurrency, timeout=0.2)
            began = time.monotonic()
            replies = ask(each, TEXTS, manner)
            assert time.monotonic() - began < 5
            late = [i for i, reply in enumerate(replies) if reply.error == "timeout after 0.2 s"]
            assert late == [0, 3]
            assert all(replies[i].latency_us >= 200_000 for i in late)
            assert len(manner.overdue) == left
    finally:
        release.set()


def test_a_search_that_will_not_be_cancelled_is_left_behind_too() -> None:
    async def search(text: str) -> list[str]:
        for _ in range(30 if text == "query 0" else 0):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue
        return ["a"]

    began = time.monotonic()
    replies = ask(search, TEXTS[:3], Manner(timeout=0.2))
    assert time.monotonic() - began < 2.7  # it goes on for 3 s; a second is given to it to end
    assert [reply.error for reply in replies] == ["timeout after 0.2 s", None, None]


def test_an_async_search_that_blocks_is_late_once_it_comes_back() -> None:
    async def search(_: str) -> list[str]:
        time.sleep(0.25)  # noqa: ASYNC251 - the mistake this is about
        return ["a"]

    (reply,) = ask(search, ["x"], Manner(timeout=0.2))
    assert reply.error == "timeout after 0.2 s"


def test_a_timeout_of_the_search_itself_is_its_own() -> None:
    def search(_: str) -> list[str]:
        raise TimeoutError("the index")

    async def search_async(_: str) -> list[str]:
        raise TimeoutError("the index")

    for each in (search, search_async):
        (reply,) = ask(each, ["x"], Manner(timeout=5.0))
        assert reply.error == "TimeoutError: the index"


def test_no_more_is_asked_when_too_many_calls_never_come_back() -> None:
    release = threading.Event()
    calls = Counter[str]()

    def search(text: str) -> list[str]:
        calls[text] += 1
        release.wait(30)
        return ["a"]

    try:
        replies = ask(search, [f"q{i}" for i in range(99)], Manner(8, timeout=0.005))
    finally:
        release.set()
    errors = Counter(reply.error for reply in replies)
    assert errors["timeout after 0.005 s"] == len(calls)
    assert 64 <= len(calls) < 64 + 8  # up to 8 threads may look at the same moment
    assert sum(errors.values()) == 99
    assert any("before it timed out and still run" in str(error) for error in errors)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_warming_up_is_not_counted(concurrency: int) -> None:
    gauge = Gauge()
    for search in (gauge.search, gauge.search_async):
        gauge.calls.clear()
        replies = ask(search, TEXTS, Manner(concurrency), warmup=2)
        assert [reply.value for reply in replies] == [[text] for text in TEXTS]
        assert gauge.calls == Counter(TEXTS) + Counter(TEXTS[:2])


def test_it_works_where_an_event_loop_runs_already() -> None:
    gauge = Gauge()

    async def cell() -> list[Any]:
        replies = ask(gauge.search_async, TEXTS, Manner(4))
        return [reply.value for reply in replies]

    assert asyncio.run(cell()) == [[text] for text in TEXTS]


@pytest.mark.parametrize("kind", ["plain", "threads", "async"])
def test_an_interrupt_stops_it(kind: str) -> None:
    """It is raised where the answers are awaited, and nothing more is asked."""
    calls = Counter[str]()

    def search(text: str) -> list[str]:
        calls[text] += 1
        time.sleep(0.005)
        return ["a"]

    async def search_async(text: str) -> list[str]:
        calls[text] += 1
        await asyncio.sleep(0.005)
        return ["a"]

    def tick(done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    texts = [f"q{i}" for i in range(200)]
    with pytest.raises(KeyboardInterrupt):
        ask(
            search_async if kind == "async" else search,
            texts,
            Manner(1 if kind == "plain" else 2),
            tick=tick,
        )
    after = sum(calls.values())
    assert after < 50
    time.sleep(0.05)
    assert sum(calls.values()) <= after + 2  # those that were on their way


def test_progress_is_told() -> None:
    for search in (Gauge().search, Gauge().search_async):
        seen: list[int] = []
        ask(search, TEXTS, Manner(3), tick=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == len(TEXTS)


HANGING = """
import threading, time
from karat.connectors.asking import Manner, ask
replies = ask(lambda text: time.sleep(60), ["a", "b", "c"], Manner(2, timeout=0.05))
print([reply.error for reply in replies])
"""


def test_a_call_that_hangs_does_not_keep_the_interpreter() -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=50, check=True
    )
    assert time.monotonic() - began < 30
    assert done.stdout.strip() == str(["timeout after 0.05 s"] * 3)
    assert done.stderr == ""


WAITING = """
import asyncio, time
from karat.connectors.asking import Manner, ask
async def slowly(text):
    await asyncio.sleep(60)
def search(text):
    time.sleep(60)
print("asking", flush=True)
ask({search}, ["a", "b", "c"], Manner({concurrency}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(("search", "concurrency"), [("search", 1), ("search", 2), ("slowly", 2)])
def test_control_c_ends_a_program_that_waits(search: str, concurrency: int) -> None:
    program = WAITING.format(search=search, concurrency=concurrency)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "asking\n"
        time.sleep(0.2)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=50)
        assert time.monotonic() - began < 20
    assert running.returncode == -signal.SIGINT
    assert said.strip().splitlines()[-1] == "KeyboardInterrupt"
    assert "never retrieved" not in said
