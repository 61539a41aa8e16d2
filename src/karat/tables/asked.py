"""Which row of results was asked for: a measure in any spelling, a run, a slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from karat.errors import UsageError, nearest

Meant = Callable[[str], Sequence[str]]
"""The canonical names of the measures that a spelling stands for; none if it is unknown."""


class Row(Protocol):
    """A row with a measure, perhaps None, in a slice or over all queries."""

    @property
    def measure(self) -> str | None:
        """Canonical name of the measure."""

    @property
    def attribute(self) -> str | None:
        """The attribute sliced by."""

    @property
    def slice(self) -> str | None:
        """Its value."""


R = TypeVar("R", bound=Row)


def of_measure(rows: Sequence[R], measure: Any, meant: Meant | None) -> list[R]:
    """The rows of one measure, in whatever spelling it is asked for.

    A name without a cutoff also stands for the only one that was computed: MRR for RR@10.

    Raises:
        UsageError: it was not computed, with the nearest and what there is; or the name stands for
            several that were.
    """
    if not isinstance(measure, str):
        raise UsageError(f"the measure is {measure!r}, not a name", fix='.value("nDCG@10")')
    there = list(dict.fromkeys(row.measure for row in rows if row.measure is not None))
    asked = [measure] if measure in there or meant is None else list(meant(measure))
    names = [name for name in there if name in asked]
    if len(names) > 1:
        raise UsageError(f"{measure!r} stands for {len(names)} measures", nearest=names)
    if not names:
        symbols = {name.partition("@")[0] for name in asked}
        close = [name for name in there if name.partition("@")[0] in symbols]
        if len(close) == 1 and not any("@" in name for name in asked):
            return [row for row in rows if row.measure == close[0]]
        raise UsageError(
            f"{measure!r} was not computed; there {_are(there)}",
            nearest=close[:3] or nearest(measure, there),
        )
    return [row for row in rows if row.measure == names[0]]


def of_slice(overall: Sequence[R], sliced: Sequence[R], wanted: str | None) -> list[R]:
    """The rows over all queries, or those of a slice named ``attribute=value``.

    Raises:
        UsageError: there is no such slice; the nearest is named.
    """
    if wanted is None:
        return list(overall)
    found = [row for row in sliced if _name(row) == wanted]
    if not found:
        there = list(dict.fromkeys(map(_name, sliced)))
        raise UsageError(
            f"there is no slice {wanted!r}; there {_are(there)}",
            nearest=nearest(str(wanted), there),
            fix=None if there else 'by="category" makes slices of an attribute of the queries',
        )
    return found


def _name(row: Row) -> str:
    return f"{row.attribute}={row.slice}"


def _are(there: Sequence[str], most: int = 12) -> str:
    more = f" and {len(there) - most} more" if len(there) > most else ""
    shown = ", ".join(there[:most]) or "none"
    return f"{'is' if len(there) == 1 else 'are'} {shown}{more}"
