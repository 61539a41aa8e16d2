"""The rules that turn events into searches, sessions and metrics; each result names them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from karat.errors import UsageError, nearest

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_UNITS = {
    "ms": SECOND // 1000,
    **dict.fromkeys(("s", "sec", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
}
_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)")
_LONGEST = 366 * DAY


@dataclass(frozen=True, slots=True)
class Rules:
    """Time limits; all in microseconds."""

    # Session gap: a session ends after a longer time without events (Catledge and Pitkow 1995,
    # usually rounded to 30 minutes; Jones and Klinkner, CIKM 2008, on its limits)
    idle: int = 30 * MINUTE
    session: int = 24 * HOUR  # longest session
    # A request within this time, with one text a prefix of the other, is part of typing the same
    # search
    typing: int = 3 * SECOND
    reformulation: int = 5 * MINUTE  # the next search within this time may be a reformulation
    satisfied: int = 30 * SECOND  # least dwell of a satisfied click (Fox et al. 2005).
    quick_back: int = 10 * SECOND  # a click with a shorter dwell is a quick back
    dwell: int = 30 * MINUTE  # longer dwell is censored here
    dwell_mean: int = 10 * MINUTE  # limit of the restricted mean of dwell
    first_click_mean: int = MINUTE  # limit of the restricted mean of the time to the first click
    answer: int = 5 * SECOND  # an answer is read if it is visible for at least this
    # A cart is attributed to a search at most this before it, in the same session
    cart: int = 30 * MINUTE
    # A purchase is attributed to a search at most this before it; a search counts for conversion
    # once that has passed
    purchase: int = DAY

    @property
    def id(self) -> str:
        """The rules in one line: the version, and those that differ from the defaults.

        These are written as they can be typed: ``rules@1 idle=20min``.
        """
        defaults = Rules()
        lengths = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = [
            f"{name}={re.sub('[ ,]', '', duration_text(length))}"
            for name, length in lengths.items()
            if length != getattr(defaults, name)
        ]
        return " ".join(["rules@1", *changed])


def rules_from(changes: Iterable[str]) -> Rules:
    """The default rules with changes.

    Args:
        changes: Such as ``idle=20min``, ``satisfied=15 s``, ``purchase=7d``; names as in ``Rules``.

    Raises:
        UsageError: an unknown rule, an invalid duration, or rules that contradict each other.
    """
    known = [field.name for field in fields(Rules)]
    changed: dict[str, int] = {}
    for text in changes:
        name, equals, length = text.partition("=")
        name = name.strip().casefold().replace("-", "_")
        if name not in known:
            raise UsageError(
                f"unknown rule {name!r}",
                nearest=nearest(name, known, 1),
                fix=f"--rule NAME=TIME; rules: {', '.join(known)}",
            )
        if name in changed:
            raise UsageError(f"the rule {name} is given twice", fix="give it once")
        span = _microseconds(length)
        if not equals or span is None:
            raise UsageError(
                f"{text!r} has no duration", fix=f"{name}=20min; units are ms, s, min, h, d"
            )
        changed[name] = span
        if not 0 < changed[name] <= _LONGEST:
            raise UsageError(
                f"the rule {text.strip()} is not between 0 and 366 days", fix=f"{name}=20min"
            )
    rules = replace(Rules(), **changed)
    for less, more in (("quick_back", "satisfied"), ("satisfied", "dwell"), ("idle", "session")):
        if getattr(rules, less) > getattr(rules, more):
            raise UsageError(
                f"the rule {less} is longer than {more}",
                fix=f"{less} is {duration_text(getattr(rules, less))}, {more} is "
                f"{duration_text(getattr(rules, more))}: change one",
            )
    return rules


def _microseconds(text: str) -> int | None:
    match = _LENGTH.fullmatch(text.strip().casefold())
    return round(float(match[1]) * _UNITS[match[2]]) if match and match[2] in _UNITS else None


def duration(text: str) -> int:
    """A duration such as ``7d`` or ``36 h`` in microseconds.

    Raises:
        UsageError: it is none, or not between 0 and 366 days.
    """
    span = _microseconds(text) if isinstance(text, str) else None
    if span is None or not 0 < span <= _LONGEST:
        raise UsageError(
            f"{text!r} is not a duration of up to 366 days", fix="such as 7d, 36h or 30min"
        )
    return span


def margin(text: str, most: float = math.inf) -> tuple[float, bool] | None:
    """A margin: its size, and whether it is a share such as ``5%``; None if it is invalid.

    Args:
        text: A number of 0 or more, or a percentage.
        most: It is below this.
    """
    number = text.strip().removesuffix("%")
    share = number != text.strip()
    try:
        size = float(number)
    except ValueError:
        return None
    if not 0 <= size < most:
        return None
    return size / 100 if share else size, share


def duration_text(microseconds: int) -> str:
    """A duration in the largest unit that divides it: 30 min, 24 h, 7 d."""
    if microseconds >= 2 * DAY and microseconds % DAY == 0:
        return f"{microseconds // DAY:,} d"
    for unit, name in ((HOUR, "h"), (MINUTE, "min")):
        if microseconds % unit == 0:
            return f"{microseconds // unit:,} {name}"
    return f"{microseconds / SECOND:.15g} s"
