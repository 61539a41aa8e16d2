"""Time zones that are the same everywhere."""

from __future__ import annotations

from zoneinfo import available_timezones

_OF_A_MACHINE = {"localtime", "posixrules", "Factory"}
"""Names that lie among the zones of some machines, and mean something else on each."""


def is_zone(name: str) -> bool:
    """Whether a name is that of a time zone, as ``Europe/Berlin``.

    Args:
        name: As it was typed, or stands in a file.
    """
    return name not in _OF_A_MACHINE and name in available_timezones()
