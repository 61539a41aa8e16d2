"""Asking: a search function is called for each query, timed, and never trusted to come back.

A plain function is called in the caller's own thread, one query after the other, or in threads of
which none keeps the interpreter from ending; an async one in an event loop of karat's own, in a
thread of its own, so that a notebook's loop is not in the way. That loop lives as long as the
process: a client that was opened in one benchmark can be used in the next.

What comes back is read at once, in the same thread and within the same time: a list may be filled
anew by the next call, and what is lazy does its work as it is read.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from time import perf_counter_ns
from typing import Any, TypeVar

from karat.clients.python_function import place_of
from karat.tables.returned import Ranked, Unusable, listed, ranked

_MOST_OVERDUE = 64  # calls that timed out and still run, before no more are made
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 10.0  # seconds before a second try, and before any
_TICK = 0.2
_BLOCKED = 10.0  # seconds beyond its timeout that an async search may keep the loop to itself

Search = Callable[[str], Any]
_T = TypeVar("_T")
_Timed = tuple[Ranked | Unusable, int]  # what came back, and the nanoseconds it took
_Outcome = _Timed | BaseException | None  # or what was raised; None if it is late
_Call = Callable[[], Awaitable[_Outcome]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one query.

    Attributes:
        ranking: What the function returned, or None.
        latency_us: Microseconds of the last try, which is the one that succeeded if one did; at
            least 1, and None if nothing was asked.
        error: Why there is no ranking, or None.
        tries: Calls made.
        kind: What is wrong with the shape of what came back, if that is wrong.
        came: What came back, cut off, if it is no ranking.
        place: File and line of the search that raised the error; None if not known.
    """

    ranking: Ranked | None
    latency_us: int | None
    error: str | None
    tries: int
    kind: str | None = None
    came: str | None = None
    place: str | None = None


@dataclass(frozen=True)
class Manner:
    """How to ask.

    Attributes:
        concurrency: Calls at once.
        timeout: Seconds for each call; None for no limit.
        retries: Further tries after an error or a timeout.
        stopped: Set when nothing more is to be asked.
        overdue: Threads of calls that timed out and cannot be stopped, done by now or not.
    """

    concurrency: int = 1
    timeout: float | None = None
    retries: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    overdue: list[Future[Any]] = field(default_factory=list)


def ask(
    search: Search,
    texts: Sequence[str],
    manner: Manner,
    *,
    warmup: int = 0,
    tick: Callable[[int], None] = lambda _done: None,
) -> list[Reply]:
    """Ask every query.

    What the search raises is recorded; KeyboardInterrupt, SystemExit and whatever else is no
    Exception ends the asking, and is raised as it is (a CancelledError of the search's own is
    recorded).

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
_Done = SimpleQueue[tuple[int, Reply] | BaseException]


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
                    yield index, _plain_reply(search, text, manner)
            else:
                yield from _in_threads(search, phase, manner, tick)
    except _Promised:  # a function that is not async and returns a coroutine: it can be asked again
        yield from _in_a_loop(search, phases, manner, tick)


class _Promised(BaseException):
    """A plain function returned something to await. No Exception, so that nothing retries it."""


class _Failed(Exception):
    """A call raised something, or took too long; in words that can be written to any file."""

    def __init__(self, said: str, place: str | None = None) -> None:
        super().__init__(said)
        self.place = place


class _NotAsked(Exception):
    """No call was made."""


class _Stuck(Exception):
    """The event loop does not come back."""


# --- one query, for plain and async alike ---


async def _reply(call: _Call, sleep: Callable[[float], Awaitable[Any]], manner: Manner) -> Reply:
    """One query, tried until it is answered; it waits only in ``call`` and ``sleep``."""
    tries = took = 0

    async def once() -> _Timed:
        nonlocal tries, took
        running = sum(not future.done() for future in manner.overdue)
        if running >= _MOST_OVERDUE:
            raise _NotAsked(f"not asked: {running} calls before it timed out and still run")
        tries += 1
        began = perf_counter_ns()
        outcome = await call()
        took = perf_counter_ns() - began
        if isinstance(outcome, Exception | asyncio.CancelledError):
            raise _Failed(_told(outcome), place_of(outcome))
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is None or (manner.timeout is not None and outcome[1] > manner.timeout * 1e9):
            raise _Failed(f"timeout after {manner.timeout:g} s")
        return outcome

    try:
        found, took = await _persistently(once, sleep, manner)
    except _NotAsked as error:
        return Reply(None, _whole(took) if tries else None, str(error), tries)
    except _Failed as error:
        return Reply(None, _whole(took), str(error), tries, place=error.place)
    if isinstance(found, Unusable):
        return Reply(None, _whole(took), _line(str(found)), tries, found.kind, found.came)
    return Reply(found, _whole(took), None, tries)


async def _persistently(
    once: Callable[[], Awaitable[_Timed]],
    sleep: Callable[[float], Awaitable[Any]],
    manner: Manner,
) -> _Timed:
    if not manner.retries:
        return await once()
    import tenacity

    patient = tenacity.AsyncRetrying(
        stop=tenacity.stop_any(
            tenacity.stop_after_attempt(manner.retries + 1),
            tenacity.stop_when_event_set(manner.stopped),
        ),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
        retry=tenacity.retry_if_exception_type(_Failed),
        sleep=sleep,
        reraise=True,
    )
    return await patient(once)


def _taken(value: Any, began: int) -> _Timed:
    """What came back, read. Reading what is lazy belongs to its time; looking at ids does not."""
    took = 0
    try:
        found = listed(value)
        took = perf_counter_ns() - began
        return ranked(found), took
    except Unusable as error:
        return error, took or perf_counter_ns() - began


def _whole(nanoseconds: int) -> int:
    return max(1, round(nanoseconds / 1000))


# --- plain functions ---


def _plain_reply(search: Search, text: str, manner: Manner) -> Reply:
    async def call() -> _Outcome:
        return _called_within(search, text, manner)

    async def sleep(seconds: float) -> None:
        manner.stopped.wait(seconds)

    return _driven(_reply(call, sleep, manner))


def _driven(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that blocks where others would wait."""
    try:
        work.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    raise AssertionError("it waited")


