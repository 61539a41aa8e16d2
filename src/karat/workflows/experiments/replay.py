"""Replay a query log against two engines, at the log's pace or at a load, into a shadow log."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import polars as pl

from karat.clients.search_function import CallSettings, Reply, ask
from karat.engines.search.engine import fingerprint
from karat.errors import InputError, UsageError
from karat.formats import read_queries
from karat.formats.events.times import times
from karat.formats.own.shadow_log import ShadowLog
from karat.formats.tables.query_log import read_query_log
from karat.reports.phrases.numbers import counted
from karat.tables.column_names import plain
from karat.tables.engines import EngineConfig, EngineQuery
from karat.tables.experiments.shadow import COLD, LATE_US, Side
from karat.workflows.engines.live import LiveEngine, about_engine, manner_for, open_live, reached
from karat.workflows.engines.search import shown_progress
from karat.workflows.experiments.shadowing import answer_of

_TIMES = ("timestamp", "time", "at", "date", "datetime", "searched_at", "time_us", "at_us", "ts")
_IDS = ("query_id", "qid", "id", "topic_id")
_SOON = 0.05  # seconds that a worker may wait before it looks whether the replay is stopped


@dataclass(frozen=True)
class Pace:
    """When requests are sent."""

    speed: float = 1.0  # times as fast as the log's own times
    rate: float | None = None  # a second, instead of the log's times
    load: Sequence[float] = ()  # levels of requests a second, each for `seconds`
    seconds: float = 30.0
    warm_up: int = 0  # first requests, whose phase is cold


@dataclass(frozen=True)
class Planned:
    """A request to send."""

    id: str
    query: str
    query_id: str | None
    after: float  # seconds since the start
    phase: str
    filters: dict[str, Any]


@dataclass(frozen=True)
class Replayed:
    """What a replay did."""

    path: Path
    planned: int
    asked: int  # requests of this time
    before: int  # of an earlier, interrupted time
    late: int  # requests of this time sent more than 50 ms late


def replay(
    configs: Sequence[EngineConfig],
    queries: str | Path,
    out: str | Path,
    pace: Pace,
    *,
    again: bool = True,
    depth: int = 10,
    timeout: float | None = None,
    limit: int | None = None,
    workers: int = 64,
    seed: int = 0,
    shown: bool = False,
) -> Replayed:
    """Send a log's queries to baseline and candidate at their times, and log the answers.

    Every request is sent at its time, whether or not earlier ones are answered, as long as one of
    the workers is free. A worker asks baseline, candidate and (``again``) the baseline a second
    time, one after the other in random order. An interrupted replay goes on where it stopped.

    Args:
        configs: Declarations of baseline and candidate.
        queries: The query log, or a file of queries.
        out: The shadow log.
        pace: When requests are sent.
        again: Ask the baseline twice, to know its noise.
        depth: Documents to ask for.
        timeout: Seconds for each side; that of each engine if None.
        limit: Number of requests; all if None.
        workers: Requests that wait for answers at once.
        seed: Of the order of sides, and of the order of a log without times.
        shown: Show progress in a terminal.

    Raises:
        UsageError: a log without times and no rate, or a number out of range.
        InputError: a file that cannot be read or written, or a log of something else.
        KaratError: an engine cannot be reached.
    """
    planned = _planned(queries, pace, limit, seed)
    if timeout is not None:
        configs = [replace(config, timeout=timeout) for config in configs]
    with ExitStack() as stack:
        engines = [stack.enter_context(open_live(config, depth=depth)) for config in configs]
        about = [
            about_engine(config, reached(engine, f"karat engine check {config.name}"))
            for config, engine in zip(configs, engines, strict=True)
        ]
        for engine in engines:
            engine.prepare([*dict.fromkeys(each.query for each in planned)])
        settings = {
            "again": again, "depth": depth, "seed": seed, "timeout_s": timeout, "speed": pace.speed,
            "rate": pace.rate, "load": list(pace.load), "warm_up": pace.warm_up,
        }  # fmt: skip
        header = {
            "engines": {"baseline": configs[0].name, "candidate": configs[1].name},
            "about": {"baseline": about[0], "candidate": about[1]},
            "settings": settings,
            "requests": len(planned),
            "digest": fingerprint(about, settings, [(p.query, p.after, p.phase) for p in planned]),
        }
        log = stack.enter_context(ShadowLog(out, header, resume=True))
        rest = [each for each in planned if each.id not in log.done]
        sides: list[tuple[Side, LiveEngine]] = [
            ("baseline", engines[0]), ("candidate", engines[1]),
        ]  # fmt: skip
        sender = _Sender(sides + ([("again", engines[0])] if again else []), log, seed)
        with shown_progress(len(planned), shown=shown) as tick:
            late = sender.send(rest, workers, lambda done: tick(done + len(log.done)))
    return Replayed(Path(out), len(planned), len(rest), len(planned) - len(rest), late)


def _planned(queries: str | Path, pace: Pace, limit: int | None, seed: int) -> list[Planned]:
    """The requests, in the order of their times."""
    _check(pace, limit)
    rows = _read(queries).filter(pl.col("text").str.strip_chars() != "")
    if not rows.height:
        raise InputError("no query has a text", file=str(queries))
    when = _times(rows)
    timed = when is not None and pace.rate is None and not pace.load
    if when is not None and timed:
        known = rows.with_columns(when=when).filter(pl.col("when").is_not_null())
        rows = known.sort("when", maintain_order=True)
    elif pace.rate is None and not pace.load:
        raise UsageError(
            "the log has no times of its queries",
            fix="--rate 10: so many requests a second; or a column timestamp",
        )
    order = np.repeat(np.arange(rows.height), rows["count"].to_numpy()) if not timed else None
    if order is not None:
        if when is None:  # queries with counts: as in traffic, in any order
            np.random.default_rng(seed).shuffle(order)
        rows = rows[_cut(order, pace, limit)]
    elif limit is not None:
        rows = rows.head(limit)
    return [*_requests(rows, pace)]


def _read(path: str | Path) -> pl.DataFrame:
    """A query log, or else the queries of a set, each once."""
    try:
        return read_query_log(path)
    except InputError as error:
        try:
            frame = read_queries(path).frame
        except InputError:
            raise error from None
        if "text" not in frame.columns:
            raise
        return frame.with_columns(count=pl.lit(1, pl.Int64))


def _cut(order: np.ndarray, pace: Pace, limit: int | None) -> np.ndarray:
    """As many requests as the load needs, or the limit allows."""
    if pace.load:
        needed = sum(round(level * pace.seconds) for level in pace.load) + pace.warm_up
        order = np.resize(order, needed)
    return order if limit is None else order[:limit]


def _requests(rows: pl.DataFrame, pace: Pace) -> Iterator[Planned]:
    names = [name for name in rows.columns if plain(name) in _IDS]
    own = {"text", "count", "when", *names}
    start = rows["when"][0] if "when" in rows.columns else 0
    moments = _moments(pace)
    for at, row in enumerate(rows.iter_rows(named=True)):
        if "when" in rows.columns:
            after, phase = (row["when"] - start) / 1e6 / pace.speed, "warm"
        else:
            after, phase = next(moments)
        given = row[names[0]] if names else None
        filters = {key: value for key, value in row.items() if key not in own}
        yield Planned(
            str(at + 1), row["text"], None if given is None else str(given), after,
            COLD if at < pace.warm_up else phase, filters,
        )  # fmt: skip


def _moments(pace: Pace) -> Iterator[tuple[float, str]]:
    """Seconds since the start, and phase, of requests without times of their own."""
    if not pace.load:
        rate = pace.rate or 1.0
        at = 0
        while True:
            yield at / rate, "warm"
            at += 1
    begin = 0.0
    for at in range(pace.warm_up):
        yield at / pace.load[0], COLD
        begin = (at + 1) / pace.load[0]
    for level in pace.load:
        for at in range(round(level * pace.seconds)):
            yield begin + at / level, f"load {level:g}"
        begin += pace.seconds


def _times(rows: pl.DataFrame) -> pl.Series | None:
    """The times of a log in microseconds, null where unreadable; None if it has none."""
    names = [name for name in rows.columns if plain(name) in _TIMES]
    if not names:
        return None
    found = times(rows[names[0]], "UTC")["time_us"]
    return found if found.count() else None


def _check(pace: Pace, limit: int | None) -> None:
    numbers = {"speed": pace.speed, "rate": pace.rate, "seconds": pace.seconds, "limit": limit}
    numbers |= {"load": min(pace.load, default=1.0)}
    for name, value in numbers.items():
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{name} is {value:g}, not above 0", fix=f"--{name} 10")
    if pace.rate is not None and pace.load:
        raise UsageError("--rate and --load exclude each other", fix="leave out one of them")


class _Sender:
    """Sends requests at their times from a number of threads."""

    def __init__(self, sides: Sequence[tuple[Side, LiveEngine]], log: ShadowLog, seed: int) -> None:
        self._sides, self._log, self._seed = sides, log, seed
        self._stopped = threading.Event()
        # Calls that timed out and still run, by side
        self._overdue: dict[Side, list[Future[Any]]] = {side: [] for side, _ in sides}
        self._errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._done = self._late = 0

    def send(self, requests: Sequence[Planned], workers: int, watch: Callable[[int], None]) -> int:
        """Send all; the number of those sent late."""
        if not requests:
            return 0
        queue: SimpleQueue[tuple[Planned, float] | None] = SimpleQueue()
        threads = [
            threading.Thread(target=self._work, args=(queue,), daemon=True)
            for _ in range(min(workers, len(requests)))
        ]
        for thread in threads:
            thread.start()
        with self._stopping():
            start = time.monotonic() - requests[0].after
            for each in requests:
                due = start + each.after
                while (wait := due - time.monotonic()) > 0 and not self._errors:
                    time.sleep(min(wait, _SOON))
                    watch(self._done)
                if self._errors:
                    break
                queue.put((each, due))
            for _ in threads:
                queue.put(None)
            for thread in threads:
                while thread.is_alive():
                    thread.join(_SOON)
                    watch(self._done)
        if self._errors:
            raise self._errors[0]
        return self._late

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._stopped.set()

    def _work(self, queue: SimpleQueue[tuple[Planned, float] | None]) -> None:
        try:
            while (given := queue.get()) is not None and not self._stopped.is_set():
                request, due = given
                self._log.append(self._line(request, due))
                with self._lock:
                    self._done += 1
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            self._errors.append(InputError(what, file=str(self._log.path)))
        except BaseException as error:  # noqa: BLE001 - raised where requests are sent
            self._errors.append(error)

    def _line(self, request: Planned, due: float) -> dict[str, Any]:
        late = max(0, round((time.monotonic() - due) * 1e6))
        at = time.time_ns() // 1000
        order = random.Random(f"{self._seed} {request.id}").sample(  # noqa: S311 - an order
            range(len(self._sides)), len(self._sides)
        )
        found = {}
        query = EngineQuery(request.query, request.filters)
        for place in order:
            side, engine = self._sides[place]
            reply = self._asked(side, engine, query)
            found[side] = answer_of(reply.ranking, reply.latency_us, reply.error)
        if late > LATE_US:
            with self._lock:
                self._late += 1
        line: dict[str, Any] = {"id": request.id, "query": request.query}
        line |= {} if request.query_id is None else {"query_id": request.query_id}
        line |= {"at_us": at, "phase": request.phase, "late_us": late}
        ordered = {side: found[side] for side, _ in self._sides}
        return line | {"answers": ordered, "dropped": 0}

    def _asked(self, side: Side, engine: LiveEngine, query: EngineQuery) -> Reply:
        overdue = self._overdue[side]
        with self._lock:
            overdue[:] = [call for call in overdue if not call.done()]
        manner = CallSettings(timeout=manner_for(engine.config).timeout, overdue=overdue)
        return ask(engine.call, [query], manner)[0]


def replayed_note(found: Replayed) -> str:
    """What a replay did, in a line."""
    said = f"{counted(found.asked, 'request', 'requests')} sent to {found.path}"
    if found.before:
        said += f", after {found.before:,} before the replay was interrupted"
    return said
