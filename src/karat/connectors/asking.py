"""Asking: a search function is called for each query, timed, and never trusted to come back.

A plain function is called in the caller's own thread, one query after the other, or in threads of
which none keeps the interpreter from ending; an async one in an event loop of its own, in a thread
of its own, so that a notebook's loop is not in the way.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import perf_counter_ns
from typing import Any

_MOST_OVERDUE = 64  # calls that timed out and still run, before no more are made
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0  # seconds before a second try, and before any
_TICK = 0.2

Search = Callable[[str], Any]
_Timed = tuple[Any, int]  # what came back, and the nanoseconds it took


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one query.

    Attributes:
        value: What the function returned; an iterator is read to its end.
        latency_us: Microseconds of the last try, which is the one that succeeded if one did.
        error: Why there is no answer, or None.
        tries: Calls made.
    """

    value: Any
    latency_us: int
    error: str | None
    tries: int


@dataclass(frozen=True)
class Manner:
    """How to ask.

    Attributes:
        concurrency: Calls at once.
        timeout: Seconds for each call; None for no limit.
        retries: Further tries after an error or a timeout.
        stopped: Set when nothing more is to be asked.
        overdue: Calls that timed out and cannot be stopped, done by now or not.
    """

    concurrency: int = 1
    timeout: float | None = None
    retries: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    overdue: list[Future[_Timed]] = field(default_factory=list)


def ask(
    search: Search,
    texts: Sequence[str],
    manner: Manner,
    *,
    warmup: int = 0,
    tick: Callable[[int], None] = lambda _done: None,
) -> list[Reply]:
    """Ask every query.

    Args:
        search: Takes the text of a query; plain or async.
        texts: What to ask.
        manner: How.
        warmup: So many of the first queries are asked before, and their replies are dropped.
        tick: Told now and then how many queries have their reply.

    Returns:
        One reply for each query, in their order.
    """
    first = [(-1, text) for text in texts[:warmup]]
    phases = [phase for phase in (first, list(enumerate(texts))) if phase]
    replies: dict[int, Reply] = {}
    try:
        for index, reply in _asked(search, phases, manner, lambda: tick(len(replies))):
            if index >= 0:
                replies[index] = reply
            tick(len(replies))
    finally:
        manner.stopped.set()
    return [replies[index] for index in range(len(texts))]


_Phase = list[tuple[int, str]]
_Replies = Iterator[tuple[int, Reply]]


def _asked(
    search: Search, phases: list[_Phase], manner: Manner, tick: Callable[[], None]
) -> _Replies:
    call = type(search).__call__ if not inspect.isroutine(search) else search
    if inspect.iscoroutinefunction(search) or inspect.iscoroutinefunction(call):
        return _in_a_loop(search, phases, manner, tick)
    return _plainly(search, phases, manner, tick)


def _plainly(
    search: Search, phases: list[_Phase], manner: Manner, tick: Callable[[], None]
) -> _Replies:
    try:
        for phase in phases:
            if manner.concurrency == 1:
                for index, text in phase:
                    yield index, _reply(search, text, manner)
            else:
                yield from _in_threads(search, phase, manner, tick)
    except _Promised:  # a function that is not async and returns a coroutine: it can be asked again
        yield from _in_a_loop(search, phases, manner, tick)


class _Promised(BaseException):
    """A plain function returned something to await. No Exception, so that nothing retries it."""


class _Late(Exception):
    """A call took too long."""