def _called_within(search: Search, text: str, manner: Manner) -> _Outcome:
    """One call, in a thread of its own if it may not take for ever."""
    if manner.timeout is None:
        return _called(search, text)
    future: Future[_Outcome] = Future()
    in_thread(lambda: future.set_result(_called(search, text)))
    wait([future], manner.timeout)
    if future.done():
        return future.result()
    manner.overdue.append(future)
    return None


def _called(search: Search, text: str) -> _Outcome:
    began = perf_counter_ns()
    try:
        value = search(text)
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            return _Promised()
        return _taken(value, began)
    except BaseException as error:  # noqa: BLE001 - recorded or raised again by whoever asked
        return error


def _in_threads(
    search: Search, phase: _Phase, manner: Manner, tick: Callable[[], None]
) -> _Replies:
    todo: SimpleQueue[tuple[int, str]] = SimpleQueue()
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


# --- async functions ---


def _in_a_loop(
    search: Search, phases: list[_Phase], manner: Manner, tick: Callable[[], None]
) -> _Replies:
    done: _Done = SimpleQueue()
    begun: set[int] = set()
    beat = threading.Event()
    quiet = 0

    async def worker(todo: Iterator[tuple[int, str]]) -> None:
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
                todo = iter(phase)  # one for all workers: each takes the next
                workers = range(min(manner.concurrency, len(phase)))
                new = [asyncio.create_task(worker(todo)) for _ in workers]
                tasks += new
                await asyncio.wait(new)
        finally:
            for task in tasks:
                task.cancel()

    def watch() -> None:
        # Counted in looks, not by the clock: a computer that slept has blocked nothing.
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
        asked.cancel()  # a search that will not be cancelled is left behind


def _stuck(timeout: float, *, asked: bool) -> Reply:
    if not asked:
        return Reply(None, None, "not asked: a call before it blocks the event loop", 0)
    error = (
        f"timeout after {timeout:g} s: the async search blocks its event loop, so that nothing can "
        "stop it; await what takes long, or give a plain function"
    )
    return Reply(None, _whole(round(timeout * 1e9)), error, 1)


async def _awaited_within(search: Search, text: str, manner: Manner) -> _Outcome:
    threads: list[Future[Any]] = []

    async def called() -> _Outcome:
        THREADS.set(threads)
        began = perf_counter_ns()
        try:
            value = search(text)
            if inspect.isawaitable(value):
                value = await value
            return _taken(value, began)
        except BaseException as error:  # noqa: BLE001 - a task that raises some of them ends the loop
            return error

    # Not asyncio.timeout: that waits for as long as the search refuses to be cancelled.
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


# --- words ---


def _told(error: BaseException) -> str:
    """An error in one line that can be written to any file."""
    try:
        said = _line(str(error))
    except Exception:  # noqa: BLE001 - a stranger's error may not even be able to say what it is
        said = ""
    name = _line(type(error).__name__)
    if "different event loop" in said or "different loop" in said or said == "Event loop is closed":
        said += "; open the client in the function that benchmark calls: it has its own event loop"
    return f"{name}: {said}" if said else name


def _line(text: str) -> str:
    text = " ".join(text.split())[:300]
    return "".join(each if each.isprintable() else "?" for each in text)


# --- threads and event loops that never keep the interpreter from ending ---

THREADS: contextvars.ContextVar[list[Future[Any]] | None] = contextvars.ContextVar(
    "threads", default=None
)
"""Where a call notes what it puts into threads (``asyncio.to_thread``), or None."""

_LOOP_ANSWERS_WITHIN = 1.0  # seconds
_loops: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []
_guard = threading.Lock()


def in_thread(work: Callable[[], None]) -> None:
    """Do something in a thread that does not keep the interpreter, with the caller's context."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()


def event_loop() -> asyncio.AbstractEventLoop:
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

        in_thread(work)
        return future


@atexit.register
def _end_loops() -> None:
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
