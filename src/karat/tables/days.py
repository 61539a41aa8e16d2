"""Local days, as days since 1970-01-01 in tables and ISO dates for people, and time zones.

The names of time zones are those that mean the same on every machine.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from karat.errors import UsageError

EPOCH = date(1970, 1, 1)  # day 0
_MACHINE_SPECIFIC = {"localtime", "posixrules", "Factory"}
"""Zone names whose meaning depends on the machine."""
_START = datetime(1970, 1, 1, tzinfo=UTC)


def day_text(day: int) -> str:
    """A day as ``2026-11-20``.

    Args:
        day: In days since 1970-01-01.
    """
    return (EPOCH + timedelta(days=day)).isoformat()


def day_number(day: str | date, option: str = "") -> int:
    """A day in days since 1970-01-01.

    Args:
        day: A date, or text such as ``2026-11-20``.
        option: The option it came from, such as ``--from``; named in the error.

    Raises:
        UsageError: the text is not a date.
    """
    return (_read(day, option) if isinstance(day, str) else day).toordinal() - EPOCH.toordinal()


def _read(text: str, option: str) -> date:
    prefix = f"{option} " if option else ""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{prefix}{text[:40]!r} is not a date", fix=f"as in {prefix}2026-11-01"
        ) from None


def span_text(first: int, last: int) -> str:
    """A period as ``2026-11-01 to 2026-11-20``; a single day as that day."""
    return " to ".join(dict.fromkeys((day_text(first), day_text(last))))


def is_zone(name: str) -> bool:
    """Whether a name is that of a time zone, such as ``Europe/Berlin``."""
    return name not in _MACHINE_SPECIFIC and name in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())  # it opens hundreds of files


def local_time(time_us: int, timezone: str) -> datetime:
    """The local time in a time zone.

    Args:
        time_us: Microseconds UTC since 1970-01-01.
        timezone: Name of the time zone, such as ``Europe/Berlin``.
    """
    return (_START + timedelta(microseconds=time_us)).astimezone(ZoneInfo(timezone))


def time_text(time_us: int, timezone: str = "UTC") -> str:
    """The same, as ``2026-11-20 06:00``."""
    return f"{local_time(time_us, timezone):%Y-%m-%d %H:%M}"


def day_of(time_us: int, timezone: str) -> int:
    """The local day of a time, in days since 1970-01-01."""
    return (local_time(time_us, timezone).date() - EPOCH).days
