"""A search that is late, hangs or is interrupted: it is left behind, and keeps nothing waiting."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from tests.choosing import deep_but

from karat.clients.search_function import CallSettings, ask

TEXTS = [f"query {i}" for i in range(12)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize(
    "manner",
    deep_but(
        [CallSettings(1), CallSettings(3, 5.0, 2)],
        [CallSettings(1), CallSettings(3), CallSettings(1, 5.0), CallSettings(3, 5.0, 2)],
    ),
)
def test_what_is_no_exception_ends_it_as_it_is(
    error: type[BaseException], manner: CallSettings, capfd: pytest.CaptureFixture[str]
) -> None:
    def search(text: str) -> list[str]:
        if text == "query 2":
            raise error
        return ["a"]

    async def search_async(text: str) -> list[str]:
        return search(text)

    for each in (search, search_async):
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - its type is what is compared
            ask(each, TEXTS, replace(manner, stopped=threading.Event()))
        assert type(caught.value) is error
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("concurrency", deep_but([2], [1, 2]))
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
            manner = CallSettings(concurrency, timeout=0.2)
            began = time.monotonic()
            replies = ask(each, TEXTS, manner)
            assert time.monotonic() - began < 5
            late = [i for i, reply in enumerate(replies) if reply.error == "timeout after 0.2 s"]
            assert late == [0, 3]
            assert all((replies[i].latency_us or 0) >= 200_000 for i in late)
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
    replies = ask(search, TEXTS[:3], CallSettings(timeout=0.2))
    assert time.monotonic() - began < 2.7  # it goes on for 3 s; a second is given to it to end
    assert [reply.error for reply in replies] == ["timeout after 0.2 s", None, None]


def test_an_async_search_that_blocks_is_late_once_it_comes_back() -> None:
    async def search(_: str) -> list[str]:
        time.sleep(0.25)  # noqa: ASYNC251 - the mistake this is about
        return ["a"]

    (reply,) = ask(search, ["x"], CallSettings(timeout=0.2))
    assert reply.error == "timeout after 0.2 s"


def test_no_more_is_asked_when_too_many_calls_never_come_back() -> None:
    release = threading.Event()
    calls = Counter[str]()

    def search(text: str) -> list[str]:
        calls[text] += 1
        release.wait(30)
        return ["a"]

    try:
        replies = ask(search, [f"q{i}" for i in range(99)], CallSettings(8, timeout=0.005))
    finally:
        release.set()
    errors = Counter(reply.error for reply in replies)
    assert errors["timeout after 0.005 s"] == len(calls)
    assert 64 <= len(calls) < 64 + 8  # up to 8 threads may look at the same moment
    assert sum(errors.values()) == 99
    assert any("earlier calls timed out and are still running" in str(error) for error in errors)
    for reply in replies:  # what was not asked took no time, and least of all a short one
        asked = str(reply.error).startswith("timeout")
        assert (reply.latency_us is not None, reply.tries) == (asked, int(asked))


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
            CallSettings(1 if kind == "plain" else 2),
            tick=tick,
        )
    after = sum(calls.values())
    assert after < 50
    time.sleep(0.05)
    assert sum(calls.values()) <= after + 2  # those that were on their way


HANGING = """
import threading, time
from karat.clients import search_function as asking
from karat.clients.search_function import CallSettings, Reply, ask
replies = ask(lambda text: time.sleep(60), ["a", "b", "c"], CallSettings(2, timeout=0.05))
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


THREADED = """
import asyncio, time
from karat.clients.search_function import CallSettings, ask
async def search(text):
    await asyncio.to_thread(time.sleep, 60)
manner = CallSettings(2, timeout=0.05)
print([reply.error for reply in ask(search, ["a", "b", "c"], manner)], len(manner.overdue))
"""


@pytest.mark.deep  # a process, as the one before
def test_a_thread_of_an_async_call_does_not_keep_the_interpreter_either() -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", THREADED], capture_output=True, text=True, timeout=50, check=True
    )
    assert time.monotonic() - began < 30
    assert done.stdout.strip() == f"{['timeout after 0.05 s'] * 3} 3"
    assert done.stderr == ""


BLOCKING = """
import time
from karat.clients import search_function as asking
asking._BLOCKED = 0.2
async def search(text):
    time.sleep(60)
replies = asking.ask(search, ["a", "b"], asking.CallSettings(timeout=0.05))
print([reply.error for reply in replies], [reply.latency_us for reply in replies])
async def search(text):
    return [text]
print(asking.ask(search, ["a"], asking.CallSettings(timeout=5.0))[0].ranking.doc_ids)
"""


@pytest.mark.deep  # a process, as those before
def test_an_async_search_that_never_comes_back_is_given_up() -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", BLOCKING], capture_output=True, text=True, timeout=50, check=True
    )
    assert time.monotonic() - began < 30
    first, second = done.stdout.strip().splitlines()
    assert "the async search blocks its event loop" in first
    assert "'not asked: an earlier call blocks the event loop'] [50000, None]" in first
    assert second == "['a']"  # in another loop
    assert done.stderr == ""


WAITING = """
import asyncio, time
from karat.clients import search_function as asking
from karat.clients.search_function import CallSettings, Reply, ask
async def slowly(text):
    await asyncio.sleep(60)
def search(text):
    time.sleep(60)
print("asking", flush=True)
ask({search}, ["a", "b", "c"], CallSettings({concurrency}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("search", "concurrency"), deep_but(["slowly"], [("search", 1), ("search", 2), ("slowly", 2)])
)
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
