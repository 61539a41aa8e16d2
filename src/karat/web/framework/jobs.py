"""Background computation: few jobs at a time, each once; a page waits a little for its own."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Protocol, TypeVar

from fastapi import Depends
from starlette.exceptions import HTTPException

from karat.errors import KaratError
from karat.workflows.workspace.workspace import Workspace

LOG = logging.getLogger("karat.web")
REMEMBERED_S = 60.0
"""Seconds for which an error is cached before the job is tried again."""
BUSY = "the server is busy with other computations: try again in a minute"
_MOST_ERRORS = 200
_T_co = TypeVar("_T_co", covariant=True)


class Busy(HTTPException):
    def __init__(self) -> None:
        super().__init__(503, BUSY, {"retry-after": "30"})


@dataclass(eq=False)
class _Job:
    key: Hashable
    work: Callable[[], object]
    remembered_s: float
    done: threading.Event = field(default_factory=threading.Event)
    error: KaratError | None = None


@dataclass(eq=False)
class Place:
    """A reserved place for one job; ``free`` until it is used."""

    free: bool = True


class JobQueue:
    """The jobs of this process: ``at_once`` run, at most ``most`` more wait.

    Its threads end with the process; the next request then starts a lost job again.
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
        """Start a job, unless it is running already, and wait a little: whether it has finished.

        Its error is raised now, and again on requests within ``remembered_s`` seconds.
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                error = self._cached_error(key)
                if error is not None:
                    raise error.with_traceback(None)
                self._release(place)
                job = self._start(_Job(key, work, remembered_s))
        if not job.done.wait(wait_s):
            return False
        if job.error is not None:
            raise job.error.with_traceback(None)
        return True

    @contextmanager
    def place(self) -> Iterator[Place]:
        """Reserve a place before storing something, so that ``run`` cannot be Busy afterwards."""
        reserved = Place()
        with self._lock:
            if self._full():
                raise Busy
            self._places += 1
        try:
            yield reserved
        finally:
            with self._lock:
                self._release(reserved)

    def has(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._jobs

    def _full(self) -> bool:
        taken = self._threads + len(self._waiting) + self._places
        return taken >= self._at_once + self._most

    def _release(self, place: Place | None) -> None:
        if place is not None and place.free:
            place.free = False
            self._places -= 1

    def _start(self, job: _Job) -> _Job:
        if self._full():
            raise Busy
        if self._threads < self._at_once:
            threading.Thread(target=self._serve, args=(job,), daemon=True).start()
            self._threads += 1
        else:
            self._waiting.append(job)
        self._jobs[job.key] = job
        return job

    def _cached_error(self, key: Hashable) -> KaratError | None:
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
        except KaratError as expected:
            LOG.info("computing %s: %s", job.key, str(expected).replace("\n  ", "; "))
            error = expected
        except BaseException:
            LOG.exception("computing %s failed", job.key)
            error = KaratError("this is a bug in karat; see the server's log")
        if error is not None:
            # Drop its traceback: the frames keep tables in memory.
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
"""The job queue of this process."""


class Stored(Protocol[_T_co]):
    """Numbers that are stored under a key."""

    @property
    def opened(self) -> Workspace: ...
    @property
    def key(self) -> str: ...
    def kept(self) -> _T_co | None: ...
    def compute(self) -> object: ...


def stored_or_computed(kind: str, asked: Stored[_T_co], wait_s: float) -> _T_co | None:
    """The numbers, computed unless they are there; None if that takes longer than ``wait_s``."""
    found = asked.kept()
    job = kind, asked.opened.store.url, asked.key
    if found is None and COMPUTING.run(job, asked.compute, wait_s):
        found = asked.kept()
    return found


async def _turn() -> AsyncIterator[None]:
    yield


InTurn = Annotated[None, Depends(_turn, scope="function", max_concurrency=1)]
"""A parameter of routes with slow, memory-hungry work: one at a time; after the user and file."""
