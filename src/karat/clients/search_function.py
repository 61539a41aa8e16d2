"""Calls a search function for each query, with timing, timeouts and retries.

A plain function is called in the caller's thread, one query after the other, or in daemon threads;
an async function in karat's own event loop in a thread, independent of a notebook's loop. That loop
lives as long as the process: a client opened in one benchmark can be used in the next.

Results are read immediately, in the same thread and within the same time limit: a function may
reuse its list, and lazy results do their work when they are read.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from time import perf_counter_ns, sleep
from typing import Any, TypeVar

from karat.clients.python_function import place_of
from karat.errors import KaratError
from karat.tables.returned import Ranked, Unusable, listed, ranked

_MOST_OVERDUE = 64  # timed out calls that still run, beyond which no more calls are made
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0  # seconds before the first retry, and at most
_TICK = 0.2
_AT_LEAST, _SHORTLY = 100, 0.02
_BLOCKED = 10.0  # seconds beyond its timeout that an async search may block the loop

Search = Callable[[Any], Any]
_T = TypeVar("_T")
_Timed = tuple[Ranked | Unusable, int]  # the result, and its nanoseconds
_Outcome = _Timed | BaseException | None  # or the error; None after a timeout
_Call = Callable[[], Awaitable[_Outcome]]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of one query."""

    ranking: Ranked | None  # the returned ranking, or None
    # Microseconds of the last call (the successful one, if any), at least 1; None without a call
    latency_us: int | None
    error: str | None  # why there is no ranking, or None
    tries: int  # number of calls
    kind: str | None = None  # what is wrong with the format of the result, if that is wrong
    came: str | None = None  # the result, truncated, if it is not a ranking
    place: str | None = None  # file and line where the search function raised the error, if known


@dataclass(frozen=True)
class CallSettings:
    """Settings of the calls."""

    concurrency: int = 1  # concurrent calls
    timeout: float | None = None  # seconds per call; None for no limit
    retries: int = 0  # retries after an error or timeout
    stopped: threading.Event = field(default_factory=threading.Event)  # set to stop further calls
    # Threads of calls that timed out; they cannot be stopped and may still run
    overdue: list[Future[Any]] = field(default_factory=list)


def ask(
    search: Search,
    texts: Sequence[Any],
    manner: CallSettings,
    *,
    warmup: int = 0,
    tick: Callable[[int], None] = lambda _done: None,
) -> list[Reply]:
    """The replies of ``asking``, in the order of the queries."""
    with closing(asking(search, texts, manner, warmup=warmup, tick=tick)) as replies:
        found = dict(replies)
    return [found[index] for index in range(len(texts))]


def asking(
    search: Search,
    texts: Sequence[Any],
    manner: CallSettings,
    *,
    warmup: int = 0,
    tick: Callable[[int], None] = lambda _done: None,
) -> Generator[tuple[int, Reply]]:
    """Call the search function for every query, after ``warmup`` calls that are not recorded.

    Yields the place of a query and its reply as soon as it is there; closing it stops the calls.
    Errors of the function are recorded. KeyboardInterrupt, SystemExit and other BaseExceptions stop
    the calls and propagate, except for a CancelledError of the search function, which is recorded.
    ``tick`` is called regularly with the number of queries that are done.
    """
    first = [(-1, text) for text in texts[:warmup]]
    phases = [phase for phase in (first, list(enumerate(texts))) if phase]
    done = 0
    try:
        for index, reply in _asked(search, phases, manner, lambda: tick(done)):  # noqa: B023 - the number then
            if index >= 0:
                done += 1
                yield index, reply
            tick(done)
    finally:
        manner.stopped.set()


_Phase = list[tuple[int, Any]]
_Replies = Iterator[tuple[int, Reply]]
_Done = SimpleQueue[tuple[int, Reply] | BaseException]


