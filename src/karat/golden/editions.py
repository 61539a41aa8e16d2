"""Editions: the content of a frozen golden set, its hash, and the difference of two editions.

An edition is the queries, one grade for each judged pair, and the origin of both. The hash is of
its content in a canonical form: rows in order of their ids, equal numbers alike whatever their
type, nulls left out. So a golden set has the same hash from either database and on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from karat.errors import InputError, UsageError, nearest
from karat.tables.checksum import checksum
from karat.tables.golden.agreement import Figure
from karat.tables.incoming import refuse_rows
from karat.tables.schema import QRELS, QUERIES, Column
from karat.tables.workspace import WorkspaceConfig


@dataclass(frozen=True, slots=True)
class Freeze:
    """Whether an edition may be frozen."""

    # `ok` | `warn` (it may, with the sentence as a warning) | `refuse`
    verdict: Literal["ok", "warn", "refuse"]
    sentence: str  # the reason


def may_freeze(head: Figure, policy: WorkspaceConfig) -> Freeze:
    """Whether raters agree enough: the lower end of kappa's interval compared with the policy.

    Args:
        head: Headline agreement of the edition's judgments.
        policy: Its ``weights``, ``at_least`` and ``refuse`` apply.

    Returns:
        ``ok`` if the whole interval is at ``at_least`` or above; otherwise ``refuse`` if the policy
        refuses, else ``warn``.
    """
    required = f"{_two(policy.at_least)} or more ({_named(policy.weights)})"
    less: Literal["warn", "refuse"] = "refuse" if policy.refuse else "warn"
    if head.value is None:
        return Freeze(less, f"κ is not available ({head.reason}); required: {required}")
    value = _two(head.value, _digits(head.value, policy.at_least))
    figure = f"κ is {value} ({_named(head.weights)})"
    if head.weights != policy.weights:
        return Freeze(less, f"{figure}, which cannot be compared; required: {required}")
    if head.ci_low is None:
        return Freeze(less, f"{figure}, without an interval ({head.reason}); required: {required}")
    low = _two(head.ci_low, _digits(head.ci_low, policy.at_least))
    where = f"{figure}, and its 95 % interval begins at {low}"
    if head.ci_low >= policy.at_least:
        return Freeze("ok", f"{where}: surely {_two(policy.at_least)} or more")
    if head.value >= policy.at_least:
        return Freeze(less, f"{where}: not surely {_two(policy.at_least)} or more")
    return Freeze(less, f"{where}: below {_two(policy.at_least)}")


def _named(weights: str | None) -> str:
    return "no weights" if weights in (None, "none") else f"{weights} weights"


def _two(value: float, digits: int = 2) -> str:
    """``.70``, as kappas are written."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def _digits(value: float, at_least: float) -> int:
    """Digits that distinguish a value just below the limit from the limit."""
    if value >= at_least or f"{value:.2f}" != f"{at_least:.2f}":
        return 2
    return 3 if f"{value:.3f}" != f"{at_least:.3f}" else 4


FORMAT = 1  # version of the canonical form
GRADE_COLUMNS = ("query_id", "doc_id", "grade", "votes", "rule", "raters")
"""Columns of an edition's grades; the last three only if they are known."""
Content = dict[str, Any]
"""``edition`` (the form's version), ``about``, ``queries`` and ``grades`` (lists of objects)."""

_BOOKKEEPING = ("added_us", "dropped_us")
_SOURCE = "edition"


@dataclass(frozen=True, slots=True)
class EditionDifference:
    """The difference of two editions."""

    # `query_id`, `change` (added | removed | changed), `field` (`text`, `weight`, any attribute;
    # null unless changed), `old`, `new` (as text)
    queries: pl.DataFrame
    # `query_id`, `doc_id`, `change`, `old`, `new` (grades; null where there is none), `class` (of
    # the query; null without `by`)
    grades: pl.DataFrame
    moves: pl.DataFrame  # `old`, `new`, `pairs`: number of grades changed from old to new
    # `class`, `added`, `removed`, `changed`, `same`: pairs of each class; one row, its class null,
    # without `by`
    classes: pl.DataFrame
    about: dict[str, tuple[Any, Any]]  # metadata that differ: name → (old, new)

    @property
    def same(self) -> bool:
        """Whether queries and grades are the same."""
        return not (self.queries.height or self.grades.height)


