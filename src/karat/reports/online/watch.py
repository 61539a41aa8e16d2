"""A watch in a terminal: health, changes, and the queries behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from rich.console import Console

from karat.reports.phrases.numbers import counted
from karat.reports.phrases.online import (
    cause_text,
    change_text,
    difference,
    explained_text,
    onset_text,
    quoted,
    usual_text,
    usual_values,
    value,
    where,
)
from karat.reports.table import Column, Table, of_texts
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import show_footnotes, show_notes
from karat.tables.online.watch import Cause, Change, Verdict, Watched

_CHANCE = "* outside the range of 95 of 100 windows; among {tests} tests, that may be chance"
_WORDS: Mapping[Verdict, str] = {
    "unhealthy": "unhealthy: the log cannot be trusted",
    "worse": "worse than usual",
    "cannot_tell": "cannot tell",
    "fine": "as usual",
}


def show(found: Watched, out: Console, *, all_notes: bool = False) -> None:
    better = found.found("better")
    strong = "" if found.verdict == "fine" else "bold"
    out.print(plain(f"{found.window}: {verdict_text(found)}", strong))
    for sentence in found.health:
        out.print(plain(sentence, "bold"))
    if found.searches and found.compared:
        out.print(plain(compared_text(found), "dim"))
    for cause in found.causes:
        show_cause(cause, out)
    for change in better:
        out.print()
        out.print(plain(change_text(change)))
        if change.queries:
            draw(_queries(change), out)
    rest = found.found("usual")
    if rest:
        out.print()
        shown = [change for change in rest if not change.slice or _outside(change)]
        if shown:
            draw(_usual("As usual", shown), out)
        if any(map(_outside, shown)):
            show_notes([_CHANCE.format(tests=found.tests)], out)
        if len(rest) > len(shown):
            more = len(rest) - len(shown)
            show_notes([f"{more:,} more in slices, as usual (--format json lists them)"], out)
    untold = [change for change in found.found("cannot_tell") if not change.slice]
    notes = [change_text(change) for change in untold]
    show_notes([note for note in notes if note not in found.health], out)
    show_footnotes(found.notes, out, every=all_notes)


def show_cause(cause: Cause, out: Console) -> None:
    """Print a cause, what it explains, and the queries behind it."""
    out.print()
    out.print(plain(cause_text(cause), "bold"))
    usual = usual_values(cause.lead)
    known = f"usual: {usual}; " if usual else ""
    out.print(plain(f"{known}onset: {onset_text(cause.onset)}", "dim"))
    if cause.explains:
        out.print(plain(f"explains {'; '.join(map(explained_text, cause.explains))}", "dim"))
    if cause.lead.queries:
        draw(_queries(cause.lead), out)


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


def compared_text(found: Watched) -> str:
    """The number of searches and the windows compared with, in words."""
    usual = ""
    if found.searches_before is not None:
        usual = f" ({found.searches_before:,.0f} in an earlier one)"
    like = _kind(found)
    windows = counted(len(found.compared), f"earlier {like}", f"earlier {like}s")
    alike = " of the same weekday and hour" if like == "window" else ""
    text = (
        f"{counted(found.searches, 'search')}{usual}; compared with "
        f"{windows}{alike}, back to {found.compared[-1]}; {counted(found.tests, 'test')}"
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
    metric = change.metric
    rows: list[tuple[str, ...]] = [
        (quoted(query.text), difference(metric, query.adds), value(metric, query.value),
         f"{query.n:,.0f}", value(metric, query.before), f"{query.n_before:,.0f}")
        for query in change.queries
    ]  # fmt: skip
    if change.others is not None and abs(change.others) > 1e-9 * abs(change.change or 0.0):
        rows.append(("all others", difference(metric, change.others), "", "", "", ""))
    return of_texts("", ("Query", "Adds", "Is", "Of", "Was", "Of"), rows)


def _usual(title: str, rows: Sequence[Change]) -> Table:
    columns = [
        Column("metric", "Metric"),
        Column("slice", "Slice", shown=any(change.slice for change in rows),
               text=lambda change: where(change.slice) or "all"),
        Column("value", "Is", "number",
               text=lambda c: value(c.metric, c.value) + ("*" if _outside(c) else "")),
        Column("usual_low", "Usual", "number", text=lambda change: usual_text(change) or "–"),
        Column("n", "n", "count", drop=2),
        Column("windows", "Windows", "count", drop=1),
    ]  # fmt: skip
    return Table(title, columns, rows)
