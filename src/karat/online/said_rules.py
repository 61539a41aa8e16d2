"""Rules as people say them: ``idle=20min``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace

from karat.errors import UsageError, nearest
from karat.online.rules import DAY, HOUR, MINUTE, SECOND, Rules

_UNITS = {
    "ms": SECOND // 1000,
    **dict.fromkeys(("s", "sec", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
}
_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)")
_LONGEST = 366 * DAY


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
                f"there is no rule called {name!r}; rules are {', '.join(known)}",
                nearest=nearest(name, known, 1),
            )
        if name in changed:
            raise UsageError(f"the rule {name} is given twice")
        found = _LENGTH.fullmatch(length.strip().casefold())
        if not equals or not found or found[2] not in _UNITS:
            raise UsageError(
                f"{text!r} does not say how long", fix=f"{name}=20min; units are ms, s, min, h, d"
            )
        changed[name] = round(float(found[1]) * _UNITS[found[2]])
        if not 0 < changed[name] <= _LONGEST:
            raise UsageError(f"the rule {text.strip()} is not between 0 and 366 days")
    rules = replace(Rules(), **changed)
    for less, more in (("quick_back", "satisfied"), ("satisfied", "dwell"), ("idle", "session")):
        if getattr(rules, less) > getattr(rules, more):
            raise UsageError(f"the rule {less} is longer than {more}")
    return rules
