"""The event log of the workspace, and cached answers to questions about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from karat.errors import InputError, UsageError
from karat.store.events.log import MANIFEST, NoEvents, read_event_log
from karat.tables.days import day_number, day_text
from karat.tables.online.events import EventLog
from karat.web.framework.jobs import Busy, JobQueue
from karat.web.framework.state import AppState
from karat.workflows.workspace.artifacts import key_of

ONLINE = JobQueue(at_once=1)
"""Computations on logs in this process: one at a time, as each may take much memory."""
UNASKED = JobQueue(at_once=1)
"""Computations in advance, in a queue of their own so that no request waits for them."""
WAIT_S, LONGEST_S = 1.0, 10.0
"""Longest wait of a page for its numbers, and of a program that reads it."""
USUAL = 28
"""Default length of the period, in days: whole weeks."""
ENDLESS_S = 1800.0
"""Longest wait of the API for a computation."""
_LOOK_S = 0.2
_VERSION = 1  # of the computations, besides those of their metrics and rules
Question = Mapping[str, Any]
_T = TypeVar("_T")


class NotYet(HTTPException):
    """The numbers that a program requested are still being computed."""

    def __init__(self) -> None:
        super().__init__(503, "the numbers are being computed: retry soon", {"retry-after": "2"})


@dataclass(frozen=True)
class NoLog:
    """Why there is no log."""

    what: str
    fix: str | None
    none: bool


@dataclass(frozen=True)
class Days:
    """A period.

    Attributes:
        first: First day, in days since 1970-01-01.
    """

    first: int
    last: int
    asked: bool = False

    @property
    def count(self) -> int:
        """Number of days."""
        return self.last - self.first + 1

    @property
    def period(self) -> tuple[str, str]:
        """First and last day as ``2026-11-01``."""
        return day_text(self.first), day_text(self.last)

    @property
    def said(self) -> dict[str, str]:
        """As query parameters."""
        return dict(zip(("from", "to"), self.period, strict=True))


@dataclass(frozen=True)
class DayRange:
    """A period in an address; empty for the default."""

    first: str
    last: str

    @property
    def typed(self) -> tuple[str, str]:
        """First and last day, unparsed."""
        return self.first, self.last

    def within(self, log: EventLog) -> Days:
        """The period within a log."""
        start, end = log.first_day or 0, log.last_day or 0
        last = end if not self.last else day_number(self.last)
        default = max(start, min(last, end) - USUAL + 1)
        first = default if not self.first else day_number(self.first)
        if first > end or last < start:
            raise UsageError(
                f"the period is outside the log, from {day_text(start)} to {day_text(end)}",
                fix="choose days in between",
            )
        if first > last:
            raise UsageError(
                f"{day_text(first)} is after {day_text(last)}", fix="give the earlier day first"
            )
        return Days(max(first, start), min(last, end), bool(self.first or self.last))


def _wanted(
    first: Annotated[
        str, Query(alias="from", max_length=40, description="The first day, as 2026-11-01.")
    ] = "",
    last: Annotated[
        str, Query(alias="to", max_length=40, description="The last day, inclusive.")
    ] = "",
) -> DayRange:
    return DayRange(first.strip(), last.strip())


ANY_DAYS = DayRange("", "")
"""The default period."""
TheDays = Annotated[DayRange, Depends(_wanted)]
"""A route parameter: the period."""


class NothingImported(InputError):
    """The workspace has no events yet."""


def log_of(site: AppState) -> EventLog | NoLog:
    """The log of the workspace, or why there is none."""
    try:
        return the_log(site)
    except InputError as error:
        return NoLog(error.what, error.fix, isinstance(error, NothingImported))


def the_log(site: AppState) -> EventLog:
    """The log of the workspace."""
    folder = site.workspace.workspace.events
    try:
        return read_event_log(folder)
    except InputError as error:
        if isinstance(error, NoEvents) or not (folder / MANIFEST).exists():
            raise NothingImported("no events were imported yet", fix=error.fix) from None
        raise _without_place(error) from None


def _without_place(error: InputError) -> InputError:
    """The same without the file: pages do not reveal paths of the server."""
    return InputError(error.what, fix=error.fix) if error.file is not None else error


def find_or_compute(
    request: Request, log: EventLog, question: Question, make: Callable[[], Any]
) -> Any | None:
    """The cached answer to a question; else it is computed in the background, with a short wait.

    A program (``format=json`` or ``csv``) waits longer.

    Args:
        request: The request.
        log: The log.
        question: Everything else that the answer depends on, as JSON: its kind (``what``, a word),
            metrics with their versions, slices, days, rules.
        make: Computes the answer, as JSON; not None.

    Returns:
        None while it is being computed.
    """
    program = is_program(request)
    site: AppState = request.app.state.site
    answer = _ask(site, log, question, make, LONGEST_S if program else WAIT_S)
    if answer is None and program:
        raise NotYet
    return answer


def start_computing(
    site: AppState, log: EventLog, question: Question, make: Callable[[], Any]
) -> Any | None:
    """The cached answer to a question; else start to compute it, without waiting."""
    with suppress(Busy):
        return _ask(site, log, question, make, 0.0, UNASKED)
    return None


async def awaited(
    site: AppState, log: EventLog, question: Question, make: Callable[[], Any]
) -> Any:
    """The answer to a question, awaited without blocking a thread."""
    until = time.monotonic() + ENDLESS_S
    # Polled: another process may compute it.
    while (answer := await run_in_threadpool(_ask, site, log, question, make, 0.0)) is None:
        if time.monotonic() > until:
            raise NotYet
        await asyncio.sleep(_LOOK_S)
    return answer


def _ask(
    site: AppState,
    log: EventLog,
    question: Question,
    make: Callable[[], Any],
    wait_s: float,
    queue: JobQueue = ONLINE,
) -> Any | None:
    kind, key = f"online-{question['what']}", key_of(_VERSION, log.version, question)
    artifacts = site.workspace.artifacts
    answer = artifacts.found(kind, key)
    if answer is not None:
        return answer
    job = str(log.folder), key
    if UNASKED.has(job):  # already started in advance
        queue = UNASKED
    try:
        if queue.run(job, lambda: artifacts.answer(kind, key, make), wait_s):
            return artifacts.found(kind, key)
    except InputError as error:
        raise _without_place(error) from None
    return None


class Lenient:
    """Parses parameters of a page: collects errors, but raises them for a program."""

    def __init__(self, request: Request) -> None:
        self.program = is_program(request)
        self.errors: list[UsageError] = []

    def take(self, parse: Callable[[], _T], default: _T) -> _T:
        """The parsed value; ``default`` if it is invalid."""
        try:
            return parse()
        except UsageError as error:
            if self.program:
                raise
            self.errors.append(error)
            return default

    @property
    def wrong(self) -> str | None:
        """The collected errors, in sentences; None without any."""
        return " ".join(map(error_text, self.errors)) or None


def is_program(request: Request) -> bool:
    """Whether the page is requested as CSV or JSON."""
    return request.query_params.get("format") in {"json", "csv"}


def error_text(error: InputError | UsageError) -> str:
    """An error and its fix, in sentences."""
    sentences = [error.what]
    if isinstance(error, UsageError) and error.nearest:
        sentences.append(f"did you mean {' or '.join(error.nearest)}?")
    sentences += [f"fix: {error.fix}"] if error.fix else []
    return " ".join(
        f"{each[:1].upper()}{each[1:]}{'' if each[-1:] in '.!?' else '.'}" for each in sentences
    )
