"""A watch in a terminal and as JSON: health, changes, and the queries behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date

from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.reports.phrases.numbers import counted
from karat.reports.phrases.online import (
    as_wide,
    change_text,
    difference,
    quoted,
    usual_text,
    value,
    where,
)
from karat.reports.writers.cells import Cells, base, fitted, plain
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.online.watch import Change, Verdict, Watched

_CHANCE = "* outside the range of 95 of 100 windows; among {tests} tests, that may be chance"
_WORDS: Mapping[Verdict, str] = {
    "unhealthy": "unhealthy: the log cannot be trusted",
    "worse": "worse than usual",
    "cannot_tell": "cannot tell",
    "fine": "as usual",
}


def show(found: Watched, out: Console, *, all_notes: bool = False) -> None:
    """Print a watch: health first, then changes, then what is as usual."""
    better = found.found("better")
    strong = "" if found.verdict == "fine" else "bold"
    out.print(plain(f"{found.window}: {verdict_text(found)}", strong))
    for sentence in found.health:
        out.print(plain(sentence, "bold"))
    if found.searches and found.compared:
        out.print(plain(compared_text(found), "dim"))
    for change in (*found.found("worse"), *better):
        out.print()
        out.print(plain(change_text(change), "bold" if change.verdict == "worse" else ""))
        if change.queries:
            out.print(_queries(change))
    rest = found.found("usual")
    if rest:
        out.print()
        shown = [change for change in rest if not change.slice or _outside(change)]
        if shown:
            out.print(_usual("as usual", shown, out))
        if any(map(_outside, shown)):
            show_notes([_CHANCE.format(tests=found.tests)], out)
        if len(rest) > len(shown):
            more = len(rest) - len(shown)
            show_notes([f"{more:,} more in slices, as usual (--format json lists them)"], out)
    untold = [change for change in found.found("cannot_tell") if not change.slice]
    notes = [change_text(change) for change in untold]
    show_notes([note for note in notes if note not in found.health], out)
    show_footnotes(found.notes, out, every=all_notes)


def verdict_text(found: Watched) -> str:
    """The verdict of a watch, in words."""
    if found.verdict == "fine" and found.found("better"):
        return "nothing is worse, something is better"
    return _WORDS[found.verdict]


def _outside(change: Change) -> bool:
    """Whether a value is outside the usual interval, though that may be chance."""
    if change.value is None or change.usual_low is None or change.usual_high is None:
        return False
    return not change.usual_low <= change.value <= change.usual_high


def to_json(found: Watched) -> str:
    """The documented JSON object."""
    return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def compared_text(found: Watched) -> str:
    """The number of searches and the windows compared with, in words."""
    usual = ""
    if found.searches_before is not None:
        usual = f" ({found.searches_before:,.0f} in an earlier one)"
    like = _kind(found)
    windows = counted(len(found.compared), f"earlier {like}", f"earlier {like}s")
    alike = " of the same weekday and hour" if like == "window" else ""
    text = (
        f"{counted(found.searches, 'search', 'searches')}{usual}; compared with "
        f"{windows}{alike}, back to {found.compared[-1]}; {counted(found.tests, 'test', 'tests')}"
    )
    if found.absent:
        text += f"; {_absent(found)} not in the log"
    return text


def _kind(found: Watched) -> str:
    """The noun for windows: the weekday if they are whole days."""
    if len(found.window) == len("2026-11-20"):
        return f"{date.fromisoformat(found.window):%A}"
    return "window"


def _absent(found: Watched) -> str:
    """``1 earlier window is``, ``4 earlier Fridays are``."""
    kind = _kind(found)
    count = len(found.absent)
    return (
        f"{counted(count, f'earlier {kind}', f'earlier {kind}s')} {'is' if count == 1 else 'are'}"
    )


def _queries(change: Change) -> Table:
    table = base()
    table.add_column("query", overflow="fold")
    for head in ("adds", "is", "of", "was", "of"):
        table.add_column(head, justify="right", no_wrap=True)
    for query in change.queries:
        table.add_row(
            plain(quoted(query.text)),
            difference(change.metric, query.adds),
            value(change.metric, query.value),
            f"{query.n:,.0f}",
            value(change.metric, query.before),
            f"{query.n_before:,.0f}",
        )
    if change.others is not None and abs(change.others) > 1e-9 * abs(change.change or 0.0):
        table.add_row(
            Text("all others", "dim"), difference(change.metric, change.others), "", "", "", ""
        )
    return table


def _usual(title: str, rows: list[Change], out: Console) -> Table:
    sliced = any(change.slice for change in rows)
    cells: list[Cells] = [
        {
            "metric": plain(change.metric),
            **({"slice": plain(where(change.slice) or "all")} if sliced else {}),
            "is": value(change.metric, change.value) + ("*" if _outside(change) else ""),
            "usual": usual_text(change) or "–",
            "n": f"{change.n:,}",
            "windows": f"{change.windows:,}",
        }
        for change in rows
    ]
    return fitted(title, as_wide(cells), ("windows", "n"), out, names=2 if sliced else 1)
