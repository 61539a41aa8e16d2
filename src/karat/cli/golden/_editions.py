"""karat golden freeze, editions, diff, coverage and stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened, tell
from karat.errors import PolicyRefused

if TYPE_CHECKING:
    from rich.console import Console

    from karat.workflows.golden.editions import Covered, Frozen


@options.command("karat golden freeze 2026-11")
@click.argument("name")
@folder
@options.output("table", "json")
def freeze(name: str, start: Path, output: str) -> None:
    """Create an edition: an immutable version of the golden set as it is now.

    The grade of a pair is the adjudicated one, else the majority's, else the median. karat.toml
    sets the required agreement of raters, by the lower end of its interval.
    """
    from karat.reports.phrases.numbers import counted
    from karat.workflows.golden.editions import freeze as frozen

    with opened(start) as found:
        try:
            made = frozen(found, name, now=clock())
        except PolicyRefused as error:
            if output == "json":
                click.echo(
                    json.dumps({"verdict": "fail", "reason": str(error)}, ensure_ascii=False)
                )
            raise
    tell(made, output, _show)
    if made.contradicted:
        some = counted(made.contradicted, "imported grade")
        print(
            f"karat: {some} contradicted by raters, whose grades count: karat golden disagreements",
            file=sys.stderr,
        )
    mark = "" if made.agreed.verdict == "ok" else "warning: "
    print(f"karat: {mark}{made.agreed.sentence}", file=sys.stderr)


def _show(made: Frozen, out: Console) -> None:
    out.print(
        f"{made.name}: {made.queries:,} queries, {made.grades:,} grades, SHA-256 {made.sha256}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )


@options.command("karat golden editions")
@folder
@options.output("table", "json")
def editions(start: Path, output: str) -> None:
    """List the editions."""
    from karat.reports.golden import golden as reports
    from karat.workflows.golden.editions import list_editions

    with opened(start) as found:
        rows = list_editions(found)
    tell(rows, output, reports.show_editions)


@options.command("karat golden diff 2026-10 2026-11")
@click.argument("old")
@click.argument("new", default="now")
@folder
@options.option("--by ATTRIBUTE", "Count by this attribute of the queries.")
@options.output("table", "json")
def diff(old: str, new: str, start: Path, by: str | None, output: str) -> None:
    """Show what changed from edition OLD to NEW, or to the golden set as it is now."""
    from karat.reports.golden import golden as reports
    from karat.workflows.golden.editions import compare_editions

    with opened(start) as found:
        changed = compare_editions(found, old, new, by=by)
    tell(changed, output, lambda changed, out: reports.show_diff(changed, out, by))


@options.command("karat golden coverage dense.trec -k 10")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@folder
@options.option("--edition NAME", "Edition to use.  [default: the golden set as it is now]")
@options.option("-k", "Documents per query.", 10)
@options.output("table", "json")
def coverage(runs: tuple[str, ...], start: Path, edition: str | None, k: int, output: str) -> None:
    """Show how much of the top k of runs is judged, and what is not."""
    from karat.workflows.golden.editions import coverage as covered

    with opened(start) as found:
        how_much = covered(found, runs, now=clock(), name=edition, k=k)
    tell(how_much, output, _show_coverage)


def _show_coverage(found: Covered, out: Console) -> None:
    from karat.reports.golden import golden as reports
    from karat.reports.writers.terminal import show_notes

    reports.show_coverage(found, out)
    show_notes(found.notes, out)


@options.command("karat golden stale")
@folder
@options.output("table", "json")
def stale(start: Path, output: str) -> None:
    """List judgments of documents whose text has changed since they were judged."""
    from karat.reports.golden import golden as reports
    from karat.workflows.golden.editions import stale_judgments

    with opened(start) as found:
        old = stale_judgments(found)
    tell(old, output, reports.show_stale)