def _asked(
    search: Search, phases: list[_Phase], manner: CallSettings, tick: Callable[[], None]
) -> _Replies:
    call = type(search).__call__ if not inspect.isroutine(search) else search
    if inspect.iscoroutinefunction(search) or inspect.iscoroutinefunction(call):
        return _in_a_loop(search, phases, manner, tick)
    return _plainly(search, phases, manner, tick)


def _plainly(
    search: Search, phases: list[_Phase], manner: CallSettings, tick: Callable[[], None]
) -> _Replies:
    try:
        for phase in phases:
            if manner.concurrency == 1:
                for index, text in phase:
                    yield index, _plain_reply(search, text, manner)
            else:
                yield from _in_threads(search, phase, manner, tick)
    except _Promised:  # a plain function that returns a coroutine
        yield from _in_a_loop(search, phases, manner, tick)


class _Promised(BaseException):
    """A plain function returned an awaitable. A BaseException, so that it is not retried."""


class _Failed(Exception):
    """A call raised an error or timed out; the message is printable."""

    def __init__(self, said: str, error: BaseException | None = None) -> None:
        super().__init__(said)
        self.place = None if error is None else place_of(error)
        self.again: bool = getattr(error, "again", True)
        self.after: float = getattr(error, "after", 0.0)


class _NotAsked(Exception):
    """No call was made."""


class _Stuck(Exception):
    """The event loop is blocked."""


# --- one query, for plain and async alike ---


async def _reply(
    call: _Call, sleep: Callable[[float], Awaitable[Any]], manner: CallSettings
) -> Reply:
    """One query, with retries; it waits only in ``call`` and ``sleep``."""
    tries = nanoseconds = 0

    async def once() -> _Timed:
        nonlocal tries, nanoseconds
        running = sum(not future.done() for future in manner.overdue)
        if running >= _MOST_OVERDUE:
            raise _NotAsked(f"not asked: {running} earlier calls timed out and are still running")
        tries += 1
        began = perf_counter_ns()
        outcome = await call()
        nanoseconds = perf_counter_ns() - began
        if isinstance(outcome, Exception | asyncio.CancelledError):
            raise _Failed(_described(outcome), outcome)
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is None or (manner.timeout is not None and outcome[1] > manner.timeout * 1e9):
            raise _Failed(f"timeout after {manner.timeout:g} s")
        return outcome

    try:
        result, nanoseconds = await _persistently(once, sleep, manner)
    except _NotAsked as error:
        return Reply(None, _whole(nanoseconds) if tries else None, str(error), tries)
    except _Failed as error:
        return Reply(None, _whole(nanoseconds), str(error), tries, place=error.place)
    if isinstance(result, Unusable):
        return Reply(None, _whole(nanoseconds), _line(str(result)), tries, result.kind, result.came)
    return Reply(result, _whole(nanoseconds), None, tries)


async def _persistently(
    once: Callable[[], Awaitable[_Timed]],
    sleep: Callable[[float], Awaitable[Any]],
    manner: CallSettings,
) -> _Timed:
    if not manner.retries:
        return await once()
    import tenacity

    patience = tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT)
    patient = tenacity.AsyncRetrying(
        stop=tenacity.stop_any(
            tenacity.stop_after_attempt(manner.retries + 1),
            tenacity.stop_when_event_set(manner.stopped),
        ),
        wait=lambda state: max(patience(state), getattr(_failure(state), "after", 0.0)),
        retry=tenacity.retry_if_exception(lambda error: getattr(error, "again", False)),
        sleep=sleep,
        reraise=True,
    )
    return await patient(once)


def _failure(state: Any) -> BaseException | None:
    """The error of the last try."""
    error: BaseException | None = state.outcome.exception() if state.outcome else None
    return error


def _taken(value: Any, began: int) -> _Timed:
    """Read a result; the time includes reading lazy results, but not checking ids."""
    nanoseconds = 0
    try:
        result = listed(value)
        nanoseconds = perf_counter_ns() - began
        return ranked(result), nanoseconds
    except Unusable as error:
        return error, nanoseconds or perf_counter_ns() - began