def edition(
    queries: pl.DataFrame, grades: pl.DataFrame, about: Mapping[str, Any]
) -> tuple[Content, str]:
    """The content of an edition and its SHA-256, in hexadecimal.

    Args:
        queries: ``query_id`` and any of ``schema.QUERIES`` and attributes; the dates ``added_us``
            and ``dropped_us`` are left out.
        grades: ``query_id``, ``doc_id``, ``grade``, and if known ``votes``, ``rule``, ``raters``;
            other columns are left out.
        about: Its origin: scale, aggregation method, guideline, agreement, files; any JSON values.
            The hash covers it, so name and date do not belong here.

    Raises:
        InputError: no queries, a duplicate query or pair, a grade that is not finite, a grade for
            an unknown query, or a value that JSON cannot represent.
    """
    _refuse_queries(queries)
    _refuse_grades(grades, queries)
    query_columns = [name for name in queries.columns if name not in _BOOKKEEPING]
    grade_columns = [name for name in GRADE_COLUMNS if name in grades.columns]
    content: Content = {
        "edition": FORMAT,
        "about": _canonical(dict(about), "about"),
        "queries": _rows(queries.select(query_columns).sort("query_id")),
        "grades": _rows(grades.select(grade_columns).sort("query_id", "doc_id")),
    }
    return content, checksum(content)


