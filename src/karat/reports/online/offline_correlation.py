"""Offline against online, as tables, Markdown, JSON and CSV: correlations, disagreements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from karat.reports.phrases.numbers import counted, three_digits
from karat.reports.phrases.online import as_wide, during, value
from karat.reports.writers.cells import Cells, fitted, plain
from karat.reports.writers.plain import csv_table, markdown_cell, markdown_table
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
    """Print slices, correlations, disagreements and queries."""
    out.print(plain(headline(found)))
    out.print(
        fitted("offline and online", as_wide(_slices(found)), ("p50 ms", "searches", "p95 ms"), out)
    )
    brief = [row for row in found.concord if row.slice is None or row.weighting == "queries"]
    cells = [_concord(row, found.by) for row in brief]
    out.print(fitted("correlations", as_wide(cells), ("n", "95 % "), out, names=4))
    for title, rows in (
        ("classes on which they disagree", found.discord_slices),
        ("queries on which they disagree", found.discord),
    ):
        if rows:
            out.print(plain(title, "bold"))
            show_notes([_sentence(row) for row in rows], out)
            out.print()
    spare = ("p50 ms", "p95 ms", "users")
    shown = found.queries[:_MOST]
    out.print(
        fitted("queries, most searched for first", as_wide(_queries(found, shown)), spare, out)
    )
    show_footnotes(remarks(found, len(shown)), out, every=all_notes)


def headline(found: OfflineCorrelation) -> str:
    """How many queries were matched, in a sentence."""
    return (
        f"{found.run}: {counted(len(found.queries), 'query', 'queries')} judged and searched "
        f"for{during(found.period)}"
    )


def remarks(found: OfflineCorrelation, shown: int | None = None) -> list[str]:
    """Sentences on queries on one side only, and on how to read the numbers."""
    notes: list[str] = []
    if found.judged_only:
        notes.append(
            f"{counted(found.judged_only, 'judged query', 'judged queries')} not searched for: "
            "not included"
        )
    if found.searched_only:
        notes.append(
            f"{counted(found.searched_only, 'query', 'queries')} searched for "
            f"({counted(found.searched_only_searches, 'search', 'searches')}) without a judgment: "
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


def to_json(found: OfflineCorrelation) -> str:
    """The documented JSON object."""
    return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(found: OfflineCorrelation) -> str:
    """A row per query."""
    return csv_table([_flat(row, found) for row in found.queries])


def to_markdown(found: OfflineCorrelation) -> str:
    """The report as Markdown, with all queries."""
    parts = [f"{markdown_cell(headline(found))}\n"]
    for rows, texts in (
        (_slices(found), 1),
        (_concords(found), 4),
        (_queries(found, found.queries), 1),
    ):
        parts.append(_table(rows, texts))
    disagreements = [_sentence(row) for row in (*found.discord_slices, *found.discord)]
    notes = (*disagreements, *remarks(found))
    parts.append("".join(f"- {markdown_cell(note)}\n" for note in notes))
    return "\n".join(parts)


def _sentence(row: Discord) -> str:
    return "; ".join((row.sentence, *row.reasons))


def _slices(found: OfflineCorrelation) -> list[Cells]:
    return [_slice(part, found) for part in found.slices]


def _slice(part: WorldSlice, found: OfflineCorrelation) -> Cells:
    return {
        found.by or "": plain(_ALL if part.slice is None else part.slice),
        "queries": f"{part.queries:,}",
        "searches": f"{part.searches:,}",
        **{name: three_digits(part.offline[name]) for name in found.measures},
        **{name: value(name, part.online[name].value) for name in found.metrics},
        "p50 ms": _ms(part.p50_ms),
        "p95 ms": _ms(part.p95_ms),
    }


def _concords(found: OfflineCorrelation) -> list[Cells]:
    return [_concord(row, found.by) for row in found.concord]


def _concord(row: Concord, by: str | None) -> Cells:
    return {
        "offline": plain(row.measure),
        "online": plain(row.metric + (_LOWER if row.direction == "lower" else "")),
        by or " ": plain(_ALL if row.slice is None else row.slice),
        "each": row.weighting.replace("queries", "query").replace("searches", "search"),
        "n": f"{row.n:,}",
        "Spearman": three_digits(row.spearman).replace("-", "−"),
        "95 %": _span(row.spearman_low, row.spearman_high),
        "tau-b": three_digits(row.kendall).replace("-", "−"),
        "95 % ": _span(row.kendall_low, row.kendall_high),
    }


def _queries(found: OfflineCorrelation, rows: Any) -> list[Cells]:
    return [_query(row, found) for row in rows]


def _query(row: JudgedAndSearched, found: OfflineCorrelation) -> Cells:
    return {
        "query": plain(row.text),
        "searches": f"{row.searches:,}",
        "users": f"{row.users:,}",
        **{name: three_digits(row.offline[name]) for name in found.measures},
        **{name: value(name, row.online[name].value) for name in found.metrics},
        "p50 ms": _ms(row.p50_ms),
        "p95 ms": _ms(row.p95_ms),
    }


def _flat(row: JudgedAndSearched, found: OfflineCorrelation) -> dict[str, Any]:
    flat: dict[str, Any] = {"query_id": row.query_id, "text": row.text}
    if found.by:
        flat[found.by] = row.slice
    flat |= {"searches": row.searches, "users": row.users, **row.offline}
    for name in found.metrics:
        figure = row.online[name]
        flat |= {name: figure.value, f"{name} low": figure.low, f"{name} high": figure.high}
    return flat | {"p50_ms": row.p50_ms, "p95_ms": row.p95_ms, "position": row.position}


def _ms(number: float | None) -> str:
    return "–" if number is None else f"{number:,.0f}"


def _span(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f"{low:.2f} to {high:.2f}".replace("-", "−")


def _table(rows: list[Cells], texts: int) -> str:
    lines = ([str(cell) for cell in row.values()] for row in rows)
    return markdown_table(list(rows[0]), lines, texts)
