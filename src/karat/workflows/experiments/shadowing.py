"""A candidate asked next to the search that users see, in the background, into a shadow log."""

from __future__ import annotations

import functools
import inspect
import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, Self, TypeVar, cast

from karat.clients.search_function import CallSettings, Reply, ask
from karat.engines.search.engine import fingerprint
from karat.errors import UsageError
from karat.formats.own.shadow_log import ShadowLog
from karat.tables.about import flat
from karat.tables.returned import Ranked, Unusable, ranked

Function = TypeVar("Function", bound=Callable[..., Any])
_DEEPEST = 100  # documents of the served answer that are recorded


@dataclass(frozen=True)
class _Served:
    """A request that was answered, and the answer."""

    query: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    at_us: int
    latency_us: int
    ranking: Ranked | None  # None if the search raised an error
    error: str | None


class Shadow:
    """Ask a candidate next to a search function, and log both answers.

    ``@shadow.beside`` decorates a plain or async search function: it returns its answer, or raises
    its error, unchanged; the candidate is asked in a background thread afterwards. Whatever the
    candidate does, the answer is neither changed nor delayed: when the queue is full, the request
    is dropped and counted. ``karat shadow compare LOG`` compares the answers.

    Args:
        candidate: The search function to ask, plain or async, with the same arguments. It returns
            ids, ``(id, score)`` pairs or dicts with an id, best first, as the decorated one does.
        log: The file to append to. Several processes may share it.
        timeout: Seconds after which the candidate counts as failed.
        queue: Number of requests that may wait for the candidate.
        share: Share of the requests to ask the candidate, from 0 to 1; the others are not counted.
        workers: Number of requests that the candidate is asked at once.
        about: What the two are: ``{"baseline": {…}, "candidate": {…}}``, each with keys such as
            ``engine``, ``index``, ``commit`` or ``parameters``. A log is of one such pair.

    Raises:
        UsageError: a number out of range, or an unknown key of ``about``.
        InputError: the log cannot be written, or is of something else.
    """

    def __init__(
        self,
        candidate: Callable[..., Any],
        log: str | Path,
        *,
        timeout: float = 1.0,
        queue: int = 100,
        share: float = 1.0,
        workers: int = 2,
        about: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        _check(timeout, queue, share, workers, about)
        self._candidate, self._timeout, self._share = candidate, timeout, share
        self._size, self._workers = queue, workers
        sides = {side: flat(values, "about") for side, values in (about or {}).items()}
        self._log = ShadowLog(log, {"about": sides, "digest": fingerprint(sides)})
        self._lock = threading.Lock()
        self._overdue: list[Future[Any]] = []
        self._closed = False
        self._pid = -1
        self._begin()

    def _begin(self) -> None:
        """Start anew, also in a forked process, which has no threads."""
        self._pid = os.getpid()
        self._process, self._number, self._dropped = secrets.token_hex(4), 0, 0
        self._queue: Queue[_Served | None] = Queue(self._size)
        self._threads: list[threading.Thread] = []

    @property
    def dropped(self) -> int:
        """Requests that the candidate was not asked, in this process."""
        return self._dropped

    def beside(self, search: Function) -> Function:
        """Decorate a search function; the candidate gets the same arguments."""
        called = search if inspect.isroutine(search) else type(search).__call__
        if inspect.iscoroutinefunction(called):

            @functools.wraps(search)
            async def awaited(*arguments: Any, **keywords: Any) -> Any:
                with self._recording(arguments, keywords) as recorded:
                    return recorded(await search(*arguments, **keywords))

            return cast("Function", awaited)

        @functools.wraps(search)
        def plain(*arguments: Any, **keywords: Any) -> Any:
            with self._recording(arguments, keywords) as recorded:
                return recorded(search(*arguments, **keywords))

        return cast("Function", plain)

    @contextmanager
    def _recording(
        self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Iterator[Callable[[Any], Any]]:
        """Offer the answer of a search, or its error, to the candidate, if it is chosen."""
        if not self._chosen():
            yield lambda answer: answer
            return
        at, began = time.time_ns(), time.perf_counter_ns()

        def recorded(answer: Any) -> Any:
            self._offer(arguments, keywords, at, began, answer)
            return answer

        try:
            yield recorded
        except Exception as error:
            recorded(error)
            raise

    def _chosen(self) -> bool:
        if self._closed or not self._share:
            return False
        return self._share >= 1 or random.random() < self._share  # noqa: S311 - a sample

    def _offer(
        self,
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        at: int,
        began: int,
        value: Any,
    ) -> None:
        """Queue a request; never raises and never waits."""
        took = max(1, (time.perf_counter_ns() - began) // 1000)
        try:
            if self._pid != os.getpid():
                self._lock = threading.Lock()
                self._log.after_fork()
                self._begin()
            ranking, error = None, None
            if isinstance(value, Exception):
                error = f"{type(value).__name__}: {value}"[:300]
            elif isinstance(value, list | tuple):
                # Now, as the application may change the list afterwards.
                ranking = ranked(value[:_DEEPEST])
            query = _query(arguments, keywords)
            if query is None or (ranking is None and error is None):
                raise Unusable("not a query, or not a list")
            served = _Served(query, arguments, keywords, at // 1000, took, ranking, error)
            self._queue.put_nowait(served)
            if len(self._threads) < self._workers:
                self._start()
        except (Full, Unusable):
            self._drop()
        except Exception:  # noqa: BLE001 - the answer matters more than its log
            self._drop()

    def _drop(self) -> None:
        with self._lock:
            self._dropped += 1

    def _start(self) -> None:
        with self._lock:
            if len(self._threads) < self._workers and not self._closed:
                thread = threading.Thread(target=self._work, name="karat shadow", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        queue = self._queue
        while (served := queue.get()) is not None:
            try:
                self._shadow(served)
            except Exception:  # noqa: BLE001 - such as a full disk
                self._drop()

    def _shadow(self, served: _Served) -> None:
        """Ask the candidate, and log both answers."""
        reply = self._asked(served)
        if reply.tries == 0:  # too many earlier calls are still running
            self._drop()
            return
        with self._lock:
            self._number += 1
            number = self._number
        baseline = answer_of(served.ranking, served.latency_us, served.error)
        candidate = answer_of(reply.ranking, reply.latency_us, reply.error)
        self._log.append(
            {
                "id": f"{self._process}-{number}",
                "query": served.query,
                "at_us": served.at_us,
                "phase": "warm",
                "answers": {"baseline": baseline, "candidate": candidate},
                "dropped": self._dropped,
            }
        )

    def _asked(self, served: _Served) -> Reply:
        with self._lock:
            self._overdue[:] = [call for call in self._overdue if not call.done()]
        manner = CallSettings(timeout=self._timeout, overdue=self._overdue)
        candidate = self._candidate
        called = candidate if inspect.isroutine(candidate) else type(candidate).__call__
        if inspect.iscoroutinefunction(called):

            async def awaited(given: _Served) -> Any:
                return await candidate(*given.arguments, **given.keywords)

            return ask(awaited, [served], manner)[0]
        return ask(lambda given: candidate(*given.arguments, **given.keywords), [served], manner)[0]

    def close(self, wait: float = 5.0) -> None:
        """Ask no more; wait this many seconds for the requests in the queue, and drop the rest."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            threads = list(self._threads) if self._pid == os.getpid() else []
        until = time.monotonic() + wait
        for _ in threads:
            with suppress(Full):
                self._queue.put(None, timeout=max(0.0, until - time.monotonic()))
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        with suppress(Empty):
            while True:
                if self._queue.get_nowait() is not None:
                    self._drop()
        with suppress(OSError, ValueError):
            self._log.append({"id": f"{self._process}-end", "dropped": self._dropped})
        if not any(thread.is_alive() for thread in threads):
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _check(
    timeout: float,
    queue: int,
    share: float,
    workers: int,
    about: Mapping[str, Mapping[str, Any]] | None,
) -> None:
    if not 0 < timeout <= threading.TIMEOUT_MAX:
        raise UsageError(f"timeout is {timeout!r}, not seconds above 0", fix="timeout=1.0")
    for name, value in (("queue", queue), ("workers", workers)):
        if value < 1:
            raise UsageError(f"{name} is {value!r}, not 1 or more", fix=f"{name}=2")
    if not 0 <= share <= 1:
        raise UsageError(f"share is {share!r}, not a share from 0 to 1", fix="share=0.1")
    unknown = [key for key in about or {} if key not in ("baseline", "candidate")]
    if unknown:
        raise UsageError(
            f"unknown side {unknown[0]!r} of about",
            fix='about={"baseline": {"engine": "a"}, "candidate": {"engine": "b"}}',
        )


def _query(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str | None:
    """The text of the query: the first argument that is text."""
    return next((each for each in (*arguments, *keywords.values()) if isinstance(each, str)), None)


def answer_of(ranking: Ranked | None, latency_us: int | None, error: str | None) -> dict[str, Any]:
    """An answer, as the log has it."""
    if ranking is None:
        return {"state": "failed", "latency_us": latency_us, "error": error}
    answer: dict[str, Any] = {
        "state": "ok" if ranking.doc_ids else "empty",
        "latency_us": latency_us,
        "doc_ids": ranking.doc_ids,
    }
    return answer | ({"scores": ranking.scores} if ranking.scored else {})
