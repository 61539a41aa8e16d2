"""karat online watch."""

from __future__ import annotations

from typing import Any

from karat.cli import mistakes, options
from karat.cli.online import options as online_options


@options.command("karat online watch", "karat online watch --by arm --margin 0.02")
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
    "Post the result as JSON if something got worse, karat cannot tell, or the log is broken; "
    "signed if KARAT_WEBHOOK_SECRET is set.",
)
@online_options.only
@online_options.engine
@options.output("table", "json")
@options.all_notes
def watch(
    metrics: tuple[str, ...], notify: str | None, output: str, all_notes: bool, **settings: Any
) -> int:
    """Compare the latest window with earlier weeks, and report changes: metric, slice, queries.

    Exit codes, for schedulers: 0 nothing got worse · 1 something did · 3 cannot tell: too few
    earlier windows, a window that is incomplete in the log, or no events in it.
    """
    from karat.cli.release.trend import now, send
    from karat.cli.workspace.workspace import clock
    from karat.clients import webhook
    from karat.reports.online import watch as shown
    from karat.store.events.log import NoEvents
    from karat.workflows.online import watch as watching

    if notify is not None:
        webhook.checked(notify)
    try:
        with online_options.counting(settings) as (log, engine, rest):
            found = watching.watch(log, engine, now=clock(), metrics=metrics or None, **rest)
    except NoEvents as error:
        mistakes.say(error)
        return 3
    options.emit(shown, found, output, all_notes=all_notes)
    if notify is not None:
        send(notify, watching.event(found, time=now()))
    return found.exit_code
