"""Offline measures against online metrics: correlations, disagreements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import counted
from karat.reports.phrases.online import during, value
from karat.reports.table import Column, Table
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import csv_table, markdown_cell, plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.notes import Concern, Note
from karat.tables.online.offline_correlation import (
    Concord,
    Discord,
    JudgedAndSearched,
    OfflineCorrelation,
    WorldSlice,
)

FEW = 10
"""Queries below which a rank correlation is not meaningful."""
OF_FEW = f"a rank correlation over fewer than {FEW} queries means little"
_MOST = 20  # queries in a terminal
_ALL = "all"
_LOWER = " ↓"


def show(found: OfflineCorrelation, out: Console, *, all_notes: bool = False) -> None:
    out.print(plain(headline(found)))
    draw(_slices(found), out)
    brief = [row for row in found.concord if row.slice is None or row.weighting == "queries"]
    draw(_concords(found, brief), out)
    for title, rows in (
        ("Classes on which they disagree", found.discord_slices),
        ("Queries on which they disagree", found.discord),
    ):
        if rows:
            out.print(plain(title, "bold"))
            show_notes([_sentence(row) for row in rows], out)
            out.print()
    shown = found.queries[:_MOST]
    draw(_queries(found, shown), out)
    show_footnotes(remarks(found, len(shown)), out, every=all_notes)


def headline(found: OfflineCorrelation) -> str:
    """How many queries were matched, in a sentence."""
    return (
        f"{found.run}: {counted(len(found.queries), 'query')} judged and searched "
        f"for{during(found.period)}"
    )


def remarks(found: OfflineCorrelation, shown: int | None = None) -> list[str]:
    """Sentences on queries on one side only, and on how to read the numbers."""
    notes: list[str] = []
    if found.judged_only:
        notes.append(f"{counted(found.judged_only, 'judged query')} not searched for: not included")
    if found.searched_only:
        notes.append(
            f"{counted(found.searched_only, 'query')} searched for "
            f"({counted(found.searched_only_searches, 'search')}) without a judgment: "
            "not included"
        )
    notes.append(
        f"correlations and disagreements are over the {found.enough:,} with "
        f"{found.min_searches:,} searches or more; few searches per query weaken any correlation"
    )
    if any_of_few(found.concord):
        notes.append(Note(OF_FEW, Concern.FEW))
    if any(row.direction == "lower" for row in found.concord):
        notes.append("↓: lower is better, so agreement is a correlation below 0")
    if shown is not None and shown < len(found.queries):
        notes.append(f"{len(found.queries) - shown:,} more queries (--format csv has all)")
    return [*notes, *found.notes]


def any_of_few(rows: Sequence[Concord]) -> bool:
    """Whether a correlation is over fewer than ``FEW`` queries."""
    return any(row.spearman is not None and row.n < FEW for row in rows)


def to_csv(found: OfflineCorrelation) -> str:
    return csv_table([_flat(row, found) for row in found.queries])


def to_markdown(found: OfflineCorrelation) -> str:
    tables = _slices(found), _concords(found, found.concord), _queries(found, found.queries)
    parts = [f"{markdown_cell(headline(found))}\n", *map(markdown, tables)]
    disagreements = [_sentence(row) for row in (*found.discord_slices, *found.discord)]
    return "\n".join([*parts, listed([*disagreements, *remarks(found)])])


def _sentence(row: Discord) -> str:
    return "; ".join((row.sentence, *row.reasons))


def _slices(found: OfflineCorrelation) -> Table:
    columns = [
        Column("slice", found.by or "", text=_part),
        Column("queries", "Queries", "count"),
        Column("searches", "Searches", "count", drop=2),
        *_both(found),
        Column("p50_ms", "p50 ms", "number", digits=0, drop=1),
        Column("p95_ms", "p95 ms", "number", digits=0, drop=3),
    ]
    return Table("Offline and online", columns, found.slices)


def _part(row: WorldSlice | Concord) -> str:
    return _ALL if row.slice is None else row.slice


def _both(found: OfflineCorrelation) -> list[Column]:
    """The offline measures and the online metrics."""

    def offline(name: str) -> Callable[[Any], float | None]:
        return lambda row: row.offline[name]

    def online(name: str) -> Callable[[Any], str]:
        return lambda row: value(name, row.online[name].value)

    return [
        *(Column(name, name, "number", value=offline(name)) for name in found.measures),
        *(Column(name, name, "number", text=online(name)) for name in found.metrics),
    ]


def _concords(found: OfflineCorrelation, rows: Sequence[Concord]) -> Table:
    columns = [
        Column("measure", "Offline"),
        Column("metric", "Online",
               text=lambda row: row.metric + (_LOWER if row.direction == "lower" else "")),
        Column("slice", found.by or "", text=_part),
        Column("weighting", "Each", text=lambda row: {"queries": "query", "searches": "search"}.get(
            row.weighting, row.weighting)),
        Column("n", "n", "count", drop=1),
        Column("spearman", "Spearman", "number"),
        Column("spearman_low", "95 %", "number", high="spearman_high", digits=2),
        Column("kendall", "tau-b", "number"),
        Column("kendall_low", "95 %", "number", high="kendall_high", digits=2, drop=2),
    ]  # fmt: skip
    return Table("Correlations", columns, rows)


def _queries(found: OfflineCorrelation, rows: Sequence[JudgedAndSearched]) -> Table:
    columns = [
        Column("text", "Query"),
        Column("searches", "Searches", "count"),
        Column("users", "Users", "count", drop=3),
        *_both(found),
        Column("p50_ms", "p50 ms", "number", digits=0, drop=1),
        Column("p95_ms", "p95 ms", "number", digits=0, drop=2),
    ]
    return Table("Queries, most searched for first", columns, rows)


def _flat(row: JudgedAndSearched, found: OfflineCorrelation) -> dict[str, Any]:
    flat: dict[str, Any] = {"query_id": row.query_id, "text": row.text}
    if found.by:
        flat[found.by] = row.slice
    flat |= {"searches": row.searches, "users": row.users, **row.offline}
    for name in found.metrics:
        figure = row.online[name]
        flat |= {name: figure.value, f"{name} low": figure.low, f"{name} high": figure.high}
    return flat | {"p50_ms": row.p50_ms, "p95_ms": row.p95_ms, "position": row.position}
