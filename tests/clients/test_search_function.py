"""A search is called for each query: in order, timed, retried, left behind when it is late."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.choosing import deep_but

from karat.clients import search_function
from karat.clients.search_function import CallSettings, Reply, ask

TEXTS = [f"query {i}" for i in range(12)]


def found(reply: Reply) -> list[str] | None:
    return None if reply.ranking is None else reply.ranking.doc_ids


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


@pytest.mark.parametrize("concurrency", deep_but([4], [1, 4, 50]))
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
    replies = ask(search, TEXTS, CallSettings(concurrency, timeout))
    assert [found(reply) for reply in replies] == [[text] for text in TEXTS]
    assert {reply.error for reply in replies} == {None}
    assert all(10_000 <= (r.latency_us or 0) < 5_000_000 for r in replies)  # it sleeps 10 ms
    assert gauge.calls == Counter(TEXTS)
    assert gauge.most <= concurrency
    if concurrency > 1:
        assert gauge.most > 1


def test_one_at_a_time_stays_in_the_thread_of_the_caller() -> None:
    """As a connection of sqlite3 asks for."""
    replies = ask(lambda _: [threading.get_ident()], TEXTS[:3], CallSettings())
    assert [found(reply) for reply in replies] == [[str(threading.get_ident())]] * 3


@pytest.mark.parametrize("manner", [CallSettings(3), CallSettings(1, 5.0), CallSettings(3, 5.0)])
def test_context_variables_reach_the_search(manner: CallSettings) -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")
    tenant.set("us")

    async def search(_: str) -> list[str]:
        return [tenant.get()]

    for each in (lambda _: [tenant.get()], search):
        assert [found(reply) for reply in ask(each, TEXTS[:3], manner)] == [["us"]] * 3


def test_an_error_is_recorded_and_the_rest_goes_on() -> None:
    def search(text: str) -> list[str]:
        if text == "query 1":
            raise ValueError("no\nindex \ud800")
        if text == "query 2":
            raise KeyError
        if text == "query 3":
            raise asyncio.CancelledError
        return ["a"]

    async def search_async(text: str) -> list[str]:
        return search(text)

    for each in (search, search_async):
        for manner in (
            CallSettings(1),
            CallSettings(3),
            CallSettings(1, 5.0),
            CallSettings(3, 5.0),
        ):
            replies = ask(each, TEXTS, manner)
            errors = [reply.error for reply in replies if reply.error]
            assert errors == ["ValueError: no index ?", "KeyError", "CancelledError"]


def test_a_generator_is_read_within_the_time() -> None:
    def search(_: str) -> Iterator[str]:
        time.sleep(0.02)
        yield "a"

    (reply,) = ask(search, ["x"], CallSettings())
    assert found(reply) == ["a"]
    assert (reply.latency_us or 0) >= 20_000


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


@pytest.mark.parametrize("kind", deep_but(["search_async"], ["search", "search_async"]))
@pytest.mark.parametrize("concurrency", deep_but([3], [1, 3]))
def test_what_fails_is_tried_again_and_timed_when_it_succeeds(kind: str, concurrency: int) -> None:
    flaky = Flaky(1)
    replies = ask(getattr(flaky, kind), TEXTS[:3], CallSettings(concurrency, retries=2))
    assert [(found(r), r.error, r.tries) for r in replies] == [(["a"], None, 2)] * 3
    assert all((r.latency_us or 0) < 100_000 for r in replies)  # neither the failure nor the wait
    flaky = Flaky(9)
    (reply,) = ask(getattr(flaky, kind), ["x"], CallSettings(concurrency, retries=1))
    assert (found(reply), reply.error, reply.tries) == (None, "ConnectionError: refused", 2)
    assert flaky.calls == Counter(x=2)


def test_what_comes_back_is_read_before_the_next_call() -> None:
    """A list that the search fills anew each time."""
    shared: list[str] = []

    def search(text: str) -> list[str]:
        shared[:] = [text]
        return shared

    async def search_async(text: str) -> list[str]:
        return search(text)

    for each in (search, search_async):
        for timeout in (None, 5.0):
            replies = ask(each, TEXTS, CallSettings(timeout=timeout))
            assert [found(reply) for reply in replies] == [[text] for text in TEXTS]


class Lazy:
    """Asks only when it is read, as the query sets of object-relational mappers do."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __iter__(self) -> Iterator[str]:
        return iter(self.work())


