"""Computing beside requests: few things at a time, each once, and a page that waits a little."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from karat.errors import KaratError

LOG = logging.getLogger("karat.web")
REMEMBERED_S = 60.0
"""For how long it is known why something could not be computed, before it is tried again."""
_MOST_ERRORS = 200
_T = TypeVar("_T")


class Busy(HTTPException):
    """So much is being computed that nothing more is taken on."""

    def __init__(self) -> None:
        super().__init__(
            503,
            "the server computes as much as it can at once: look again in a minute",
            {"retry-after": "30"},
        )


@dataclass(eq=False)
class _Job:
    key: Hashable
    work: Callable[[], object]
    remembered_s: float
    done: threading.Event = field(default_factory=threading.Event)
    error: KaratError | None = None


@dataclass(eq=False)
class Place:
    """A place for one computation.

    Attributes:
        free: Whether nothing was put into it yet.
    """

    free: bool = True


class JobQueue:
    """What this process computes now.

    Threads end with the process; whoever looks next has it computed again.

    Args:
        at_once: Computations that run at the same time; the others wait.
        most: How many may wait.
        clock: Seconds, from any moment on.
    """

    def __init__(
        self, at_once: int = 2, most: int = 16, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._at_once, self._most, self._clock = at_once, most, clock
        self._lock = threading.Lock()
        self._threads = self._places = 0
        self._jobs: dict[Hashable, _Job] = {}
        self._waiting: deque[_Job] = deque()
        self._errors: OrderedDict[Hashable, tuple[KaratError, float]] = OrderedDict()

    def run(
        self,
        key: Hashable,
        work: Callable[[], object],
        wait_s: float,
        remembered_s: float = REMEMBERED_S,
        place: Place | None = None,
    ) -> bool:
        """Have something computed, unless it is being computed, and wait for it a little.

        Args:
            key: Names it.
            work: Computes it.
            wait_s: Seconds to wait.
            remembered_s: For how long it is not tried again after it failed.
            place: One that was reserved for it.

        Returns:
            Whether it has ended.

        Raises:
            KaratError: as ``work`` raised it, now or a little before.
            Busy: too much waits to be computed.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                error = self._remembered(key)
                if error is not None:
                    raise error.with_traceback(None)
                self._give_back(place)
                job = self._take_on(_Job(key, work, remembered_s))
        if not job.done.wait(wait_s):
            return False
        if job.error is not None:
            raise job.error.with_traceback(None)
        return True

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Reserve a place: a ``run`` with it is not refused after something was stored.

        Raises:
            Busy: there is none.
        """
        made = Place()
        with self._lock:
            if self._full():
                raise Busy
            self._places += 1
        try:
            yield made
        finally:
            with self._lock:
                self._give_back(made)

    def has(self, key: Hashable) -> bool:
        """Whether something is being computed, or waits to be."""
        with self._lock:
            return key in self._jobs

    def _full(self) -> bool:
        taken = self._threads + len(self._waiting) + self._places
        return taken >= self._at_once + self._most

    def _give_back(self, place: Place | None) -> None:
        if place is not None and place.free:
            place.free = False
            self._places -= 1

    def _take_on(self, job: _Job) -> _Job:
        if self._full():
            raise Busy
        if self._threads < self._at_once:
            threading.Thread(target=self._serve, args=(job,), daemon=True).start()
            self._threads += 1
        else:
            self._waiting.append(job)
        self._jobs[job.key] = job
        return job

    def _remembered(self, key: Hashable) -> KaratError | None:
        error, until = self._errors.get(key, (None, 0.0))
        if error is not None and self._clock() >= until:
            del self._errors[key]
            return None
        return error

    def _serve(self, first: _Job) -> None:
        job: _Job | None = first
        while job is not None:
            self._work(job)
            with self._lock:
                job = self._waiting.popleft() if self._waiting else None
                if job is None:
                    self._threads -= 1

    def _work(self, job: _Job) -> None:
        error: KaratError | None = None
        try:
            job.work()
        except KaratError as found:
            LOG.info("computing %s: %s", job.key, found)
            error = found
        except BaseException:
            LOG.exception("computing %s failed", job.key)
            error = KaratError("this is a bug in karat; the server's log has more")
        if error is not None:
            # Not with the frames it passed through, which hold tables.
            error.__traceback__ = error.__context__ = error.__cause__ = None
        with self._lock:
            job.error = error
            del self._jobs[job.key]
            if error is not None and job.remembered_s > 0:
                self._errors[job.key] = error, self._clock() + job.remembered_s
                while len(self._errors) > _MOST_ERRORS:
                    self._errors.popitem(last=False)
        job.done.set()


COMPUTING = JobQueue()
"""Of this process."""


async def in_turn(request: Request, work: Callable[[], _T]) -> _T:
    """What takes long and much memory, one at a time; whoever waits holds no thread."""
    state = request.app.state
    if not hasattr(state, "api_turns"):
        state.api_turns = asyncio.Semaphore(1)
    async with state.api_turns:
        return await run_in_threadpool(work)
