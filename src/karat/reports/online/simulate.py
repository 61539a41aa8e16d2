"""Summary of a simulated log: its events and its ground truth."""

from __future__ import annotations

from rich.console import Console

from karat.online.simulate.said import SimulatedLog
from karat.reports.phrases.numbers import counted, percent
from karat.reports.table import Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw

_SHARES = {
    "attraction": "Attractive",
    "examined": "Examined",
    "clicked": "Clicked",
    "expected": "Expected",
}


def show(log: SimulatedLog, out: Console) -> None:
    events = counted(log.events, "simulated event")
    head = f"{log.file or 'not written'}: {events}, {log.first} to {log.last}."
    out.print(plain(f"{head} All events are simulated."), soft_wrap=True)
    keystrokes = log.kinds.get("search", 0) - log.requests - log.robots
    rows = [
        ("users", f"{log.users:,}", f"with {counted(log.sessions, 'session')}"),
        ("searches", f"{log.searches:,}", f"in {counted(log.requests, 'request')}"),
        ("besides", f"{keystrokes:,}", f"keystrokes, and {log.robots:,} searches by bots"),
        ("satisfied", percent(log.satisfied), "of searches with results"),
        ("nothing", percent(log.zero), "of searches found nothing"),
        ("arms", ", ".join(log.arms), ""),
    ]
    for name, value, rest in rows:
        out.print(plain(f"  {name:<10} {value} {rest}".rstrip()), soft_wrap=True)
    columns = [
        Column("place", "Rank", "count"),
        Column("shown", "Shown", "count"),
        *(Column(name, heading, "number", digits=4) for name, heading in _SHARES.items()),
    ]
    draw(Table(f"Ground truth by rank ({log.behaviour})", columns, log.places), out)
