"""One event loop for the process, whose threads do not keep the interpreter."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time

import pytest

from karat.clients import _loops


def test_there_is_one_loop_until_it_is_abandoned() -> None:
    first = _loops.current()
    assert _loops.current() is first
    _loops.abandon(first)
    second = _loops.current()
    assert second is not first
    assert _loops.current() is second
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
    monkeypatch.setattr(_loops, "_SECOND", 0.05)
    first, release = _loops.current(), threading.Event()
    first.call_soon_threadsafe(release.wait)
    second = _loops.current()
    assert second is not first
    release.set()
    first.call_soon_threadsafe(first.stop)
    deadline = time.monotonic() + 5
    while first.is_running() and time.monotonic() < deadline:
        time.sleep(0.01)
    first.close()
    assert _loops.current() is second


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_after_a_fork_there_is_another() -> None:
    program = (
        "import asyncio, os, sys, warnings\n"
        "from karat.clients import _loops as loops\n"
        "warnings.simplefilter('ignore')\n"
        "first = loops.current()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    second = loops.current()\n"
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
    loop = _loops.current()

    async def within() -> bool:
        return _loops.current() is not loop

    assert asyncio.run_coroutine_threadsafe(within(), loop).result(5)


def test_threads_are_noted_where_somebody_asked_for_it() -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")

    async def call() -> tuple[str, int]:
        noted: list[object] = []
        _loops.THREADS.set(noted)  # type: ignore[arg-type]
        tenant.set("us")
        said, _ = await asyncio.gather(asyncio.to_thread(tenant.get), asyncio.to_thread(int))
        return said, len(noted)

    future = asyncio.run_coroutine_threadsafe(call(), _loops.current())
    assert future.result(5) == ("us", 2)


LEFT = """
import asyncio, time
from karat.clients import _loops as loops

async def background():
    try:
        await asyncio.sleep(60)
    finally:
        print("closed in order")

async def leave():
    loops.kept = asyncio.create_task(background())
    await asyncio.sleep(0)
    loops.also = asyncio.create_task(asyncio.to_thread(time.sleep, 60))

asyncio.run_coroutine_threadsafe(leave(), loops.current()).result()
"""


def test_what_is_left_ends_with_the_interpreter() -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LEFT],
        capture_output=True, text=True, timeout=50, check=True,
    )  # fmt: skip
    assert time.monotonic() - began < 30
    assert (done.stdout, done.stderr) == ("closed in order\n", "")
