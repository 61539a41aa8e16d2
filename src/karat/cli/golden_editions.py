"""karat golden freeze, editions, diff, coverage and stale."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from karat.cli import options
from karat.cli.workspace import clock, folder, opened


@click.command()
@click.argument("name")
@folder
def freeze(name: str, start: Path) -> None:
    """Make an edition of the golden set as it stands; nothing changes it after.

    Its grades are the adjudicated ones, else the majority's, else the median. karat.toml says how
    far raters must agree, by the lower end of the interval.
    """
    from karat.workflows.editions import freeze as frozen

    with opened(start) as found:
        made = frozen(found, name, now=clock())
    print(f"{made.name}: {made.queries:,} queries, {made.grades:,} grades, SHA-256 {made.sha256}")
    mark = "" if made.agreed.verdict == "ok" else "warning: "
    print(f"karat: {mark}{made.agreed.sentence}", file=sys.stderr)


@click.command()
@folder
@options.output("table", "json")
def editions(start: Path, output: str) -> None:
    """List the editions."""
    from karat.reports import golden as reports
    from karat.workflows.editions import list_editions

    with opened(start) as found:
        rows = list_editions(found)
    if output == "json":
        print(reports.to_json(rows))
    else:
        reports.show_editions(rows, options.out())


@click.command()
@click.argument("old")
@click.argument("new", default="now")
@folder
@click.option("--by", metavar="ATTRIBUTE", help="Count by this attribute of the queries.")
@options.output("table", "json")
def diff(old: str, new: str, start: Path, by: str | None, output: str) -> None:
    """Say what changed from edition OLD to NEW, or to the golden set as it stands."""
    from karat.reports import golden as reports
    from karat.workflows.editions import compare_editions

    with opened(start) as found:
        changed = compare_editions(found, old, new, by=by)
    if output == "json":
        print(reports.to_json(changed))
    else:
        reports.show_diff(changed, options.out())


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@folder
@click.option("--edition", metavar="NAME", help="An edition.  [default: as it stands]")
@click.option("-k", type=int, default=10, show_default=True, help="Documents of each query.")
@options.output("table", "json")
def coverage(runs: tuple[str, ...], start: Path, edition: str | None, k: int, output: str) -> None:
    """Say how much of the top k of runs is judged, and what is not."""
    from karat.reports import golden as reports
    from karat.workflows.editions import coverage as covered

    with opened(start) as found:
        how_much = covered(found, runs, now=clock(), name=edition, k=k)
    if output == "json":
        print(reports.to_json(how_much))
    else:
        reports.show_coverage(how_much, options.out())


@click.command()
@folder
@options.output("table", "json")
def stale(start: Path, output: str) -> None:
    """List judgments of documents whose text has changed since they were shown."""
    from karat.reports import golden as reports
    from karat.workflows.editions import stale_judgments

    with opened(start) as found:
        old = stale_judgments(found)
    if output == "json":
        print(reports.to_json(old))
    else:
        reports.show_stale(old, options.out())