def test_what_is_lazy_is_timed_tried_again_and_left_behind() -> None:
    flaky = Flaky(1)
    (reply,) = ask(lambda text: Lazy(lambda: flaky.search(text)), ["x"], CallSettings(retries=2))
    assert (found(reply), reply.tries) == (["a"], 2)

    def slow() -> list[str]:
        time.sleep(0.05)
        return ["a"]

    (reply,) = ask(lambda _: Lazy(slow), ["x"], CallSettings())
    assert (reply.latency_us or 0) >= 50_000
    (reply,) = ask(lambda _: Lazy(slow), ["x"], CallSettings(timeout=0.01))
    assert reply.error == "timeout after 0.01 s"


def test_a_wrong_shape_is_not_asked_for_again() -> None:
    calls = Counter[str]()

    def search(text: str) -> Any:
        calls[text] += 1

    (reply,) = ask(search, ["x"], CallSettings(retries=2))
    assert (reply.error, reply.kind) == ("it returned None; expected a list", "None")
    assert (reply.came, reply.tries, calls) == ("None", 1, Counter(x=1))


def test_an_error_that_cannot_say_what_it_is_is_an_error_too() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    def search(text: str) -> list[str]:
        if text == "query 0":
            raise MuteError
        if text == "query 1":
            raise ValueError("\x1b[31mred\x07\u2028x")
        return ["a"]

    def iterated(text: str) -> Lazy:
        return Lazy(lambda: search(text))

    for each in (search, iterated):
        replies = ask(each, TEXTS, CallSettings())
        errors = [reply.error for reply in replies if reply.error]
        assert errors == ["MuteError", "ValueError: ?[31mred? x"]


def test_a_client_opened_in_one_benchmark_can_be_used_in_the_next() -> None:
    locks: list[asyncio.Lock] = []

    async def search(_: str) -> list[str]:
        if not locks:
            locks.append(asyncio.Lock())
        async with locks[0]:  # bound to the loop of the first who waited
            await asyncio.sleep(0.001)
        return ["a"]

    for _ in range(2):
        assert [found(reply) for reply in ask(search, TEXTS, CallSettings(3))] == [["a"]] * len(
            TEXTS
        )


def test_a_client_of_another_loop_is_told_from_a_broken_one() -> None:
    async def made() -> asyncio.Event:
        event = asyncio.Event()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(event.wait(), 0.001)
        return event

    event = asyncio.run(made())

    async def search(_: str) -> list[str]:
        await event.wait()
        return []

    (reply,) = ask(search, ["x"], CallSettings())
    assert "bound to a different event loop; open the client in the function" in str(reply.error)


def test_a_search_may_ask_in_its_turn() -> None:
    async def inner(text: str) -> list[str]:
        return [text]

    async def outer(text: str) -> list[str]:
        return found(ask(inner, [text], CallSettings())[0]) or []

    assert found(ask(outer, ["x"], CallSettings())[0]) == ["x"]


def test_the_shortest_time_is_a_microsecond() -> None:
    assert all((reply.latency_us or 0) >= 1 for reply in ask(lambda _: [], TEXTS, CallSettings()))
    assert [search_function._whole(each) for each in (1, 999, 1_400, 1_600)] == [1, 1, 1, 2]


def test_without_retries_nothing_is_tried_again() -> None:
    flaky = Flaky(1)
    (reply,) = ask(flaky.search, ["x"], CallSettings())
    assert (reply.error, reply.tries) == ("ConnectionError: refused", 1)


def test_a_timeout_of_the_search_itself_is_its_own() -> None:
    def search(_: str) -> list[str]:
        raise TimeoutError("the index")

    async def search_async(_: str) -> list[str]:
        raise TimeoutError("the index")

    for each in (search, search_async):
        (reply,) = ask(each, ["x"], CallSettings(timeout=5.0))
        assert reply.error == "TimeoutError: the index"


