"""Time zones that are the same on every machine, and local times in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_MACHINE_SPECIFIC = {"localtime", "posixrules", "Factory"}
"""Zone names whose meaning depends on the machine."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    return (_EPOCH + timedelta(microseconds=time_us)).astimezone(ZoneInfo(timezone))
