"""Times as people say them."""

from __future__ import annotations

import datetime as dt

_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (7, "day"), (5, "week"))


def ago(time_us: int | None, now: int) -> str:
    """``3 days ago``, ``in 2 hours``, ``just now``; a dash for None. Microseconds UTC."""
    if time_us is None:
        return "–"
    seconds = (now - time_us) / 1e6
    count, ahead = abs(seconds), seconds < 0
    if count < 10:
        return "just now"
    for size, name in _STEPS:
        if count < size:
            # What was to last seven days a second ago still does.
            whole = round(count) if ahead else int(count)
            said = f"{whole} {name}{'' if whole == 1 else 's'}"
            return f"in {said}" if ahead else f"{said} ago"
        count /= size
    return f"{moment(time_us):%d %b %Y}"


def exact(time_us: int | None) -> str:
    """``2026-11-21 18:09:59 UTC``; empty for None."""
    return "" if time_us is None else f"{moment(time_us):%Y-%m-%d %H:%M:%S} UTC"


def moment(time_us: int) -> dt.datetime:
    """A time in microseconds UTC as a date."""
    return dt.datetime.fromtimestamp(time_us / 1e6, tz=dt.UTC)
