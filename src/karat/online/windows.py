"""Windows of local time: the latest complete one, and the comparable ones of earlier weeks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from karat.errors import UsageError
from karat.online.health import WEEK
from karat.tables.days import day_text

_SPAN = re.compile(r"\s*(\d{1,4})\s*([hdw])\s*", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 24 * WEEK}
_LONGEST = 28  # days


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of a day, or whole days."""

    first_day: int  # first local day, in days since 1970-01-01
    last_day: int  # last local day, likewise
    first_hour: int = 0  # first local hour, 0 to 23; 0 for whole days
    end_hour: int = 24  # hour after the last, 1 to 24; 24 for whole days

    @property
    def whole_days(self) -> bool:
        """Whether it has whole days."""
        return self.end_hour - self.first_hour == 24

    @property
    def label(self) -> str:
        """``2026-11-20`` · ``2026-11-14 to 2026-11-20`` · ``2026-11-20 06:00-12:00``."""
        first = day_text(self.first_day)
        if self.first_day < self.last_day:
            return f"{first} to {day_text(self.last_day)}"
        if self.whole_days:
            return first
        return f"{first} {self.first_hour:02}:00-{self.end_hour:02}:00"


def hours_of(text: str, *, what: str = "--window") -> int:
    """Hours of a span: ``1h``, ``6h``, ``1d``, ``7d``, ``1w``.

    Raises:
        UsageError: not a duration.
    """
    match = _SPAN.fullmatch(text)
    hours = int(match[1]) * _HOURS[match[2].casefold()] if match else 0
    if not hours:
        raise UsageError(f"{what} {text!r} is not a duration", fix=f"{what} 1d, 6h or 28d")
    return hours


def latest(text: str, day: int, hour: int) -> Window:
    """The latest window that has ended by an hour.

    Args:
        text: Its length: hours that divide a day, or up to 28 whole days.
        day: Current local day, in days since 1970-01-01.
        hour: Current hour, 0 to 24.

    Raises:
        UsageError: invalid length.
    """
    hours = hours_of(text)
    if hours < 24:
        if 24 % hours:
            raise UsageError(
                f"--window {text}: {hours} hours do not divide a day",
                fix="--window 1h, 2h, 3h, 4h, 6h, 8h, 12h or 1d",
            )
        end = hour - hour % hours
        if end == 0:
            return Window(day - 1, day - 1, 24 - hours, 24)
        return Window(day, day, end - hours, end)
    if hours % 24 or hours > 24 * _LONGEST:
        raise UsageError(
            f"--window {text} is neither hours of one day nor 1 to {_LONGEST} whole days",
            fix="--window 1d, 7d or 6h",
        )
    last = day if hour == 24 else day - 1
    return Window(last - hours // 24 + 1, last)


def earlier(window: Window, history: int) -> list[Window]:
    """Earlier comparable windows, the latest first: the same weekdays and hours.

    Args:
        window: The window to compare.
        history: Number of days before the window to search.
    """
    length = window.last_day - window.first_day + 1
    step = -(-length // WEEK) * WEEK  # whole weeks, without overlap
    return [
        Window(window.first_day - back, window.last_day - back, window.first_hour, window.end_hour)
        for back in range(step, history + 1, step)
    ]
