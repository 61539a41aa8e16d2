"""Windows of a log: the one to compare, earlier ones, and whether they are complete."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from karat.errors import UsageError
from karat.online.health import NIGHT
from karat.online.watch import LEAST_WINDOWS, Window, earlier, latest
from karat.tables.days import EPOCH, day_number, day_text, local_time, time_text
from karat.tables.notes import Concern, Note
from karat.tables.online.events import EventLog

_YEARS = (1970, 9998)


def window_of(length: str, until: str | None, log: EventLog, now: int) -> tuple[Window, list[str]]:
    """The window to compare, and notes."""
    if until is not None:
        day, hour = _moment(until)
        return latest(length, day, hour), []
    if log.simulated and log.last_us is not None:
        day, hour = local_hour(log.last_us, log)
        ends = (day, 24) if hour >= 24 - NIGHT else (day, hour)
        note = "users are simulated: the window ends with the log, not now"
        return latest(length, *ends), [note]
    return latest(length, *local_hour(now, log)), []


def _moment(text: str) -> tuple[int, int]:
    """Day and hour at which a window ends: ``2026-11-20``, or ``2026-11-20 12:00``."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo or moment.minute or moment.second or moment.microsecond:
        raise UsageError(
            f"--until {text!r} is neither a day nor a whole hour",
            fix="--until 2026-11-20, or --until '2026-11-20 12:00'",
        )
    if not _YEARS[0] <= moment.year <= _YEARS[1]:
        raise UsageError(
            f"--until {text!r} is not within the years {_YEARS[0]} to {_YEARS[1]}",
            fix="--until 2026-11-20, or --until '2026-11-20 12:00'",
        )
    is_day = len(text.strip()) <= len("2026-11-20")
    return day_number(moment), 24 if is_day else moment.hour


def local_hour(time_us: int, log: EventLog) -> tuple[int, int]:
    local = local_time(time_us, log.timezone)
    return day_number(local), local.hour


def unhealthy(window: Window, log: EventLog) -> str:
    """A message if the log ends before a window; else empty."""
    if log.last_us is None:
        return "the log holds no events"
    day, hour = local_hour(log.last_us, log)
    if (day, hour) >= (window.first_day, window.first_hour):
        return ""
    ends = time_text(log.last_us, log.timezone)
    return (
        f"no events in {window.label}: the log ends at {ends}; is logging broken, or the import? "
        f"--until {day_text(day)} checks what there is"
    )


def incomplete(window: Window, log: EventLog) -> str:
    """A message if the log ends within a window; else empty."""
    assert log.last_us is not None
    day, hour = local_hour(log.last_us, log)
    quiet = NIGHT if window.whole_days else 1
    if (day, hour) >= (window.last_day, window.end_hour - quiet):
        return ""
    return f"{window.label} is not complete: the log ends at {time_text(log.last_us, log.timezone)}"


def open_notes(window: Window, log: EventLog) -> list[str]:
    """A note if a window is compared although the log ends within it."""
    open_ = incomplete(window, log)
    return [Note(f"{open_}; it is compared anyway", Concern.INPUT)] if open_ else []


def earlier_in(window: Window, days: int, log: EventLog) -> tuple[list[Window], list[Window]]:
    """Comparable windows that the log covers, and those before it begins."""
    assert log.first_us is not None
    day, hour = local_hour(log.first_us, log)
    quiet = NIGHT if window.whole_days else 1
    every = earlier(window, days)
    begun = [each for each in every if (day, hour) < (each.first_day, each.first_hour + quiet)]
    return begun, [each for each in every if each not in begun]


def too_few(window: Window, earlier_windows: Sequence[Window], days: int, log: EventLog) -> str:
    """A message that there are too few earlier windows, and how to get more."""
    assert log.first_day is not None
    more = LEAST_WINDOWS * (window.first_day - earlier(window, 366)[0].first_day)
    message = (
        f"{LEAST_WINDOWS} earlier windows like {window.label} are needed, and {days} days of "
        f"history have {len(earlier_windows)}"
    )
    if days < more:
        return f"{message}: --history {more}d has enough"
    first = day_text(log.first_day)
    return f"{message}: the log begins on {first}, and {more} days before the window are needed"


def ends_us(window: Window, log: EventLog) -> int:
    """When a window ends, in microseconds UTC."""
    midnight = datetime.combine(EPOCH, datetime.min.time())
    return _utc(midnight + timedelta(days=window.last_day, hours=window.end_hour), log.timezone)


def hour_us(hour: str, timezone: str) -> int:
    """When a local hour such as ``2026-11-20 03:00`` begins, in microseconds UTC."""
    return _utc(datetime.fromisoformat(hour), timezone)


def _utc(local: datetime, timezone: str) -> int:
    return int(local.replace(tzinfo=ZoneInfo(timezone)).timestamp()) * 1_000_000
