"""Local days: numbers since 1970-01-01 in tables, texts such as 2026-11-20 for people."""

from __future__ import annotations

from datetime import date, timedelta

from karat.errors import UsageError

EPOCH = date(1970, 1, 1)
"""Day 0."""


def day_text(day: int) -> str:
    """A day as ``2026-11-20``.

    Args:
        day: In days since 1970-01-01.
    """
    return (EPOCH + timedelta(days=day)).isoformat()


def day_number(said: str | date, option: str = "") -> int:
    """A day in days since 1970-01-01.

    Args:
        said: A date, or as ``2026-11-20``.
        option: Where it was typed, as ``--from``; named in the error.

    Raises:
        UsageError: it is no day.
    """
    return (_read(said, option) if isinstance(said, str) else said).toordinal() - EPOCH.toordinal()


def _read(said: str, option: str) -> date:
    typed = f"{option} " if option else ""
    try:
        return date.fromisoformat(said.strip())
    except ValueError:
        raise UsageError(
            f"{typed}{said[:40]!r} is no day", fix=f"as in {typed}2026-11-01"
        ) from None


def span_text(first: int, last: int) -> str:
    """A period as ``2026-11-01 to 2026-11-20``; of one day that day."""
    return " to ".join(dict.fromkeys((day_text(first), day_text(last))))