def _reply(search: Search, text: str, manner: Manner) -> Reply:
    tries = took = 0

    def call() -> Any:
        nonlocal tries, took
        tries += 1
        began = perf_counter_ns()
        try:
            value, took = _within(search, text, manner)
        except Exception:
            took = perf_counter_ns() - began
            raise
        return value

    try:
        value = _persistently(call, manner)
    except Exception as error:  # noqa: BLE001 - a search may raise anything: it is recorded
        return Reply(None, took // 1000, _told(error), tries)
    return Reply(value, took // 1000, None, tries)


def _persistently(call: Callable[[], Any], manner: Manner) -> Any:
    if not manner.retries:
        return call()
    import tenacity

    patient = tenacity.Retrying(
        stop=tenacity.stop_any(
            tenacity.stop_after_attempt(manner.retries + 1),
            tenacity.stop_when_event_set(manner.stopped),
        ),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
        sleep=tenacity.sleep_using_event(manner.stopped),
        reraise=True,
    )
    return patient(call)


def _within(search: Search, text: str, manner: Manner) -> _Timed:
    """One call, in a thread of its own if it may not take for ever."""
    if manner.timeout is None:
        return _timed(search, text)
    running = sum(not future.done() for future in manner.overdue)
    if running >= _MOST_OVERDUE:
        raise _Late(f"not asked: {running} calls before it timed out and still run")
    future: Future[_Timed] = Future()
    _start(lambda: _settle(future, lambda: _timed(search, text)))
    wait([future], manner.timeout)
    if not future.done():
        manner.overdue.append(future)
        raise _late(manner.timeout)
    value, took = future.result()
    if took > manner.timeout * 1e9:
        raise _late(manner.timeout)
    return value, took


def _timed(search: Search, text: str) -> _Timed:
    began = perf_counter_ns()
    value = search(text)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise _Promised
    if hasattr(value, "__next__"):
        value = list(value)  # the work of a generator is done as it is read
    return value, perf_counter_ns() - began


def _settle(future: Future[_Timed], call: Callable[[], _Timed]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - whoever waits raises it again
        future.set_exception(error)


def _start(work: Callable[[], None]) -> threading.Thread:
    """A thread that does not keep the interpreter from ending, with the caller's context."""
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    return thread


def _in_threads(
    search: Search, phase: _Phase, manner: Manner, tick: Callable[[], None]
) -> _Replies:
    todo: SimpleQueue[tuple[int, str]] = SimpleQueue()
    done: SimpleQueue[tuple[int, Reply] | BaseException] = SimpleQueue()
    for each in phase:
        todo.put(each)

    def work() -> None:
        try:
            while not manner.stopped.is_set():
                index, text = todo.get_nowait()
                done.put((index, _reply(search, text, manner)))
        except Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where replies are collected
            done.put(error)

    for _ in range(min(manner.concurrency, len(phase))):
        _start(work)
    yield from _collected(done, len(phase), tick)


def _collected(
    done: SimpleQueue[tuple[int, Reply] | BaseException], count: int, tick: Callable[[], None]
) -> _Replies:
    """Replies as they come, from other threads; an interrupt is heard meanwhile."""
    while count:
        try:
            got = done.get(timeout=_TICK)
        except Empty:
            tick()
            continue
        if isinstance(got, BaseException):
            raise got
        count -= 1
        yield got


def _in_a_loop(
    search: Search, phases: list[_Phase], manner: Manner, tick: Callable[[], None]
) -> _Replies:
    done: SimpleQueue[tuple[int, Reply] | BaseException] = SimpleQueue()
    main: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def worker(todo: Iterator[tuple[int, str]]) -> None:
        for index, text in todo:
            done.put((index, await _awaited_reply(search, text, manner)))

    async def every() -> None:
        task = asyncio.current_task()
        assert task is not None
        main.append((asyncio.get_running_loop(), task))
        for phase in phases:
            todo = iter(phase)  # one for all workers: each takes the next
            async with asyncio.TaskGroup() as group:
                for _ in range(min(manner.concurrency, len(phase))):
                    group.create_task(worker(todo))

    def run() -> None:
        try:
            asyncio.run(every())
        except BaseException as error:  # noqa: BLE001 - raised again where replies are collected
            done.put(error)

    thread = _start(run)
    try:
        yield from _collected(done, sum(map(len, phases)), tick)
    finally:
        for loop, task in main:
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)
        thread.join(1.0)  # a search that will not be cancelled is left behind


async def _awaited_reply(search: Search, text: str, manner: Manner) -> Reply:
    tries = took = 0

    async def call() -> Any:
        nonlocal tries, took
        tries += 1
        began = perf_counter_ns()
        try:
            value, took = await _awaited_within(search, text, manner)
        except Exception:
            took = perf_counter_ns() - began
            raise
        return value

    try:
        value = await _awaited_persistently(call, manner)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Reply(None, took // 1000, _told(error), tries)
    except Exception as error:  # noqa: BLE001 - a search may raise anything: it is recorded
        return Reply(None, took // 1000, _told(error), tries)
    return Reply(value, took // 1000, None, tries)


async def _awaited_persistently(call: Callable[[], Awaitable[Any]], manner: Manner) -> Any:
    if not manner.retries:
        return await call()
    import tenacity

    patient = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(manner.retries + 1),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
        sleep=asyncio.sleep,
        reraise=True,
    )
    return await patient(call)


async def _awaited_within(search: Search, text: str, manner: Manner) -> _Timed:
    timeout = manner.timeout

    async def timed() -> _Timed:
        began = perf_counter_ns()
        value = search(text)
        if inspect.isawaitable(value):
            value = await value
        if hasattr(value, "__next__"):
            value = list(value)
        return value, perf_counter_ns() - began

    if timeout is None:
        return await timed()
    # Not asyncio.timeout: that waits for as long as the search refuses to be cancelled.
    task = asyncio.create_task(timed())
    try:
        await asyncio.wait({task}, timeout=timeout)
    finally:
        if not task.done():
            task.add_done_callback(lambda late: late.cancelled() or late.exception())
            task.cancel()
    if not task.done():
        raise _late(timeout)
    value, took = task.result()
    if took > timeout * 1e9:
        raise _late(timeout)  # it kept the loop to itself, so that nobody could stop it
    return value, took


def _late(timeout: float) -> _Late:
    return _Late(f"timeout after {timeout:g} s")


def _told(error: BaseException) -> str:
    """An error in one line that can be written to any file."""
    if isinstance(error, _Late):
        return str(error)
    said = " ".join(str(error).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text[:300].encode("utf-8", "replace").decode()
