"""karat online watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import mistakes, options
from karat.cli.online import options as online_options

if TYPE_CHECKING:
    from karat.tables.online.events import EventLog
    from karat.tables.online.watch import Watched


@options.command(
    "karat online watch",
    "karat online watch --by arm --margin 0.02",
    "karat online watch --window 6h --notify https://ops.example.org/search",
)
@online_options.where
@options.option(
    "--window SPAN", "Length of a window: 1d, 7d, or hours that divide a day, such as 6h.", "1d"
)
@options.option(
    "--history SPAN",
    "How far back the windows to compare with go: the same weekdays and hours.",
    "56d",
)
@options.option(
    "--until DAY|HOUR",
    "End of the window: a day (2026-11-20) or an hour ('2026-11-20 12:00'), complete or not.  "
    "[default: the latest complete window]",
)
@options.option(
    "-m --metric metrics METRIC",
    "A metric with a direction; repeat for more.  [default: a standard set; karat online metrics "
    "lists all]",
    multiple=True,
)
@options.option(
    "--by SLICE",
    "Slice by arm, class, an attribute of the log, or several at once; repeat for more.",
    multiple=True,
)
@online_options.classes
@options.option(
    "--margin margins SIZE",
    "Largest change that does not matter: 5% (of the expected value), or ZeroResults=0.01; "
    "repeat for more.",
    multiple=True,
)
@online_options.rules
@options.option(
    "--notify URL",
    "Post new alerts, or that karat cannot tell or the log is broken; without a workspace every "
    "result that is not fine. Signed if KARAT_WEBHOOK_SECRET is set.",
)
@options.option(
    "--notify-as form FORMAT",
    "What is posted: json, or a message for Slack.",
    "json",
    type=click.Choice(["json", "slack"]),
)
@online_options.only
@online_options.engine
@options.output("table", "json")
@options.all_notes
def watch(
    metrics: tuple[str, ...],
    notify: str | None,
    form: Any,
    output: str,
    all_notes: bool,
    **settings: Any,
) -> int:
    """Compare the latest window with earlier weeks, and report changes by cause.

    A cause has a metric, a slice, its queries, and the hour in which it began. The latest window of
    a workspace's events opens and closes alerts: karat online alerts.

    Exit codes, for schedulers: 0 nothing got worse · 1 something did · 3 cannot tell: too few
    earlier windows, a window that is incomplete in the log, or no events in it.
    """
    from karat.cli.release.trend import now, report, send
    from karat.cli.workspace.workspace import clock
    from karat.clients import webhook
    from karat.reports.online import watch as shown
    from karat.store.events.log import NoEvents
    from karat.workflows.online import watch as watching

    if notify is not None:
        webhook.checked(notify)
    whole = settings["events"] is None and not settings["only"] and not settings["rules"]
    start = settings["start"]
    try:
        with online_options.counting(settings) as (log, engine, rest):
            found = watching.watch(log, engine, now=clock(), metrics=metrics or None, **rest)
    except NoEvents as error:
        mistakes.say(error)
        return 3
    options.emit(shown, found, output, all_notes=all_notes)
    posted = _remembered(start, log, found, notify, form) if whole else None
    for delivery in posted or ():
        report(delivery)
    if notify is not None and (posted is None or found.verdict != "worse"):
        payload = watching.event(found, time=now())
        send(notify, payload if payload is None else dict(webhook.formed(payload, form)))
    return found.exit_code


def _remembered(
    start: Path, log: EventLog, found: Watched, notify: str | None, form: Any
) -> list[Any] | None:
    """Record the alerts of a workspace; None, with a message, if they cannot be recorded."""
    from karat.cli.workspace.workspace import clock, opened
    from karat.errors import KaratError
    from karat.workflows.online.alerts import remember

    try:
        with opened(start) as workspace:
            return remember(workspace, log, found, now=clock(), notify=notify, form=form)
    except KaratError as error:
        mistakes.say(error)
        return None