def frames(
    content: Mapping[str, Any], sha256: str | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The queries and grades of an edition.

    Args:
        content: From ``edition``, also after a round trip through JSON.
        sha256: The expected hash; not checked if None.

    Returns:
        Queries (columns of ``schema.QUERIES``, then attributes by name) and grades
        (those of ``GRADE_COLUMNS`` that are known), both in order of their ids.

    Raises:
        InputError: not an edition, a later form, or another hash.
    """
    if content.get("edition") != FORMAT:
        raise InputError(
            f"the edition has form {content.get('edition')!r}; this karat reads form {FORMAT}",
            file=_SOURCE,
            fix="pip install --upgrade karat",
        )
    if sha256 is not None and (now := checksum(content)) != sha256:
        raise InputError(
            f"the edition was changed: its SHA-256 is {now[:12]}…, not {sha256[:12]}…",
            file=_SOURCE,
            fix="restore it from the store or from a copy",
        )
    return _frame(content["queries"], QUERIES), _frame(content["grades"], QRELS)


def difference(
    old: Mapping[str, Any], new: Mapping[str, Any], *, by: str | None = None
) -> EditionDifference:
    """The difference of two editions: queries, their fields, and grades.

    Args:
        old: Content of the earlier edition.
        new: Content of the later one.
        by: Attribute of the queries to count by; the later edition's value counts.

    Raises:
        InputError: one of them is not an edition.
        UsageError: no query has that attribute.
    """
    (old_queries, old_grades), (new_queries, new_grades) = frames(old), frames(new)
    classes = _classes(old_queries, new_queries, by)
    key = ["query_id", "doc_id"]
    both = (
        old_grades.select(*key, old="grade")
        .join(new_grades.select(*key, new="grade"), on=key, how="full", coalesce=True)
        .with_columns(
            change=pl.when(pl.col("old").is_null())
            .then(pl.lit("added"))
            .when(pl.col("new").is_null())
            .then(pl.lit("removed"))
            .when(pl.col("old") != pl.col("new"))
            .then(pl.lit("changed"))
            .otherwise(pl.lit("same"))
        )
        .join(classes, on="query_id", how="left")
        .sort(key)
    )
    grades = both.filter(pl.col("change") != "same")
    changed = grades.filter(pl.col("change") == "changed")
    counted = [
        (pl.col("change") == change).sum().cast(pl.Int64).alias(change)
        for change in ("added", "removed", "changed", "same")
    ]
    about_names = sorted({*old["about"], *new["about"]})
    return EditionDifference(
        queries=_query_changes(old["queries"], new["queries"]),
        grades=grades.select(*key, "change", "old", "new", "class"),
        moves=changed.group_by("old", "new").agg(pairs=pl.len().cast(pl.Int64)).sort("old", "new"),
        classes=both.group_by("class").agg(counted).sort("class", nulls_last=True),
        about={
            name: (old["about"].get(name), new["about"].get(name))
            for name in about_names
            if old["about"].get(name) != new["about"].get(name)
        },
    )


def _refuse_queries(queries: pl.DataFrame) -> None:
    if not queries.height:
        raise InputError("there are no queries to freeze", file=_SOURCE)
    ids = queries.select("query_id")
    refuse_rows(ids, ids["query_id"].is_duplicated(), "duplicate query id", _SOURCE)


def _refuse_grades(grades: pl.DataFrame, queries: pl.DataFrame) -> None:
    finite = grades["grade"].cast(pl.Float64).is_finite().fill_null(value=False)
    refuse_rows(grades, ~finite, "the grade is not a finite number", _SOURCE)
    twice = grades.select("query_id", "doc_id").is_duplicated()
    refuse_rows(grades, twice, "duplicate pair", _SOURCE)
    unknown = ~grades["query_id"].is_in(queries["query_id"].implode())
    refuse_rows(grades, unknown, "a grade for an unknown query", _SOURCE)


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [_canonical(row, str(row["query_id"])) for row in frame.iter_rows(named=True)]


def _canonical(value: Any, where: str) -> Any:
    """A value in canonical form: whole numbers as integers, no nulls in objects, no tuples."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        # 2 and 2.0 are the same weight; beyond 2^53 a float may not be the number it prints as.
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if isinstance(value, Mapping):
        items = {str(name): _canonical(each, where) for name, each in value.items()}
        return {name: each for name, each in sorted(items.items()) if each is not None}
    if isinstance(value, list | tuple):
        return [_canonical(each, where) for each in value]
    raise InputError(
        f"an edition cannot store {value!r}",
        file=_SOURCE,
        query=None if where == "about" else where,
        fix="use text, finite numbers, true and false, or lists of them",
    )


def _frame(rows: list[dict[str, Any]], table: Sequence[Column]) -> pl.DataFrame:
    """A frame of rows without nulls; a column of 1 and 0.5 is one of floats."""
    schema = {column.name: column.dtype for column in table}
    must = [column.name for column in table if not column.optional]
    order = [*schema, *GRADE_COLUMNS]
    names = sorted(
        {*must, *(name for row in rows for name in row)},
        key=lambda name: (order.index(name) if name in order else len(order), name),
    )
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        dtype = schema.get(name)
        if dtype is None and {type(each) for each in values if each is not None} == {int, float}:
            dtype = pl.Float64()
        columns.append(pl.Series(name, values, dtype=dtype, strict=False))
    return pl.DataFrame(columns)


def _query_changes(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> pl.DataFrame:
    before, after = ({row["query_id"]: row for row in rows} for rows in (old, new))
    rows: list[tuple[str, str, str | None, str | None, str | None]] = []
    for query in sorted({*before, *after}):
        if query not in before:
            rows.append((query, "added", None, None, None))
        elif query not in after:
            rows.append((query, "removed", None, None, None))
        else:
            one, other = before[query], after[query]
            rows += [
                (query, "changed", name, _text(one.get(name)), _text(other.get(name)))
                for name in sorted({*one, *other})
                if one.get(name) != other.get(name)
            ]
    names = ("query_id", "change", "field", "old", "new")
    return pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")


def _classes(old: pl.DataFrame, new: pl.DataFrame, by: str | None) -> pl.DataFrame:
    """``query_id`` and ``class``: the later edition's where it has the query."""
    if by is not None and by not in {*old.columns, *new.columns}:
        names = sorted({*old.columns, *new.columns} - {"query_id"})
        raise UsageError(
            f"no query has the attribute {by!r}; there are {', '.join(names) or 'none'}",
            nearest=nearest(by, names, 1),
        )
    both = [
        pl.DataFrame(
            {
                "query_id": frame["query_id"],
                "class": map(_text, frame[by]) if by in frame.columns else [None] * frame.height,
            },
            {"query_id": pl.String, "class": pl.String},
        )
        for frame in (new, old)
    ]
    return pl.concat(both).unique("query_id", keep="first", maintain_order=True)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
