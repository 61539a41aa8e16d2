"""The rules by which events become searches, sessions and metrics; each result names them."""

from __future__ import annotations

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
    """How long what may take; all in microseconds.

    Attributes:
        idle: A session ends when nothing is done for longer (Catledge and Pitkow 1995, rounded to
            30 minutes by habit; Jones and Klinkner, CIKM 2008, on what it costs).
        session: No session is longer.
        typing: A request that comes within this, one text a prefix of the other, is the same
            search being typed.
        reformulation: The next search within this may be a reformulation.
        satisfied: A click read for at least this is satisfied (Fox et al. 2005).
        quick_back: A click left within this is not.
        dwell: No dwell counts for longer.
        dwell_mean: The restricted mean of dwell is up to here.
        first_click_mean: The restricted mean of the time to the first click is up to here.
        answer: An answer is read if it is visible for at least this.
        cart: A cart belongs to a search at most this before it, in the same session.
        purchase: A purchase belongs to a search at most this before it; a search counts for
            conversion once that has passed.
    """

    idle: int = 30 * MINUTE
    session: int = 24 * HOUR
    typing: int = 3 * SECOND
    reformulation: int = 5 * MINUTE
    satisfied: int = 30 * SECOND
    quick_back: int = 10 * SECOND
    dwell: int = 30 * MINUTE
    dwell_mean: int = 10 * MINUTE
    first_click_mean: int = MINUTE
    answer: int = 5 * SECOND
    cart: int = 30 * MINUTE
    purchase: int = DAY

    @property
    def id(self) -> str:
        """The rules in one line, to stand beside each result: version, and what is not usual.

        What is not usual stands as it can be typed: ``rules@1 idle=20min``.
        """
        usual = Rules()
        lengths = {each.name: getattr(self, each.name) for each in fields(self)}
        said = [
            f"{name}={re.sub('[ ,]', '', duration_text(length))}"
            for name, length in lengths.items()
            if length != getattr(usual, name)
        ]
        return " ".join(["rules@1", *said])


def rules_from(said: Iterable[str]) -> Rules:
    """The rules, with those changed that are said.

    Args:
        said: As ``idle=20min``, ``satisfied=15 s``, ``purchase=7d``; names are those of ``Rules``.

    Raises:
        UsageError: no rule has the name, or it is no length of time, or one of the rules then
            makes no sense.
    """
    known = [each.name for each in fields(Rules)]
    changed: dict[str, int] = {}
    for text in said:
        name, equals, length = text.partition("=")
        name = name.strip().casefold().replace("-", "_")
        if name not in known:
            raise UsageError(
                f"there is no rule called {name!r}",
                nearest=nearest(name, known, 1),
                fix=f"--rule NAME=TIME; rules: {', '.join(known)}",
            )
        if name in changed:
            raise UsageError(f"the rule {name} is given twice", fix="give it once")
        found = _LENGTH.fullmatch(length.strip().casefold())
        if not equals or not found or found[2] not in _UNITS:
            raise UsageError(
                f"{text!r} does not say how long", fix=f"{name}=20min; units are ms, s, min, h, d"
            )
        changed[name] = round(float(found[1]) * _UNITS[found[2]])
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


def duration_text(microseconds: int) -> str:
    """How long, in the largest unit that is whole: 30 min, 24 h, 7 d."""
    if microseconds >= 2 * DAY and microseconds % DAY == 0:
        return f"{microseconds // DAY:,} d"
    for unit, name in ((HOUR, "h"), (MINUTE, "min")):
        if microseconds % unit == 0:
            return f"{microseconds // unit:,} {name}"
    return f"{microseconds / SECOND:.15g} s"
