"""What figures of a log are sliced by: arm, attributes, classes of the golden set's queries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from karat.errors import UsageError, nearest
from karat.online.simulate.records import SIMULATED
from karat.reports.phrases.online import quoted
from karat.store.sql import queries as stored
from karat.tables.online.events import EventLog
from karat.tables.queries import Queries
from karat.web.framework.state import AppState
from karat.workflows.golden.queries import classes_in

GOLDEN = "golden:"
"""What the name of a slice by queries of the golden set begins with, in an address."""
LONGEST = 200
"""Characters of a query or a value that pages show; all of them stand in CSV and JSON."""
STEPS = ("day", "hour")
"""Steps of time, which are slices too."""
_FEW = 10  # values that are all named


@dataclass(frozen=True)
class Dimension:
    """What figures are sliced by.

    Attributes:
        name: In addresses; empty for nothing.
        key: In the slices of results.
        label: On pages.
        queries: Of the golden set with its ``class``, where the slice is by that.
    """

    name: str
    key: str
    label: str
    queries: Queries | None = field(default=None, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Changes whenever what a query belongs to does; empty where that is in the log."""
        if self.queries is None:
            return ""
        return hashlib.sha256(self.queries.frame.write_csv().encode()).hexdigest()[:16]


NOTHING = Dimension("", "", "")


def dimensions(site: AppState, log: EventLog) -> list[Dimension]:
    """Everything that figures can be sliced by, in the order in which it is offered."""
    out = [Dimension("arm", "arm", "arm")] if log.arms else []
    out += [Dimension(name, name, name) for name in log.attributes if name != SIMULATED]
    out += [
        Dimension(f"{GOLDEN}{name}", "class", f"{name} (golden set)")
        for name in classes_in(site.workspace)
    ]
    return out


def dimension(site: AppState, log: EventLog, name: str, besides: Sequence[str] = ()) -> Dimension:
    """What a name in an address means.

    Args:
        site: The site.
        log: The log.
        name: As the address says it.
        besides: What else can be sliced by there, to be named where the name is none.

    Raises:
        UsageError: there is nothing of this name; the nearest is named.
    """
    if not name:
        return NOTHING
    known = {each.name: each for each in dimensions(site, log)}
    if name not in known:
        names = [*besides, *known]
        raise UsageError(
            f"there is nothing called {name[:60]!r} to slice by",
            nearest=nearest(name, names),
            fix=f"one of: {', '.join(names)}" if names else None,
        )
    found = known[name]
    if not name.startswith(GOLDEN):
        return found
    attribute = name.removeprefix(GOLDEN)
    with site.workspace.store.read() as connection:
        frame = stored.frame(connection, site.workspace.golden.id)
    held = frame.select("query_id", "text", pl.col(attribute).cast(pl.String).alias("class"))
    held = held.filter(pl.col("class").is_not_null())
    return Dimension(name, found.key, found.label, Queries(held, site.workspace.golden.name))


def queries_of(found: Iterable[Dimension]) -> Queries | None:
    """Queries with their classes, where something is sliced by an attribute of the golden set.

    Raises:
        UsageError: it is by two of them, and a query has one class.
    """
    known = {each.name: each.queries for each in found if each.queries is not None}
    if len(known) > 1:
        raise UsageError("slices by two attributes of the golden set", fix="ask for one of them")
    return next(iter(known.values()), None)


@dataclass(frozen=True)
class Part:
    """One slice: what it is of and the value there.

    Attributes:
        dimension: What it is of; ``day`` and ``hour`` too.
        value: As results say it; empty is what the log does not say.
    """

    dimension: Dimension
    value: str

    @property
    def said(self) -> str:
        """As an address says it."""
        return f"{self.dimension.name}={self.value}"


def parts(site: AppState, log: EventLog, said: Sequence[str]) -> list[Part]:
    """The slices that an address names.

    Raises:
        UsageError: one is none, an hour is none, or two are of the same.
    """
    out = []
    for each in said:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"{each[:60]!r} is no slice", fix="slice=arm=b")
        if name in {*STEPS, "query"}:
            out.append(Part(Dimension(name, name, name), value))
        else:
            out.append(Part(dimension(site, log, name, (*STEPS, "query")), value))
    keys = [part.dimension.key for part in out]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise UsageError(f"two slices are of {twice}", fix="name one of them")
    return out


def where(found: Sequence[Part]) -> Mapping[str, str | None]:
    """Slices as the workflows take them: None is what the log does not say."""
    return {part.dimension.key: part.value or None for part in found}


def lacked(label: str, value: str, values: Sequence[str]) -> str:
    """That no search has a value, and which may be meant, in sentences.

    Args:
        label: What it is a value of, as pages call it.
        value: The value; empty for what the log does not say.
        values: Those that searches have, the most frequent first.
    """
    if not value:
        return f"Every search in these days has a value of {label}."
    said = f"No search in these days has {quoted(value)} as its {label}."
    named = [each for each in values if each]
    near = nearest(value, named)
    if near:
        return f"{said} Did you mean {' or '.join(map(quoted, near))}?"
    if not named:
        return said
    more = " and others" if len(named) > _FEW else ""
    return f"{said} There are {', '.join(map(quoted, named[:_FEW]))}{more}."
