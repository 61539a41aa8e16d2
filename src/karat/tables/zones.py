"""Time zones that are the same everywhere, and what clocks show in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_OF_A_MACHINE = {"localtime", "posixrules", "Factory"}
"""Names that lie among the zones of some machines, and mean something else on each."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_zone(name: str) -> bool:
    """Whether a name is that of a time zone, as ``Europe/Berlin``.

    Args:
        name: As it was typed, or stands in a file.
    """
    return name not in _OF_A_MACHINE and name in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())  # it opens hundreds of files


def local_time(time_us: int, timezone: str) -> datetime:
    """What clocks show at a time.

    Args:
        time_us: Microseconds UTC.
        timezone: Where they hang, as ``Europe/Berlin``.
    """
    return (_EPOCH + timedelta(microseconds=time_us)).astimezone(ZoneInfo(timezone))
