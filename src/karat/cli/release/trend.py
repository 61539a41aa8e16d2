"""karat trend."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.pages import need_report, show_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karat.clients.webhook import Delivery
    from karat.tables.release.trend import Trend


@options.command(
    "karat trend history.jsonl",
    "karat trend history.jsonl -f html -o trend.html --open",
    "karat trend history.jsonl --fail-on-drift",
)
@click.argument("history", metavar="HISTORY")
@options.measures("A measure of the history; repeat for more.  [default: all]")
@options.option("--slice A=V", "Show one slice, such as class=name.  [default: all queries]")
@options.option("--run NAME", "Show one run.  [default: all]")
@options.option(
    "--series NAME",
    "Show one series, or join those whose names match a pattern such as 'night*' into one.  "
    "[default: each name is a series]",
)
@options.option(
    "--last N",
    "Show the last N points; all are tested.  [default: 20 in a table, 500 on a page, else all]",
    type=click.IntRange(min=1),
)
@options.output("table", "json", "html")
@options.all_notes
@options.option("-o --output path FILE", "Write to this file.")
@options.open_page
@options.option(
    "--notify URL",
    "Post the result as JSON if a measure drifts or dropped, or the newest point does not count, "
    "or nothing was compared; signed if KARAT_WEBHOOK_SECRET is set.",
)
@options.option(
    "--fail-on-drift",
    "Exit with 1 if a measure drifts, or dropped significantly; with 3 if nothing was compared, "
    "or the newest point does not count or lacks a measure.",
)
@options.measures_from
def trend(
    history: str,
    measures: tuple[str, ...],
    last: int | None,
    output: str,
    all_notes: bool,
    path: str | None,
    open_page: bool,
    notify: str | None,
    fail_on_drift: bool,
    **where: Any,
) -> int:
    """Show each measure over time, what changed between points, drops, and drift.

    HISTORY is a file written by karat evaluate --history FILE or karat gate --history FILE.
    Drift is many small steps for the worse, none of which need be significant; significant drops
    are reported first. A point whose search did not answer, or whose gate was unhealthy, does not
    count.
    """
    from karat.clients import webhook
    from karat.workflows.release.trend import event
    from karat.workflows.release.trend import trend as trended

    if notify is not None:
        webhook.checked(notify)
    need_report(path if output == "html" else None, opened=open_page, by="-f html -o trend.html")
    shown = 20 if last is None and output == "table" else last
    found = trended(history, measures or None, last=shown, **where)
    _print(found, output, path, all_notes=all_notes)
    if open_page and path is not None:
        show_page(path)
    if notify is not None:
        send(notify, event(found, time=now()))
    if output != "table" or path is not None:
        _aside(found)
    if not fail_on_drift:
        return 0
    return 1 if found.drifting or found.worsened else 3 if found.cannot_tell else 0


def _aside(found: Trend) -> None:
    """Print on standard error which series lack a newest point that counts."""
    from karat.reports.phrases.trend import place, uncompared, untold, why
    from karat.reports.writers.plain import plain

    sentences = set()
    for series in found.untold:
        newest = series.marks[-1]
        where = f"{series.run}, {place(newest.time, newest.commit)}"
        if series.without:
            sentences.add(f"cannot tell {series.name}: {untold(series)}")
        else:
            sentences.add(f"the newest point does not count: {where}: {why(newest)}")
    nothing = uncompared(found)
    for sentence in [*([nothing] if nothing else []), *sorted(sentences)]:
        print(f"karat: {plain(sentence)}", file=sys.stderr)


def now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(at_us: int | None = None) -> str:
    """A time in UTC, by default now, to the microsecond: points of one second keep their order."""
    from datetime import UTC, datetime, timedelta

    when = datetime.now(UTC)
    if at_us is not None:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def commit(given: str | None, environment: Mapping[str, str]) -> str | None:
    """The commit given, or that of GitHub Actions, GitLab CI and others."""
    names = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION")
    return given or next((environment[name] for name in names if environment.get(name)), None)


def send(url: str, event: dict[str, Any] | None) -> None:
    """Post an event, if any; a failure is printed, and does not change the exit code."""
    import os

    from karat.clients import webhook

    if event is None:
        return
    report(webhook.post(url, event, secret=os.environ.get(webhook.SECRET)))


def report(delivery: Delivery) -> None:
    """Print why an event was not delivered, if so."""
    if not delivery.delivered:
        times = "1 attempt" if delivery.tries == 1 else f"{delivery.tries} attempts"
        failure = f"karat: notification failed after {times}: {delivery.reason}"
        print("".join(c if c.isprintable() else ascii(c)[1:-1] for c in failure), file=sys.stderr)


def _print(found: Trend, output: str, path: str | None, *, all_notes: bool) -> None:
    if output == "table":
        from io import StringIO

        from karat.reports.release.trend import show
        from karat.reports.writers.terminal import console

        if path is None:
            show(found, options.out(), all_notes=all_notes)
            return
        text = StringIO()
        show(found, console(text, 80), all_notes=True)
        _write(text.getvalue(), path)
    elif output == "json":
        from karat.reports.writers.plain import to_json

        _write(to_json(found), path)
    else:
        from karat.reports.release.trend_page import to_html

        _write(to_html(found), path)


def _write(text: str, path: str | None) -> None:
    text = text.encode("utf-8", "replace").decode()  # file names may not be valid UTF-8
    if path is None or path == "-":
        sys.stdout.write(text)
        return
    from pathlib import Path

    from karat.formats.tables.writing import beside

    with beside(Path(path)) as stream:
        stream.write(text.encode())
