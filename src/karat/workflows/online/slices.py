"""Dimensions and slices of online metrics: arm, attributes, classes of the golden set."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from karat.errors import UsageError, nearest
from karat.online.simulate.records import SIMULATED
from karat.reports.phrases.online import quoted
from karat.tables.online.events import EventLog
from karat.tables.queries import Queries
from karat.workflows.workspace.known_queries import query_frame
from karat.workflows.workspace.stored_inputs import classes_in
from karat.workflows.workspace.workspace import Workspace

GOLDEN = "golden:"  # prefix, in addresses, of dimensions from the golden set
LONGEST = 200  # longest query or value on pages, in characters; CSV and JSON have all of it
STEPS = ("day", "hour")  # time steps, which are dimensions too
_FEW = 10  # values to name


@dataclass(frozen=True)
class Dimension:
    """What numbers are sliced by."""

    name: str
    key: str
    label: str
    queries: Queries | None = field(default=None, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Hash of the queries' classes; empty if the log has the values."""
        if self.queries is None:
            return ""
        return hashlib.sha256(self.queries.frame.write_csv().encode()).hexdigest()[:16]


NOTHING = Dimension("", "", "")


def in_log(log: EventLog) -> list[Dimension]:
    """The dimensions that the log has, in the order of the forms."""
    names = [*(["arm"] if log.arms else []), *(n for n in log.attributes if n != SIMULATED)]
    return [Dimension(name, name, name) for name in names]


def dimensions(workspace: Workspace, log: EventLog) -> list[Dimension]:
    """All available dimensions, in the order of the forms."""
    return in_log(log) + [
        Dimension(f"{GOLDEN}{name}", "class", f"{name} (golden set)")
        for name in classes_in(workspace)
    ]


def dimension(
    workspace: Workspace, log: EventLog, name: str, besides: Sequence[str] = ()
) -> Dimension:
    """The dimension that an address names: one of ``besides``, the log or the golden set."""
    if name in besides:
        return Dimension(name, name, name)
    if not name:
        return NOTHING
    known = {each.name: each for each in in_log(log)}
    if name not in known:
        known = {each.name: each for each in dimensions(workspace, log)}
    if name not in known:
        names = [*besides, *known]
        raise UsageError(
            f"unknown dimension {name[:60]!r}",
            nearest=nearest(name, names),
            fix=f"one of: {', '.join(names)}" if names else None,
        )
    known_dimension = known[name]
    if not name.startswith(GOLDEN):
        return known_dimension
    attribute = name.removeprefix(GOLDEN)
    frame = query_frame(workspace)
    classes = frame.select("query_id", "text", pl.col(attribute).cast(pl.String).alias("class"))
    classes = classes.filter(pl.col("class").is_not_null())
    return Dimension(
        name,
        known_dimension.key,
        known_dimension.label,
        Queries(classes, workspace.golden.name),
    )


def queries_of(used: Iterable[Dimension]) -> Queries | None:
    """Queries with their classes, if a dimension is from the golden set."""
    queries_by_name = {each.name: each.queries for each in used if each.queries is not None}
    if len(queries_by_name) > 1:
        raise UsageError("slices by two attributes of the golden set", fix="choose one of them")
    return next(iter(queries_by_name.values()), None)


@dataclass(frozen=True)
class Part:
    dimension: Dimension
    value: str

    @property
    def said(self) -> str:
        return f"{self.dimension.name}={self.value}"


def parts(workspace: Workspace, log: EventLog, said: Sequence[str]) -> list[Part]:
    """The slices that an address names."""
    slices = []
    for each in said:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"{each[:60]!r} is not a slice", fix="slice=arm=b")
        slices.append(Part(dimension(workspace, log, name, (*STEPS, "query")), value))
    keys = [part.dimension.key for part in slices]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise UsageError(f"there are two slices by {twice}", fix="give one of them")
    return slices


def filters_of(slices: Sequence[Part]) -> Mapping[str, str | None]:
    """Slices as filters; None stands for missing values."""
    return {part.dimension.key: part.value or None for part in slices}


def missing_value_text(label: str, value: str, values: Sequence[str]) -> str:
    """That no search has a value, with suggestions, in sentences."""
    if not value:
        return f"Every search in these days has a value of {label}."
    sentence = f"No search in these days has {quoted(value)} as its {label}."
    present = [each for each in values if each]
    near = nearest(value, present)
    if near:
        return f"{sentence} Did you mean {' or '.join(map(quoted, near))}?"
    if not present:
        return sentence
    more = " and others" if len(present) > _FEW else ""
    return f"{sentence} There are {', '.join(map(quoted, present[:_FEW]))}{more}."
