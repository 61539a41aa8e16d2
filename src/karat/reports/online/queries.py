"""Worst queries as tables, Markdown, JSON and CSV: losses, reasons, and later searches."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import counted, percent
from karat.reports.phrases.online import during, where
from karat.reports.table import Column, Table
from karat.reports.writers.markdown import listed, markdown
from karat.reports.writers.plain import csv_table, markdown_cell, plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes
from karat.tables.online.worst_queries import LostQuery, WorstQueries

_NEXT = 3  # next queries in a cell
_SORTED = {
    "lost": "by lost searches: searches times the share that fails, which is shrunk towards that "
    "of all queries, more so for queries of few users",
    "zero": "by searches without results",
    "abandoned": "by searches that had results and no action",
    "reformulated": "by searches that were reformulated",
}


def show(found: WorstQueries, out: Console, *, all_notes: bool = False) -> None:
    out.print(plain(headline(found)))
    for table in _tables(found):
        draw(table, out)
    if found.queries:
        for query in found.queries[:_NEXT]:
            out.print(plain(f"{query.text}: {query.why}", "dim"))
    show_footnotes([*ordering(found), *found.notes], out, every=all_notes)


def headline(found: WorstQueries) -> str:
    """How many searches failed, in a sentence."""
    searches = counted(found.searches, "search")
    if found.share is None:
        return f"no answered searches{during(found.period)}"
    return f"{found.failed:,} of {searches} failed ({percent(found.share)}){during(found.period)}"


def ordering(found: WorstQueries) -> list[str]:
    """Sentences on the order of the rows, and how many are not shown."""
    notes = [f"ordered {_SORTED[found.sort]}"]
    if found.prior is None and found.share is not None:
        notes.append(
            "queries differ no more than by chance, or are too few to tell: each has the share of "
            "all queries, without an interval"
        )
    elif found.prior is not None:
        users = counted(round(found.prior), "user")
        notes.append(
            f"the share of a query with {users} is shrunk half way to {percent(found.share)}"
        )
    if found.hidden:
        notes.append(f"{counted(found.hidden, 'row')} not shown (--limit, --min-searches)")
    return notes


def to_csv(found: WorstQueries) -> str:
    return csv_table([_flat(query, found.by) for query in found.queries])


def to_markdown(found: WorstQueries) -> str:
    parts = [f"{markdown_cell(headline(found))}\n", *map(markdown, _tables(found))]
    return "\n".join([*parts, listed([*ordering(found), *found.notes])])


def _tables(found: WorstQueries) -> list[Table]:
    groups = [
        Column("slice", "Slice", text=lambda group: where(group.slice) or "–"),
        Column("queries", "Queries", "count"),
        Column("searches", "Searches", "count"),
        Column("failed", "Failed", "count"),
        Column("share", "Share", "share"),
    ]
    by = found.by
    queries = [
        Column("text", "Query", least=24),
        Column("slice", by or "Slice", shown=by is not None,
               text=lambda each: each.slice.get(by, "–")),
        Column("lost", "Lost", "count",
               text=lambda each: f"{each.lost:,.1f}" if each.lost < 100 else f"{each.lost:,.0f}"),
        Column("searches", "Searches", "count"),
        Column("users", "Users", "count", drop=2),
        Column("share", "Fails", "share"),
        Column("low", "95 %", "share", high="high"),
        Column("clicked", "CTR", "share", drop=4),
        Column("satisfied", "SAT", "share", drop=3),
        Column("reason", "Mostly", "words"),
        Column("next", "Next", value=_instead, drop=1),
    ]  # fmt: skip
    both = [Table(f"By {by}", groups, found.groups), Table("", queries, found.queries)]
    return [table for table in both if table.rows]


def _instead(each: LostQuery) -> str:
    text = ", ".join(f"{text} ({count:,})" for text, count in each.next_queries[:_NEXT])
    return text if len(text) <= 30 else f"{text[:29]}…"


def _flat(each: LostQuery, by: str | None) -> dict[str, Any]:
    row = asdict(each)
    part, failures, following = (row.pop(k) for k in ("slice", "by_failure", "next_queries"))
    row |= {f"slice_{by}": part.get(by)} if by else {}
    row |= {f"failed_{name.replace(' ', '_')}": count for name, count in failures.items()}
    row["next_query"], row["next_count"] = following[0] if following else (None, None)
    return row
