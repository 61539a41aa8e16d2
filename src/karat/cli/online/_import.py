"""karat online import and status."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.online.options import events_folder, found_workspace, master, where
from karat.cli.progress import watching
from karat.cli.workspace.workspace import clock, tell

if TYPE_CHECKING:
    from karat.tables.online.events import EmptyHits

IMPORT_ENGINES = ("polars", "spark")


@options.command(
    "karat online import events.jsonl --check",
    "karat online import events.csv --mapping m.toml --timezone Europe/Berlin",
    "karat online import /shared/logs --events /shared/log --engine spark",
    name="import",
)
@click.argument("logs", metavar="LOG…", nargs=-1, required=True)
@where
@options.option(
    "--mapping FILE",
    "Mapping of the columns and actions of your log (TOML).",
    type=click.Path(path_type=Path),
)
@options.option("--clocks ZONE", "Time zone of timestamps that have none.  [default: UTC]")
@options.option(
    "--timezone ZONE",
    "Time zone of days, for a new event store.  [default: that of the workspace, or UTC]",
)
@options.option(
    "--position-base",
    "Number of the first position.  [default: detected from the lowest in the log]",
    type=click.IntRange(0, 1),
)
@options.option(
    "--engine",
    "Engine that imports: spark reads files in parallel, on any number of machines.",
    IMPORT_ENGINES[0],
    type=click.Choice(IMPORT_ENGINES),
)
@master
@options.option("--partial", "Import a damaged file up to the damage.")
@options.option("--check", "Only read and report; import nothing.")
@options.option("--simulated", "Mark the events as simulated.")
@options.output("table", "json")
def import_log(
    logs: tuple[str, ...],
    start: Path,
    events: str | Path | None,
    timezone: str | None,
    output: str,
    **settings: Any,
) -> None:
    """Import event logs into the event store, each event once.

    LOG is a file, a folder or a pattern, also in S3 (s3://BUCKET/logs/*.gz): UBI queries and events
    (also as OpenSearch stores them), JSON Lines, Parquet, CSV or TSV, plain or compressed. What was
    imported before is skipped; what is dropped or assumed is reported.
    """
    from karat.reports.online.import_ import show_imported
    from karat.workflows.online._import_empty import question
    from karat.workflows.online.import_events import import_events

    folder = events
    if folder is None:
        workspace = found_workspace(start)
        folder, timezone = workspace.events, timezone or workspace.timezone
    with ExitStack() as screen:
        watch = screen.enter_context(watching())

        def ask(empty: EmptyHits) -> bool:
            screen.close()  # no progress bar over the question
            usual = True if empty.likely_nothing else None
            return click.confirm(question(empty), default=usual, err=True)

        found = import_events(
            folder,
            logs,
            now=clock(),
            timezone=timezone,
            **settings,
            watch=watch,
            ask=ask if sys.stdin.isatty() and sys.stderr.isatty() else None,
        )
    tell(found, output, show_imported)


@options.command("karat online status")
@where
@options.output("table", "json")
def status(start: Path, events: str | Path | None, output: str) -> None:
    """Show what the event store contains: events, days, and what is never logged."""
    from karat.reports.online.import_ import show_held
    from karat.workflows.online.import_events import held

    tell(held(events_folder(start, events)), output, show_held)