def _whole(nanoseconds: int) -> int:
    return max(1, round(nanoseconds / 1000))


# --- plain functions ---


def _plain_reply(search: Search, text: Any, manner: CallSettings) -> Reply:
    async def call() -> _Outcome:
        return _called_within(search, text, manner)

    async def sleep(seconds: float) -> None:
        manner.stopped.wait(seconds)

    return _driven(_reply(call, sleep, manner))


def _driven(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that blocks instead of awaiting."""
    try:
        work.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    raise AssertionError("it waited")


def _called_within(search: Search, text: Any, manner: CallSettings) -> _Outcome:
    """One call, in its own thread if there is a timeout."""
    if manner.timeout is None:
        return _called(search, text)
    future: Future[_Outcome] = Future()
    in_thread(lambda: future.set_result(_called(search, text)))
    wait([future], manner.timeout)
    if future.done():
        return future.result()
    manner.overdue.append(future)
    return None


def _called(search: Search, text: Any) -> _Outcome:
    began = perf_counter_ns()
    try:
        value = search(text)
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            return _Promised()
        return _taken(value, began)
    except BaseException as error:  # noqa: BLE001 - the caller records or raises it
        return error


def _in_threads(
    search: Search, phase: _Phase, manner: CallSettings, tick: Callable[[], None]
) -> _Replies:
    todo: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    done: _Done = SimpleQueue()
    for each in phase:
        todo.put(each)

    def work() -> None:
        try:
            while not manner.stopped.is_set():
                index, text = todo.get_nowait()
                done.put((index, _plain_reply(search, text, manner)))
        except Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where replies are collected
            done.put(error)

    for _ in range(min(manner.concurrency, len(phase))):
        in_thread(work)
    yield from _collected(done, len(phase), tick)


def _collected(done: _Done, count: int, tick: Callable[[], None]) -> _Replies:
    """Replies from other threads, in order of completion; can be interrupted."""
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
        if count > _AT_LEAST and done.empty():
            sleep(_SHORTLY)


# --- async functions ---


def _in_a_loop(
    search: Search, phases: list[_Phase], manner: CallSettings, tick: Callable[[], None]
) -> _Replies:
    done: _Done = SimpleQueue()
    begun: set[int] = set()
    beat = threading.Event()
    quiet = 0

    async def worker(todo: Iterator[tuple[int, Any]]) -> None:
        try:
            for index, text in todo:
                begun.add(index)
                call = partial(_awaited_within, search, text, manner)
                done.put((index, await _reply(call, asyncio.sleep, manner)))
        except BaseException as error:  # noqa: BLE001 - raised again where replies are collected
            done.put(error)

    async def heart() -> None:
        while True:
            beat.set()
            await asyncio.sleep(_TICK / 2)

    async def every() -> None:
        tasks = [asyncio.create_task(heart())]
        try:
            for phase in phases:
                todo = iter(phase)  # shared by all workers
                workers = range(min(manner.concurrency, len(phase)))
                new = [asyncio.create_task(worker(todo)) for _ in workers]
                tasks += new
                await asyncio.wait(new)
        finally:
            for task in tasks:
                task.cancel()

    def watch() -> None:
        # Counted in ticks, not by the clock, so that a sleeping computer does not count.
        nonlocal quiet
        quiet = 0 if beat.is_set() else quiet + 1
        beat.clear()
        if manner.timeout is not None and quiet * _TICK > manner.timeout + _BLOCKED:
            raise _Stuck
        tick()

    loop = event_loop()
    asked = asyncio.run_coroutine_threadsafe(every(), loop)
    seen: set[int] = set()
    try:
        for index, reply in _collected(done, sum(map(len, phases)), watch):
            seen.add(index)
            yield index, reply
    except _Stuck:
        abandon(loop)
        for index in (index for index, _ in phases[-1] if index not in seen):
            yield index, _stuck(manner.timeout or 0.0, asked=index in begun)
    finally:
        asked.cancel()  # abandons searches that cannot be cancelled


def _stuck(timeout: float, *, asked: bool) -> Reply:
    if not asked:
        return Reply(None, None, "not asked: an earlier call blocks the event loop", 0)
    error = (
        f"timeout after {timeout:g} s: the async search blocks its event loop and cannot be "
        "stopped; await slow operations, or use a plain function"
    )
    return Reply(None, _whole(round(timeout * 1e9)), error, 1)


async def _awaited_within(search: Search, text: Any, manner: CallSettings) -> _Outcome:
    threads: list[Future[Any]] = []

    async def called() -> _Outcome:
        THREADS.set(threads)
        began = perf_counter_ns()
        try:
            value = search(text)
            if inspect.isawaitable(value):
                value = await value
            return _taken(value, began)
        except BaseException as error:  # noqa: BLE001 - raising some of them would end the loop
            return error

    # Not asyncio.timeout, which waits until the search accepts the cancellation.
    task = asyncio.create_task(called())
    try:
        await asyncio.wait({task}, timeout=manner.timeout)
    finally:
        if not task.done():
            task.cancel()
    if task.done():
        return task.result()
    manner.overdue.extend(future for future in threads if not future.done())
    return None


# --- messages ---


def _described(error: BaseException) -> str:
    """An error as one printable line."""
    if isinstance(error, KaratError):
        return _line(error.what)
    try:
        message = _line(str(error))
    except Exception:  # noqa: BLE001 - __str__ of users' errors may fail
        message = ""
    name = _line(type(error).__name__)
    if (
        "different event loop" in message
        or "different loop" in message
        or (message == "Event loop is closed")
    ):
        message += "; open the client in the function that karat calls: it has its own event loop"
    return f"{name}: {message}" if message else name


def _line(text: str) -> str:
    text = " ".join(text.split())[:300]
    return "".join(each if each.isprintable() else "?" for each in text)


# --- threads and event loops that never keep the interpreter from ending ---

THREADS: contextvars.ContextVar[list[Future[Any]] | None] = contextvars.ContextVar(
    "threads", default=None
)
"""Collects the threads that a call starts with ``asyncio.to_thread``, or None."""

_LOOP_ANSWERS_WITHIN = 1.0  # seconds
_loops: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []
_guard = threading.Lock()


def in_thread(work: Callable[[], None]) -> None:
    """Run something in a daemon thread, with the caller's context."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()


def event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process.

    A new one within that loop, after a fork, or if the loop is blocked for a second.
    """
    with _guard:
        for loop, thread in list(_loops):
            if thread is threading.current_thread():
                continue
            answers = threading.Event()
            if thread.is_alive():
                loop.call_soon_threadsafe(answers.set)
                if answers.wait(_LOOP_ANSWERS_WITHIN):
                    return loop
            _loops.remove((loop, thread))
        loop = asyncio.new_event_loop()
        loop.set_default_executor(_Daemons(1))
        thread = threading.Thread(target=loop.run_forever, name="karat asks", daemon=True)
        thread.start()
        _loops.append((loop, thread))
        return loop


def abandon(loop: asyncio.AbstractEventLoop) -> None:
    """Stop using a blocked loop; its thread keeps running."""
    with _guard:
        _loops[:] = [entry for entry in _loops if entry[0] is not loop]


class _Daemons(ThreadPoolExecutor):
    """The executor of ``asyncio.to_thread``: one daemon thread per call."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future: Future[_T] = Future()
        future.set_running_or_notify_cancel()
        threads = THREADS.get()
        if threads is not None:
            threads.append(future)

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - awaiting it raises it again
                future.set_exception(error)

        in_thread(work)
        return future


@atexit.register
def _end_loops() -> None:
    """Stop the loops in an orderly way, as far as possible."""

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
        if not thread.is_alive() and not loop.is_running():  # after a fork it appears to run
            loop.close()
