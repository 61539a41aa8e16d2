"""karat lint."""

from __future__ import annotations

import click

from karat.cli import options
from karat.cli.progress import watching


@options.command(
    "karat lint qrels.txt bm25.trec", "karat lint qrels.txt bm25.trec queries.csv --strict"
)
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@options.option(
    "--role FILE=ROLE",
    "Role of a file, if not clear from its content: qrels, run, queries, documents.",
    multiple=True,
)
@options.option("--strict", "Exit with 1 if there is an error or a warning.")
@options.output("table", "json", "github")
def lint(files: tuple[str, ...], role: tuple[str, ...], strict: bool, output: str) -> None:
    """Check files for errors, line by line.

    FILE… are qrels, runs, queries, documents or BEIR folders, in any order; their roles are
    detected from their content. Every line is read, and every kind of error is reported with its
    count, its first lines, and the fix.
    """
    from karat.reports.lint import findings as reports
    from karat.workflows.lint.lint import lint as linted
    from karat.workflows.lint.roles import given

    roles = given(list(role), list(files))
    with watching() as watch:
        found = linted(list(files), roles, watch)
    options.emit(reports, found, output)
    if strict and not found.clean:
        raise click.exceptions.Exit(1)
