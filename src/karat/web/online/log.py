"""The log that the pages of online metrics are of: found, asked about one thing at a time, kept."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from karat.errors import InputError, UsageError, on_page
from karat.store.events.log import MANIFEST, NoEvents, read_event_log
from karat.tables.days import day_number, day_text
from karat.tables.online.events import EventLog
from karat.web.framework.jobs import Busy, JobQueue
from karat.web.framework.state import AppState
from karat.workflows.online import stored_results

ONLINE = JobQueue(at_once=1)
"""What is computed of logs in this process: one thing at a time, as each may take much memory."""
UNASKED = JobQueue(at_once=1)
"""What nobody waits for: beside the former, so that it holds nobody up."""
WAIT_S, LONGEST_S = 1.0, 10.0
"""How long a page waits for its numbers before it says so; how long for a program that reads it."""
USUAL = 28
"""Days that are shown unless somebody asks: whole weeks."""
ENDLESS_S = 1800.0
"""How long the API waits for what it computes."""
_LOOK_S = 0.2
Question = Mapping[str, Any]
_T = TypeVar("_T")


class NotYet(HTTPException):
    """A program asked for numbers that are still being computed."""

    def __init__(self) -> None:
        super().__init__(
            503, "the numbers are being computed: look again in a moment", {"retry-after": "2"}
        )


@dataclass(frozen=True)
class Lacking:
    """Why there is nothing to show.

    Attributes:
        what: In words.
        fix: The command, or what else to do; None if nothing is known to help.
        none: Whether it is only that nothing was imported yet.
    """

    what: str
    fix: str | None
    none: bool


@dataclass(frozen=True)
class Days:
    """The days that are looked at.

    Attributes:
        first: The first, in days since 1970-01-01.
        last: The last, itself included.
        asked: Whether the address names them.
    """

    first: int
    last: int
    asked: bool = False

    @property
    def count(self) -> int:
        """How many they are."""
        return self.last - self.first + 1

    @property
    def period(self) -> tuple[str, str]:
        """The first and the last as ``2026-11-01``."""
        return day_text(self.first), day_text(self.last)

    @property
    def said(self) -> dict[str, str]:
        """As an address says them."""
        return dict(zip(("from", "to"), self.period, strict=True))


@dataclass(frozen=True)
class Wanted:
    """The days that an address asks for, as it says them; empty where it does not."""

    first: str
    last: str

    @property
    def typed(self) -> tuple[str, str]:
        """Both, as they were typed."""
        return self.first, self.last

    def within(self, log: EventLog) -> Days:
        """The days of a log that are meant.

        Raises:
            UsageError: one is no day, the last stands before the first, or the log has none of
                them.
        """
        begin, end = log.first_day or 0, log.last_day or 0
        last = end if not self.last else day_number(self.last)
        usual = max(begin, min(last, end) - USUAL + 1)
        first = usual if not self.first else day_number(self.first)
        if first > end or last < begin:
            raise UsageError(
                f"the log has no such day: it is from {day_text(begin)} to {day_text(end)}",
                fix="name days in between",
            )
        if first > last:
            raise UsageError(
                f"{day_text(first)} is after {day_text(last)}", fix="name the earlier day first"
            )
        return Days(max(first, begin), min(last, end), bool(self.first or self.last))


def _wanted(
    first: Annotated[
        str, Query(alias="from", max_length=40, description="The first day, as 2026-11-01.")
    ] = "",
    last: Annotated[
        str, Query(alias="to", max_length=40, description="The last day, itself included.")
    ] = "",
) -> Wanted:
    return Wanted(first.strip(), last.strip())


ANY_DAYS = Wanted("", "")
"""The days that are shown unless somebody asks."""
TheDays = Annotated[Wanted, Depends(_wanted)]
"""A parameter of a route: the days it is about."""


class NothingImported(InputError):
    """The workspace has no events yet."""


def log_of(site: AppState) -> EventLog | Lacking:
    """The log of the workspace, or why there is none."""
    try:
        return the_log(site)
    except InputError as error:
        return Lacking(error.what, error.fix, isinstance(error, NothingImported))


def the_log(site: AppState) -> EventLog:
    """The log of the workspace.

    Raises:
        NothingImported: there is none.
        InputError: it is damaged.
    """
    folder = site.workspace.workspace.events
    try:
        return read_event_log(folder)
    except InputError as error:
        if isinstance(error, NoEvents) or not (folder / MANIFEST).exists():
            raise NothingImported("no events were imported yet", fix=error.fix) from None
        raise _without_place(error) from None


def _without_place(error: InputError) -> InputError:
    """The same; where files of the log lie on the server is no business of who looks."""
    return InputError(error.what, fix=error.fix) if error.file is not None else error


def looked(
    request: Request, log: EventLog, question: Question, make: Callable[[], Any]
) -> Any | None:
    """What is kept as the answer to a question; else it is computed beside, waited for a little.

    Args:
        request: What asks; a program (``format=json`` or ``csv``) waits for longer.
        log: The log.
        question: As ``kept.find`` wants it.
        make: Computes the answer, as JSON can hold it.

    Returns:
        None while it is being computed.

    Raises:
        NotYet: so it is for a program.
        KaratError: it cannot be computed.
        Busy: too much is waiting to be computed.
    """
    program = is_program(request)
    found = _ask(log, question, make, LONGEST_S if program else WAIT_S)
    if found is None and program:
        raise NotYet
    return found


def begun(log: EventLog, question: Question, make: Callable[[], Any]) -> Any | None:
    """What is kept as the answer to a question that nobody asked; else its computing is begun.

    Raises:
        KaratError: it cannot be computed.
    """
    with suppress(Busy):
        return _ask(log, question, make, 0.0, UNASKED)
    return None


async def awaited(log: EventLog, question: Question, make: Callable[[], Any]) -> Any:
    """The answer to a question, waited for without a thread.

    Raises:
        NotYet: it takes longer than ``ENDLESS_S``.
        KaratError: as of ``looked``; Busy likewise.
    """
    until = time.monotonic() + ENDLESS_S
    # No event tells: another process may compute it.
    while (found := await run_in_threadpool(_ask, log, question, make, 0.0)) is None:
        if time.monotonic() > until:
            raise NotYet
        await asyncio.sleep(_LOOK_S)
    return found


def _ask(
    log: EventLog,
    question: Question,
    make: Callable[[], Any],
    wait_s: float,
    computing: JobQueue = ONLINE,
) -> Any | None:
    found = stored_results.find(log, question)
    if found is not None:
        return found
    key = "online", str(log.folder), log.version, json.dumps(question, sort_keys=True)
    if UNASKED.has(key):  # begun for nobody, and now for somebody
        computing = UNASKED
    try:
        if computing.run(key, lambda: stored_results.answered(log, question, make), wait_s):
            return stored_results.find(log, question)
    except InputError as error:
        raise _without_place(error) from None
    return None


class Lenient:
    """What the form of a page asks: what it cannot mean is left out and noted, not an error.

    Args:
        request: What asks; for a program (``format=json`` or ``csv``) it is an error.
    """

    def __init__(self, request: Request) -> None:
        self.program = is_program(request)
        self.errors: list[UsageError] = []

    def take(self, meant: Callable[[], _T], otherwise: _T) -> _T:
        """What is meant; something else where that cannot be.

        Raises:
            UsageError: so it is, for a program.
        """
        try:
            return meant()
        except UsageError as error:
            if self.program:
                raise
            self.errors.append(error)
            return otherwise

    @property
    def wrong(self) -> str | None:
        """What it cannot mean, in sentences; None if it means all it says."""
        return " ".join(map(trouble, self.errors)) or None


def is_program(request: Request) -> bool:
    """Whether a program reads a page, as CSV or JSON."""
    return request.query_params.get("format") in {"json", "csv"}


def trouble(error: InputError | UsageError) -> str:
    """Why a log has none of some numbers, and what helps, in sentences."""
    said = [error.what]
    if isinstance(error, UsageError) and error.nearest:
        said.append(f"did you mean {' or '.join(error.nearest)}?")
    said += [f"what helps: {on_page(error.fix)}"] if error.fix else []
    return " ".join(
        f"{each[:1].upper()}{each[1:]}{'' if each[-1:] in '.!?' else '.'}" for each in said
    )
