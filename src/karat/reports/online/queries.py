"""Worst queries as tables, Markdown, JSON and CSV: losses, reasons, and later searches."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import counted, percent
from karat.reports.phrases.online import as_wide, during, where
from karat.reports.writers.cells import Cells, fitted, plain
from karat.reports.writers.plain import csv_table, markdown_cell, markdown_table
from karat.reports.writers.terminal import show_footnotes
from karat.tables.online.worst_queries import LostGroup, LostQuery, WorstQueries

_NEXT = 3  # next queries in a cell
_SORTED = {
    "lost": "by lost searches: searches times the share that fails, which is shrunk towards that "
    "of all queries, more so for queries of few users",
    "zero": "by searches without results",
    "abandoned": "by searches that had results and no action",
    "reformulated": "by searches that were reformulated",
}


def show(found: WorstQueries, out: Console, *, all_notes: bool = False) -> None:
    """Print the queries, worst first, and notes."""
    out.print(plain(headline(found)))
    if found.groups:
        out.print(fitted(f"by {found.by}", as_wide(_groups(found)), (), out))
    if found.queries:
        spare = ("users", "SAT", "CTR", "next")
        rows = [_cells(query, by=found.by) for query in found.queries]
        out.print(fitted("", as_wide(rows), spare, out, names=2 if found.by else 1))
        for query in found.queries[:_NEXT]:
            out.print(plain(f"{query.text}: {query.why}", "dim"))
    show_footnotes([*ordering(found), *found.notes], out, every=all_notes)


def headline(found: WorstQueries) -> str:
    """How many searches failed, in a sentence."""
    searches = counted(found.searches, "search", "searches")
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
        users = counted(round(found.prior), "user", "users")
        notes.append(
            f"the share of a query with {users} is shrunk half way to {percent(found.share)}"
        )
    if found.hidden:
        notes.append(f"{counted(found.hidden, 'row', 'rows')} not shown (--limit, --min-searches)")
    return notes


def to_json(found: WorstQueries) -> str:
    """The documented JSON object."""
    return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(found: WorstQueries) -> str:
    """A row per query and slice."""
    return csv_table([_flat(query, found.by) for query in found.queries])


def to_markdown(found: WorstQueries) -> str:
    """The tables and notes as Markdown."""
    parts = [f"{markdown_cell(headline(found))}\n"]
    if found.groups:
        parts.append(_table(_groups(found), 1))
    if found.queries:
        rows = [_cells(query, by=found.by) for query in found.queries]
        parts.append(_table(rows, 2 if found.by else 1))
    notes = [*ordering(found), *found.notes]
    parts.append("".join(f"- {markdown_cell(note)}\n" for note in notes))
    return "\n".join(parts)


def _cells(each: LostQuery, *, by: str | None) -> Cells:
    instead = ", ".join(f"{text} ({count:,})" for text, count in each.next_queries[:_NEXT])
    return {
        "query": plain(each.text),
        **({by: plain(each.slice.get(by, "–"))} if by else {}),
        "lost": f"{each.lost:,.1f}" if each.lost < 100 else f"{each.lost:,.0f}",
        "searches": f"{each.searches:,}",
        "users": f"{each.users:,}",
        "fails": percent(each.share),
        "95 %": _span(each),
        "CTR": percent(each.clicked) or "–",
        "SAT": percent(each.satisfied) or "–",
        "mostly": plain(each.reason),
        "next": plain(instead if len(instead) <= 30 else f"{instead[:29]}…"),
    }


def _span(each: LostQuery) -> str:
    if each.low is None or each.high is None:
        return "–"
    return f"{100 * each.low:.0f}–{100 * each.high:.0f}"


def _groups(found: WorstQueries) -> list[Cells]:
    return [_group(group) for group in found.groups]


def _group(each: LostGroup) -> Cells:
    return {
        "slice": plain(where(each.slice) or "–"),
        "queries": f"{each.queries:,}",
        "searches": f"{each.searches:,}",
        "failed": f"{each.failed:,}",
        "share": percent(each.share),
    }


def _flat(each: LostQuery, by: str | None) -> dict[str, Any]:
    row = asdict(each)
    part, failures, following = (row.pop(k) for k in ("slice", "by_failure", "next_queries"))
    row |= {f"slice_{by}": part.get(by)} if by else {}
    row |= {f"failed_{name.replace(' ', '_')}": count for name, count in failures.items()}
    row["next_query"], row["next_count"] = following[0] if following else (None, None)
    return row


def _table(rows: list[Cells], texts: int) -> str:
    lines = ([str(cell) for cell in row.values()] for row in rows)
    return markdown_table(list(rows[0]), lines, texts)
