"""karat golden import and export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli.workspace import clock, folder, opened

if TYPE_CHECKING:
    from karat.tables.exchange import Exchange

_FORMATS = (
    "trec, beir, csv, quepid-csv, quepid-book, rre, rank-eval, opensearch-judgments and others; "
    "a wrong name lists them all"
)


@click.command("import")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@folder
@click.option(
    "--format",
    "name",
    metavar="NAME",
    help=f"queries, documents, {_FORMATS}.  [default: told by content]",
)
@click.option("--rater", metavar="NAME", help="Who judged, where a file names nobody.")
def take_in(files: tuple[str, ...], start: Path, name: str | None, rater: str | None) -> None:
    """Import queries, documents, judgments and runs, from karat's formats or other tools'.

    Each file comes in whole or not at all, and what was kept, assumed and lost is said.
    """
    from karat.reports.figures import counted
    from karat.workflows.exchanging import take_in as taken

    with opened(start) as found:
        for file in files:
            held = taken(found, file, now=clock(), format=name, rater=rater)
            new = [
                counted(count, f"new {what}", f"new {several}")
                for count, what, several in (
                    (held.queries, "query", "queries"),
                    (held.documents, "document", "documents"),
                    (held.judgments, "judgment", "judgments"),
                )
                if count
            ]
            if held.changed:
                new.append(f"{held.changed:,} changed")
            runs = [f"runs {', '.join(held.runs)}"] if held.runs else []
            print(f"{file} ({held.exchange.format}): {', '.join([*new, *runs]) or 'nothing new'}")
            sys.stdout.flush()  # before what is said of it on standard error
            _say(held.exchange)


@click.command("export")
@click.argument("path", metavar="FILE")
@folder
@click.option("--format", "name", metavar="NAME", default="beir", show_default=True, help=_FORMATS)
@click.option("--edition", metavar="NAME", help="An edition.  [default: as it stands]")
@click.option("--each-rater", is_flag=True, help="Every rater's judgment, not the grade of all.")
def give_out(path: str, start: Path, name: str, edition: str | None, each_rater: bool) -> None:
    """Export the golden set or an edition: to evaluate with, or for another tool."""
    from karat.workflows.exchanging import give_out as given

    with opened(start) as found:
        _say(given(found, path, name, edition=edition, each_rater=each_rater))


def _say(exchange: Exchange) -> None:
    """What was kept, assumed and lost: on standard error, beside what is exported."""
    for word, sentences in (
        ("kept", exchange.kept),
        ("assumed", exchange.assumed),
        ("lost", exchange.lost),
    ):
        for sentence in sentences:
            print(f"  {word}: {sentence}", file=sys.stderr)
