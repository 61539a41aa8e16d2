"""The event log of the workspace, and cached answers to questions about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from karat.errors import InputError, UsageError
from karat.tables.online.events import EventLog
from karat.web.framework.call import Call
from karat.web.framework.jobs import Busy, JobQueue
from karat.web.framework.pages import Page
from karat.web.framework.progress import Job, Progress, last, queue_key, run
from karat.web.framework.state import AppState
from karat.workflows.offline.stages import Cancelled
from karat.workflows.online import log_requests
from karat.workflows.online.log_requests import (
    DayRange,
    Days,
    LogRequest,
    NothingImported,
    without_file,
)
from karat.workflows.online.slices import dimensions
from karat.workflows.workspace.artifacts import key_of

ONLINE = JobQueue(at_once=1)
"""Computations on logs in this process: one at a time, as each may take much memory."""
UNASKED = JobQueue(at_once=1)
"""Computations in advance, in a queue of their own so that no request waits for them."""
WAIT_S, LONGEST_S = 1.0, 10.0
"""Longest wait of a page for its numbers, and of a program that reads it."""
ENDLESS_S = 1800.0
"""Longest wait of the API for a computation."""
_LOOK_S = 0.2
_CANCELLED = "The computation was cancelled. To start it again, reload after a minute."
_VERSION = 1  # of the computations, besides those of their metrics and rules
_T = TypeVar("_T")
_L = TypeVar("_L", bound="LogPage")
Fields = dict[str, Any]
Shown = Callable[[Any], Mapping[str, Any] | None]


class NotYet(HTTPException):
    """The numbers that a program requested are still being computed."""

    def __init__(self) -> None:
        super().__init__(503, "the numbers are being computed: retry soon", {"retry-after": "2"})


@dataclass(frozen=True)
class NoLog:
    what: str
    fix: str | None
    none: bool


@dataclass(frozen=True, kw_only=True)
class LogPage(Page):
    """What all pages of online metrics have."""

    lacking: NoLog | None = None
    log: Mapping[str, Any] | None = None
    period: tuple[str, str] | None = None
    health: Sequence[str] = ()
    notes: Sequence[str] = ()
    computed: bool = False
    wrong: str | None = None
    job: Job | None = field(default=None, repr=False)  # what computes the numbers

    @property
    def unlisted(self) -> str:
        lacks = self.wrong if self.lacking is None else self.lacking.what
        return lacks or super().unlisted


def _wanted(
    first: Annotated[
        str, Query(alias="from", max_length=40, description="The first day, as 2026-11-01.")
    ] = "",
    last: Annotated[
        str, Query(alias="to", max_length=40, description="The last day, inclusive.")
    ] = "",
) -> DayRange:
    return DayRange(first.strip(), last.strip())


TheDays = Annotated[DayRange, Depends(_wanted)]
"""A route parameter: the period."""


def log_summary(log: EventLog) -> dict[str, Any]:
    first, last = Days(log.first_day or 0, log.last_day or 0).period
    return {
        "events": log.rows - log.bots,
        "bots": log.bots,
        "kinds": dict(log.kinds),
        "first": first,
        "last": last,
        "timezone": log.timezone,
        "arms": list(log.arms),
        "attributes": list(log.attributes),
        "simulated": log.simulated,
        "version": log.version,
    }


def find_or_compute(
    call: Call, log: EventLog, asked: LogRequest, *, program: bool | None = None
) -> Any | None:
    """The cached answer; else it is computed in the background: None after a short wait.

    A program (``format=json`` or ``csv``, unless ``program`` says) waits longer.
    """
    program = is_program(call) if program is None else program
    answer = _ask(call.request.app.state.site, log, asked, LONGEST_S if program else WAIT_S)
    if answer is None and program:
        raise NotYet
    return answer


def start_computing(
    site: AppState, log: EventLog, asked: LogRequest, wait_s: float = 0.0
) -> Any | None:
    """The cached answer; else start to compute it in advance, and wait that long for it."""
    with suppress(Busy):
        return _ask(site, log, asked, wait_s, UNASKED)
    return None


async def awaited(site: AppState, log: EventLog, asked: LogRequest) -> Any:
    """The answer, awaited without blocking a thread."""
    until = time.monotonic() + ENDLESS_S
    # Polled: another process may compute it.
    while (answer := await run_in_threadpool(_ask, site, log, asked, 0.0)) is None:
        if time.monotonic() > until:
            raise NotYet
        await asyncio.sleep(_LOOK_S)
    return answer


def _ask(
    site: AppState, log: EventLog, asked: LogRequest, wait_s: float, queue: JobQueue = ONLINE
) -> Any | None:
    artifacts, (kind, key) = site.workspace.artifacts, _key(log, asked)
    answer = artifacts.found(kind, key)
    if answer is not None:
        return answer
    job = _job(key)
    if UNASKED.has(queue_key(site, job)):  # already started in advance
        queue = UNASKED

    def work(progress: Progress) -> None:
        artifacts.answer(kind, key, lambda: asked.compute(log, progress))

    try:
        if run(site, job, "Numbers of the event log", work, wait_s, queue=queue):
            return artifacts.found(kind, key)
    except InputError as error:
        raise without_file(error) from None
    return None


def _key(log: EventLog, asked: LogRequest) -> tuple[str, str]:
    """The kind and key of the artifact of an answer."""
    question = asked.question(log)
    return f"online-{question['what']}", key_of(_VERSION, log.version, question)


def _job(key: str) -> str:
    return f"online-{key}"


class Lenient:
    """Parses parameters of a page: collects errors, but raises them for a program."""

    def __init__(self, call: Call) -> None:
        self.program = is_program(call)
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

    def period(self, days: DayRange, log: EventLog) -> Days:
        return self.take(lambda: days.within(log), DayRange().within(log))

    def typed(self, days: DayRange, period: Days) -> tuple[str, str]:
        """The period in use; as typed, if anything is invalid."""
        as_typed = bool(self.errors) and bool(days.first or days.last)
        return (days.first, days.last) if as_typed else period.period

    @property
    def wrong(self) -> str | None:
        """The collected errors, in sentences; None without any."""
        return " ".join(map(error_text, self.errors)) or None


def is_program(call: Call) -> bool:
    return call.request.query_params.get("format") in {"json", "csv"}


def error_text(error: InputError | UsageError) -> str:
    sentences = [error.what]
    if isinstance(error, UsageError) and error.nearest:
        sentences.append(f"did you mean {' or '.join(error.nearest)}?")
    sentences += [f"fix: {error.fix}"] if error.fix else []
    return " ".join(
        f"{each[:1].upper()}{each[1:]}{'' if each[-1:] in '.!?' else '.'}" for each in sentences
    )


def log_page(
    call: Call,
    kind: type[_L],
    title: str,
    prepare: Callable[[EventLog, Lenient], tuple[Fields, LogRequest | None, Shown]],
    **common: Any,
) -> tuple[_L, int]:
    """A page about the log, and its status.

    ``prepare`` returns fields of the page, what it asks the log (None for nothing), and what gives
    the fields that need the answer; these are None while something else is being computed.
    """
    try:
        log = log_requests.log_of(call.site.workspace)
    except InputError as error:
        lacking = NoLog(error.what, error.fix, isinstance(error, NothingImported))
        return kind(title=title, lacking=lacking, **common), 200
    lenient, answer = Lenient(call), None
    values, asked, shown = prepare(log, lenient)
    values = {"title": title, "log": log_summary(log), **common, **values}
    if asked is not None and not lenient.errors:
        try:
            answer = lenient.take(lambda: find_or_compute(call, log, asked), None)
            values["job"] = None if answer else last(call.site, _job(_key(log, asked)[1]))
        except InputError as error:
            return kind(**values, wrong=error_text(error)), 200
        except Cancelled:
            if lenient.program:
                raise
            return kind(**values, wrong=_CANCELLED), 200
    if lenient.errors:
        return kind(**{**values, "wrong": lenient.wrong}), 400
    more = None if answer is None else shown(answer)
    return kind(**values if more is None else {**values, "computed": True, **more}), 200


def slice_choices(site: AppState, log: EventLog, by: str) -> list[tuple[str, str, bool]]:
    """The dimensions of a form: name, label, and whether it is chosen."""
    known = dimensions(site.workspace, log)
    return [(each.name, each.label, each.name == by) for each in known]
