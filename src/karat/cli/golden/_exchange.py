"""karat golden import and export."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.mistakes import printable
from karat.cli.workspace.workspace import clock, folder, opened
from karat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from karat.tables.golden.golden_sets import Exchange
    from karat.workflows.golden.import_ import ImportResult

_FORMATS = (
    "trec, beir, csv, golden, golden-list, quepid-csv, quepid-book, rre, rank-eval, "
    "opensearch-judgments and others; an unknown name lists them all"
)
_json = options.option("--json as_json", "Print the result as JSON; --format is that of the file.")


@options.command(
    "karat golden import judgments.csv --rater anna",
    "karat golden import qrels.txt queries.tsv",
    name="import",
)
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@folder
@options.option(
    "--format name NAME", f"queries, documents, {_FORMATS}.  [default: detected from the content]"
)
@options.option("--rater NAME", "Rater of grades for which the file names none.")
@options.option(
    "--source sources [RATER=]SOURCE",
    "Source of the grades: human, llm, clicks or import; RATER=SOURCE for one rater, repeat for "
    "more.  [default: human if a rater is named, else import]",
    multiple=True,
)
@_json
def import_from(
    files: tuple[str, ...],
    start: Path,
    name: str | None,
    rater: str | None,
    sources: tuple[str, ...],
    as_json: bool,
) -> None:
    """Import queries, documents, judgments and runs, from karat's formats or other tools'.

    Each file is imported in full or not at all; what was kept, assumed and lost is reported. Only
    human grades count in agreement and editions; a rater named like a model (gpt-5, llm-judge)
    needs --source.
    """
    from karat.workflows.golden.import_ import import_from as taken
    from karat.workflows.golden.import_files import check_there
    from karat.workflows.golden.judgment_sources import sources_of

    check_there(files)
    source_of = sources_of(sources)
    rows = []
    try:
        with opened(start) as found:
            for file in files:
                import_ = partial(taken, found, file, now=clock(), format=name, rater=rater)
                imported = _asking(import_, source_of)
                rows.append(_row(file, imported))
                if not as_json:
                    _show(rows[-1])
                    _say(imported.exchange)
    finally:
        if as_json and rows:
            _print(rows)  # also the files imported before one that failed


def _asking(import_: Callable[..., ImportResult], source_of: dict[str, str]) -> ImportResult:
    """Import; in a terminal, ask for the source of raters named like models."""
    from karat.workflows.golden.judgment_sources import SourceUnknown

    try:
        return import_(sources=source_of)
    except SourceUnknown as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        for rater in error.raters:
            question = f"{printable(rater)} reads like a model. Whose grades are these"
            source_of[rater] = click.prompt(
                question, type=click.Choice(["llm", "human"]), default="llm", err=True
            )
    return import_(sources=source_of)


@options.command("karat golden source ubi clicks", name="source")
@click.argument("rater", metavar="RATER")
@click.argument("source", metavar="human|llm|clicks|import")
@folder
def correct(rater: str, source: str, start: Path) -> None:
    """Correct the source of a rater's imported grades.

    RATER's imported grades count as SOURCE from now on. Nothing is deleted: the store keeps the
    earlier source, agreement and the next edition use the new one, and existing editions do not
    change. Grades that RATER gave in karat itself cannot be changed.
    """
    from karat.cli.accounts.people import who
    from karat.workflows.golden.judgment_sources import correct_source

    with opened(start) as found:
        count = correct_source(found, rater, source, person=who(), now=clock())
    grades = "1 judgment" if count == 1 else f"{count:,} judgments"
    print(
        f"karat: corrected the source of {grades} of {printable(rater)}: {source}", file=sys.stderr
    )


def _row(file: str, imported: ImportResult) -> dict[str, Any]:
    counts = ("queries", "documents", "judgments", "corrected", "changed", "runs")
    return {
        "file": file,
        "format": imported.exchange.format,
        **{name: getattr(imported, name) for name in counts},
        **_sentences(imported.exchange),
    }


def _show(row: dict[str, Any]) -> None:
    from karat.reports.phrases.numbers import counted

    counts = [
        counted(row[several], f"new {what}", f"new {several}")
        for what, several in (
            ("query", "queries"),
            ("document", "documents"),
            ("judgment", "judgments"),
        )
        if row[several]
    ]
    if row["corrected"]:
        counts.append(counted(row["corrected"], "corrected judgment"))
    if row["changed"]:
        counts.append(f"{row['changed']:,} changed")
    if row["runs"]:
        counts.append(f"runs {', '.join(row['runs'])}")
    print(f"{row['file']} ({row['format']}): {', '.join(counts) or 'nothing new'}")
    sys.stdout.flush()  # before its notes on standard error


@options.command(
    "karat golden export golden-folder",
    "karat golden export qrels.txt --format trec",
    name="export",
)
@click.argument("path", metavar="FILE")
@folder
@options.option(
    "--format name NAME",
    f"{_FORMATS}; run: a single run, in the format of FILE's suffix.  "
    "[default: by FILE's suffix: csv for .csv and .tsv, trec for .qrels and .trec, golden for "
    ".json, beir without one; with --run: run]",
)
@options.option("--edition NAME", "Edition to export.  [default: the golden set as it is now]")
@options.option("--each-rater", "Export each rater's judgments, not the aggregated grades.")
@options.option(
    "--run runs NAME",
    "A stored run, for formats that include runs; repeat for more.",
    multiple=True,
)
@options.option("--force", "Overwrite an existing file or BEIR folder.")
@_json
def export_golden_set(
    path: str,
    start: Path,
    name: str | None,
    runs: tuple[str, ...],
    as_json: bool,
    **how: Any,
) -> None:
    """Export the golden set, an edition or stored runs: to evaluate with, or for another tool."""
    if as_json and path == "-":
        raise UsageError(
            "--json and FILE would both write to standard output",
            fix="leave out --json, or name a file",
        )
    from karat.workflows.golden.export import export_golden_set as given
    from karat.workflows.golden.export import named_format

    name = name or named_format(path, runs)
    with opened(start) as found:
        exchange = given(found, path, name, runs=runs, **how)
    if as_json:
        _print({"file": path, "format": exchange.format, **_sentences(exchange)})
    else:
        _say(exchange)


def _print(result: Any) -> None:
    from karat.reports.golden.golden import to_json

    print(to_json(result))


def _sentences(exchange: Exchange) -> dict[str, list[str]]:
    return {"kept": exchange.kept, "assumed": exchange.assumed, "lost": exchange.lost}


def _say(exchange: Exchange) -> None:
    """Print what was kept, assumed and lost, on standard error."""
    for word, sentences in _sentences(exchange).items():
        for sentence in sentences:
            print(f"  {word}: {sentence}", file=sys.stderr)
