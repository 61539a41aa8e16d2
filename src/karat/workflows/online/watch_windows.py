"""Windows of a log: which is compared, which were before it, and whether the log has all of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from karat.errors import UsageError
from karat.online.health import NIGHT
from karat.online.watch import LEAST_WINDOWS
from karat.online.windows import Window, earlier, latest
from karat.tables.days import EPOCH, day_number, day_text
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog
from karat.tables.zones import local_time

_YEARS = (1970, 9998)


def window_of(length: str, until: str | None, log: EventLog, now: int) -> tuple[Window, list[str]]:
    """The window that is asked for, and what is to be said of it.

    Args:
        length: As ``1d``, ``6h``.
        until: A day or an hour at which it ends; None: the latest that is over.
        log: What the store holds; if it was simulated, its end says what is over.
        now: Microseconds UTC.

    Raises:
        UsageError: no such length, day or hour.
    """
    if until is not None:
        day, hour = _moment(until)
        return latest(length, day, hour), []
    if log.simulated and log.last_us is not None:
        day, hour = local_hour(log.last_us, log)
        ends = (day, 24) if hour >= 24 - NIGHT else (day, hour)
        note = "users were simulated: the window is by the end of the log, and not by the clock"
        return latest(length, *ends), [note]
    return latest(length, *local_hour(now, log)), []


def _moment(text: str) -> tuple[int, int]:
    """Day and hour at which a window is to end: ``2026-11-20``, or ``2026-11-20 12:00``."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        found = None
    if found is None or found.tzinfo or found.minute or found.second or found.microsecond:
        raise UsageError(
            f"--until {text!r} is neither a day nor a whole hour",
            fix="--until 2026-11-20, or --until '2026-11-20 12:00'",
        )
    if not _YEARS[0] <= found.year <= _YEARS[1]:
        raise UsageError(
            f"--until {text!r} is not within the years {_YEARS[0]} to {_YEARS[1]}",
            fix="--until 2026-11-20, or --until '2026-11-20 12:00'",
        )
    whole = len(text.strip()) <= len("2026-11-20")
    return day_number(found), 24 if whole else found.hour


def local_hour(time_us: int, log: EventLog) -> tuple[int, int]:
    """Local day and hour of a time."""
    there = local_time(time_us, log.timezone)
    return day_number(there), there.hour


def _clock(time_us: int, log: EventLog) -> str:
    """A local time to the minute."""
    return f"{local_time(time_us, log.timezone):%Y-%m-%d %H:%M}"


def unhealthy(window: Window, log: EventLog) -> str:
    """That the log has nothing in a window, by where it ends; empty if it may have."""
    if log.last_us is None:
        return "the log holds no events"
    day, hour = local_hour(log.last_us, log)
    if (day, hour) >= (window.first_day, window.first_hour):
        return ""
    return (
        f"no events in {window.label}: the log ends at {_clock(log.last_us, log)}; is logging "
        f"broken, or the import? --until {day_text(day)} looks at what there is"
    )


def incomplete(window: Window, log: EventLog) -> str:
    """That the log ends within a window; empty if it does not."""
    assert log.last_us is not None
    day, hour = local_hour(log.last_us, log)
    quiet = NIGHT if window.whole_days else 1
    if (day, hour) >= (window.last_day, window.end_hour - quiet):
        return ""
    return f"{window.label} is not complete: the log ends at {_clock(log.last_us, log)}"


def open_notes(window: Window, log: EventLog) -> list[str]:
    """That a window is compared though the log ends within it."""
    open_ = incomplete(window, log)
    return [Note(f"{open_}; it is compared nevertheless", Concern.INPUT)] if open_ else []


def earlier_in(window: Window, days: int, log: EventLog) -> tuple[list[Window], list[Window]]:
    """Comparable windows that the log covers, and those before it begins."""
    assert log.first_us is not None
    day, hour = local_hour(log.first_us, log)
    quiet = NIGHT if window.whole_days else 1
    every = earlier(window, days)
    begun = [each for each in every if (day, hour) < (each.first_day, each.first_hour + quiet)]
    return begun, [each for each in every if each not in begun]


def too_few(window: Window, there: Sequence[Window], days: int, log: EventLog) -> str:
    """That too few earlier windows are there, and what would help."""
    assert log.first_day is not None
    more = LEAST_WINDOWS * (window.first_day - earlier(window, 366)[0].first_day)
    has = "1 is" if len(there) == 1 else f"{len(there)} are"
    said = (
        f"{LEAST_WINDOWS} earlier windows like {window.label} are needed, and {has} there "
        f"in {days} days of history"
    )
    if days < more:
        return f"{said}: --history {more}d asks for enough"
    first = day_text(log.first_day)
    return f"{said}: the log begins on {first}, and {more} days before the window are needed"


def ends_us(window: Window, log: EventLog) -> int:
    """When a window ends, in microseconds UTC."""
    midnight = datetime.combine(EPOCH, datetime.min.time())
    there = midnight + timedelta(days=window.last_day, hours=window.end_hour)
    return int(there.replace(tzinfo=ZoneInfo(log.timezone)).timestamp()) * 1_000_000
