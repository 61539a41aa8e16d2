"""Summary of a simulated log: its events and its ground truth."""

from __future__ import annotations

from rich.console import Console

from karat.online.simulate.said import SimulatedLog
from karat.reports.phrases.numbers import counted, percent
from karat.reports.writers.cells import base, plain


def show_simulated(log: SimulatedLog, out: Console) -> None:
    """Print what was simulated."""
    events = counted(log.events, "simulated event", "simulated events")
    head = f"{log.file or 'not written'}: {events}, {log.first} to {log.last}."
    out.print(plain(f"{head} All events are simulated."), soft_wrap=True)
    keystrokes = log.kinds.get("search", 0) - log.requests - log.robots
    rows = [
        ("users", f"{log.users:,}", f"with {counted(log.sessions, 'session', 'sessions')}"),
        ("searches", f"{log.searches:,}", f"in {counted(log.requests, 'request', 'requests')}"),
        ("besides", f"{keystrokes:,}", f"keystrokes, and {log.robots:,} searches by bots"),
        ("satisfied", percent(log.satisfied), "of searches with results"),
        ("nothing", percent(log.zero), "of searches found nothing"),
        ("arms", ", ".join(log.arms), ""),
    ]
    for name, value, rest in rows:
        out.print(plain(f"  {name:<10} {value} {rest}".rstrip()), soft_wrap=True)
    table = base(f"Ground truth by rank ({log.behaviour})")
    for head in ("rank", "shown", "attractive", "examined", "clicked", "expected"):
        table.add_column(head, justify="right")
    for row in log.places:
        shares = (row[name] for name in ("attraction", "examined", "clicked", "expected"))
        table.add_row(f"{row['place']}", f"{row['shown']:,}", *(f"{share:.4f}" for share in shares))
    out.print(table)
