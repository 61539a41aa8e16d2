"""Alerts in a terminal: a list, or one with its history."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from karat.reports.online.watch import show_cause
from karat.reports.table import Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.tables.days import time_text
from karat.tables.online.alerts import Alert, AlertAction


def show(found: Sequence[Alert] | Alert, out: Console) -> None:
    if not isinstance(found, Alert):
        _show_list(found, out)
        return
    out.print(plain(f"Alert {found.id}: {state_text(found)}", "bold"))
    out.print(plain(f"seen in {found.window}, opened {time_text(found.opened_us)} UTC", "dim"))
    show_cause(found.cause, out)
    if found.actions:
        out.print()
    for action in found.actions:
        out.print(plain(f"{time_text(action.time_us)} UTC: {action_text(action)}"))


def _show_list(found: Sequence[Alert], out: Console) -> None:
    if not found:
        out.print(plain("No alerts."))
        return
    columns = [
        Column("id", "Alert", "count"),
        Column("state", "State", text=state_text),
        Column("text", "What"),
    ]
    draw(Table("", columns, found), out)


def state_text(alert: Alert) -> str:
    """The state of an alert, with who changed it and until when."""
    last = next((each for each in reversed(alert.actions) if each.action == alert.state), None)
    if alert.state == "muted" and alert.until_us is not None:
        until = f"muted until {time_text(alert.until_us)} UTC"
        return until if last is None else f"{until} by {last.person}"
    if alert.state == "over" and alert.closed_us is not None:
        return f"over since {time_text(alert.closed_us)} UTC"
    return alert.state if last is None else f"{alert.state} by {last.person}"


def action_text(action: AlertAction) -> str:
    """What somebody did, and why."""
    until = "" if action.until_us is None else f" until {time_text(action.until_us)} UTC"
    note = f": {action.note}" if action.note else ""
    return f"{action.action}{until} by {action.person}{note}"
