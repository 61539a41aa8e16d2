"""Threads and event loops that never keep the interpreter from ending.

One event loop serves the whole process, in a thread of its own, so that a client that was opened in
it can be used again.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")

THREADS: contextvars.ContextVar[list[Future[Any]] | None] = contextvars.ContextVar(
    "threads", default=None
)
"""Where a call notes what it puts into threads (``asyncio.to_thread``), or None."""

_SECOND = 1.0
_loops: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []
_guard = threading.Lock()


def start(work: Callable[[], None]) -> None:
    """Do something in a thread that does not keep the interpreter, with the caller's context."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()


def current() -> asyncio.AbstractEventLoop:
    """The event loop of this process.

    Another one if asked from within it, after a fork, or if it does not answer within a second,
    since somebody blocks it.
    """
    with _guard:
        for loop, thread in list(_loops):
            if thread is threading.current_thread():
                continue
            answers = threading.Event()
            if thread.is_alive():
                loop.call_soon_threadsafe(answers.set)
                if answers.wait(_SECOND):
                    return loop
            _loops.remove((loop, thread))
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_Daemons(1))
        thread = threading.Thread(target=loop.run_forever, name="karat asks", daemon=True)
        thread.start()
        _loops.append((loop, thread))
        return loop


def abandon(loop: asyncio.AbstractEventLoop) -> None:
    """Use a loop no more, since it does not come back; its thread is left behind."""
    with _guard:
        _loops[:] = [each for each in _loops if each[0] is not loop]


class _Daemons(ThreadPoolExecutor):
    """What ``asyncio.to_thread`` uses; a thread for each call, and as many as there are calls."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future: Future[_T] = Future()
        future.set_running_or_notify_cancel()
        threads = THREADS.get()
        if threads is not None:
            threads.append(future)

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - whoever awaits it raises it again
                future.set_exception(error)

        start(work)
        return future


@atexit.register
def _end() -> None:
    """Let the loops end in order, if they will."""

    async def farewell() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=0.1)
        asyncio.get_running_loop().stop()

    for loop, thread in _loops:
        if thread.is_alive():
            asyncio.run_coroutine_threadsafe(farewell(), loop)
            thread.join(0.3)
        if not thread.is_alive() and not loop.is_running():  # after a fork it seems to run
            loop.close()