@pytest.mark.parametrize("concurrency", [1, 3])
def test_warming_up_is_not_counted(concurrency: int) -> None:
    gauge = Gauge()
    for search in (gauge.search, gauge.search_async):
        gauge.calls.clear()
        replies = ask(search, TEXTS, CallSettings(concurrency), warmup=2)
        assert [found(reply) for reply in replies] == [[text] for text in TEXTS]
        assert gauge.calls == Counter(TEXTS) + Counter(TEXTS[:2])


def test_it_works_where_an_event_loop_runs_already() -> None:
    gauge = Gauge()

    async def cell() -> list[Any]:
        replies = ask(gauge.search_async, TEXTS, CallSettings(4))
        return [found(reply) for reply in replies]

    assert asyncio.run(cell()) == [[text] for text in TEXTS]


def test_progress_is_told() -> None:
    for search in (Gauge().search, Gauge().search_async):
        seen: list[int] = []
        ask(search, TEXTS, CallSettings(3), tick=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == len(TEXTS)


def test_there_is_one_loop_until_it_is_abandoned() -> None:
    first = search_function.event_loop()
    assert search_function.event_loop() is first
    search_function.abandon(first)
    second = search_function.event_loop()
    assert second is not first
    assert search_function.event_loop() is second
    for loop in (first, second):

        async def name() -> str:
            return threading.current_thread().name

        assert asyncio.run_coroutine_threadsafe(name(), loop).result(5) == "karat asks"
    first.call_soon_threadsafe(first.stop)
    deadline = time.monotonic() + 5
    while first.is_running() and time.monotonic() < deadline:
        time.sleep(0.01)
    first.close()


def test_a_loop_that_somebody_blocks_is_not_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_function, "_LOOP_ANSWERS_WITHIN", 0.05)
    first, release = search_function.event_loop(), threading.Event()
    first.call_soon_threadsafe(release.wait)
    second = search_function.event_loop()
    assert second is not first
    release.set()
    first.call_soon_threadsafe(first.stop)
    deadline = time.monotonic() + 5
    while first.is_running() and time.monotonic() < deadline:
        time.sleep(0.01)
    first.close()
    assert search_function.event_loop() is second


@pytest.mark.deep  # a process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork_there_is_another() -> None:
    program = (
        "import asyncio, os, sys, warnings\n"
        "from karat.clients import search_function as loops\n"
        "warnings.simplefilter('ignore')\n"
        "first = loops.event_loop()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    second = loops.event_loop()\n"
        "    done = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, 'done'), second)\n"
        "    print(second is first, done.result(5), flush=True)\n"
        "    sys.exit()\n"
        "os.waitpid(child, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    assert (done.stdout, done.stderr) == ("False done\n", "")


def test_within_the_loop_there_is_another() -> None:
    loop = search_function.event_loop()

    async def within() -> bool:
        return search_function.event_loop() is not loop

    assert asyncio.run_coroutine_threadsafe(within(), loop).result(5)


def test_threads_are_noted_where_somebody_asked_for_it() -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")

    async def call() -> tuple[str, int]:
        noted: list[object] = []
        search_function.THREADS.set(noted)  # type: ignore[arg-type]
        tenant.set("us")
        said, _ = await asyncio.gather(asyncio.to_thread(tenant.get), asyncio.to_thread(int))
        return said, len(noted)

    future = asyncio.run_coroutine_threadsafe(call(), search_function.event_loop())
    assert future.result(5) == ("us", 2)


LEFT = """
import asyncio, time
from karat.clients import search_function as loops

async def background():
    try:
        await asyncio.sleep(60)
    finally:
        print("closed in order")

async def leave():
    loops.kept = asyncio.create_task(background())
    await asyncio.sleep(0)
    loops.also = asyncio.create_task(asyncio.to_thread(time.sleep, 60))

asyncio.run_coroutine_threadsafe(leave(), loops.event_loop()).result()
"""


@pytest.mark.deep  # a process, as those of test_search_function_late.py
def test_what_is_left_ends_with_the_interpreter() -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LEFT],
        capture_output=True, text=True, timeout=50, check=True,
    )  # fmt: skip
    assert time.monotonic() - began < 30
    assert (done.stdout, done.stderr) == ("closed in order\n", "")
