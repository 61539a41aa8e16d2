"""Finding rows of results by measure (in any spelling) and by slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from karat.errors import UsageError, nearest

Meant = Callable[[str], Sequence[str]]
"""The canonical names of the measures that a spelling stands for; none if it is unknown."""


class Row(Protocol):
    """A row with a measure, in a slice or over all queries (attribute and slice are None)."""

    @property
    def measure(self) -> str | None:
        """Canonical name of the measure."""

    @property
    def attribute(self) -> str | None:
        """The attribute sliced by."""

    @property
    def slice(self) -> str | None:
        """Value of the attribute."""


R = TypeVar("R", bound=Row)


def of_measure(rows: Sequence[R], measure: Any, meant: Meant | None) -> list[R]:
    """The rows of one measure, named in any spelling.

    A name without a cutoff matches a measure with one, if it is the only one: MRR for RR@10.

    Raises:
        UsageError: the measure was not computed (the nearest and all computed ones are named), or
            the name is ambiguous.
    """
    if not isinstance(measure, str):
        raise UsageError(
            f"expected the name of a measure, got {measure!r}", fix='.value("nDCG@10")'
        )
    computed = list(dict.fromkeys(row.measure for row in rows if row.measure is not None))
    asked = [measure] if measure in computed or meant is None else list(meant(measure))
    names = [name for name in computed if name in asked]
    if len(names) > 1:
        raise UsageError(f"{measure!r} matches {len(names)} measures", nearest=names)
    if not names:
        symbols = {name.partition("@")[0] for name in asked}
        close = [name for name in computed if name.partition("@")[0] in symbols]
        if len(close) == 1 and not any("@" in name for name in asked):
            return [row for row in rows if row.measure == close[0]]
        raise UsageError(
            f"{measure!r} was not computed; available: {_listed(computed)}",
            nearest=close[:3] or nearest(measure, computed),
        )
    return [row for row in rows if row.measure == names[0]]


def of_slice(overall: Sequence[R], sliced: Sequence[R], name: str | None) -> list[R]:
    """The rows over all queries, or those of a slice named ``attribute=value``.

    Raises:
        UsageError: unknown slice; the nearest is named.
    """
    if name is None:
        return list(overall)
    rows = [row for row in sliced if _name(row) == name]
    if not rows:
        names = list(dict.fromkeys(map(_name, sliced)))
        raise UsageError(
            f"unknown slice {name!r}; available: {_listed(names)}",
            nearest=nearest(str(name), names),
            fix=None if names else 'by="category" makes slices of an attribute of the queries',
        )
    return rows


def of_name(
    rows: Sequence[R], wanted: str | None, name: Callable[[R], str], measure: str, has: str
) -> R:
    """The row of a run or candidate; ``wanted`` may be None if there is only one.

    Args:
        has: What several rows have, in the error, such as ``runs have a value of``.
    """
    named = [row for row in rows if wanted in (None, name(row))]
    if len(named) == 1:
        return named[0]
    names = list(dict.fromkeys(map(name, rows)))
    if named:
        raise UsageError(f"{len(named)} {has} {measure}", fix=f'.value("{measure}", "{names[0]}")')
    what = has.partition("s ")[0]
    raise UsageError(f"unknown {what} {wanted!r}", nearest=nearest(str(wanted), names) or names)


def _name(row: Row) -> str:
    return f"{row.attribute}={row.slice}"


def _listed(names: Sequence[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
