"""Times in words."""

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
            # Rounded ahead: 7 days minus a second are still "in 7 days".
            whole = round(count) if ahead else int(count)
            text = f"{whole} {name}{'' if whole == 1 else 's'}"
            return f"in {text}" if ahead else f"{text} ago"
        count /= size
    return f"{moment(time_us):%d %b %Y}"


def exact(time_us: int | None) -> str:
    """``2026-11-21 18:09:59 UTC``; empty for None."""
    return "" if time_us is None else f"{moment(time_us):%Y-%m-%d %H:%M:%S} UTC"


def moment(time_us: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(time_us / 1e6, tz=dt.UTC)
