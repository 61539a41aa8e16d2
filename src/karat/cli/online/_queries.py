"""karat online queries, karat online against."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.online import options as online_options

if TYPE_CHECKING:
    from karat.tables.online.worst_queries import WorstQueries


@options.command(
    "karat online queries",
    "karat online queries --sort zero --limit 50 --export worst.csv",
    name="queries",
)
@online_options.where
@options.option(
    "--sort ORDER", "Sort by lost (searches), zero (results), abandoned or reformulated.", "lost"
)
@options.option("--by SLICE", "Also slice by class, arm, day or an attribute of the log.")
@options.option(
    "--min-searches N", "Only queries with at least N searches.", 1, type=click.IntRange(min=1)
)
@options.option("--limit N", "Maximum number of rows.", 20, type=click.IntRange(min=1))
@online_options.classes
@options.option(
    "--export FILE", "Write the queries as a log for karat golden choose: .csv, .tsv or .jsonl."
)
@options.option(
    "--to-golden", "Add the queries, with their counts, to the golden set of the workspace."
)
@online_options.rules
@online_options.counted
@options.output("table", "json", "csv", "md")
@options.all_notes
def queries_that_lose(
    export: str | None, to_golden: bool, output: str, all_notes: bool, **settings: Any
) -> None:
    """List the queries that lose most searches, why, and what users search for instead.

    A search is lost if it returned nothing, or if it was reformulated or abandoned without a
    satisfied click, something in the cart, or an answer.
    """
    from karat.reports.online import queries as shown
    from karat.workflows.online import worst_queries

    start = settings["start"]
    with online_options.counting(settings) as (log, engine, rest):
        found = worst_queries.worst_queries(log, engine, **rest)
    if export is not None:
        worst_queries.write_log(found, export)
    if to_golden:
        _add(found, start)
    options.emit(shown, found, output, all_notes=all_notes)


@options.command("karat online against qrels.txt bm25.trec", name="against")
@click.argument("qrels", metavar="QRELS")
@click.argument("run", metavar="RUN")
@online_options.where
@options.measures("An offline measure; repeat for more.  [default: nDCG@10]")
@options.option(
    "--online metrics METRIC",
    "An online metric; repeat for more.  [default: SAT CTR ZeroResults]",
    multiple=True,
)
@options.option(
    "--queries FILE",
    "Texts and attributes of the queries.  [default: those that come with QRELS, else the golden "
    "set's]",
)
@options.option("--by ATTRIBUTE", "Slice by this attribute of the queries.  [default: class]")
@options.option(
    "--min-searches N",
    "Searches that a query needs to count in correlations and disagreements.",
    10,
    type=click.IntRange(min=1),
)
@options.option("--seed", "Random seed of the bootstrap over queries.", 0)
@online_options.rules
@online_options.counted
@options.output("table", "json", "csv", "md")
@options.all_notes
def against(
    qrels: str,
    run: str,
    measures: tuple[str, ...],
    metrics: tuple[str, ...],
    queries: str | None,
    output: str,
    all_notes: bool,
    **settings: Any,
) -> None:
    """Correlate a run's offline measures with online metrics, and show where they disagree.

    Queries are matched with the log by their text. Those that are only judged, or only searched
    for, are counted, and left out of every number.
    """
    from karat.reports.online import offline_correlation as shown
    from karat.workflows.online.offline_correlation import against as compared

    start = settings["start"]
    with online_options.counting(settings) as (log, engine, rest):
        found = compared(
            log,
            engine,
            qrels,
            run,
            measures=measures or None,
            metrics=metrics or None,
            queries=_queries(qrels, queries, start),
            **rest,
        )
    options.emit(shown, found, output, all_notes=all_notes)


def _queries(qrels: str, queries: str | None, start: Path) -> object:
    from karat import formats
    from karat.cli.workspace.workspace import opened
    from karat.errors import UsageError

    if queries is not None or formats.holds_queries(qrels):
        return queries
    from karat.workflows.golden.editions import content_of

    try:
        with opened(start) as workspace:
            return content_of(workspace).queries
    except UsageError:  # no workspace: the error that texts are needed follows
        return None


def _add(found: WorstQueries, start: Path) -> None:
    """Add the queries to the golden set, and print how many are new."""
    from karat.cli.mistakes import printable
    from karat.cli.workspace.workspace import clock, opened
    from karat.reports.phrases.numbers import counted
    from karat.workflows.online.worst_queries import to_golden

    with opened(start) as workspace:
        taken = to_golden(workspace, found, now=clock())
    added = counted(taken.queries, "new query")
    print(f"karat: {added} in the golden set", file=sys.stderr)
    for sentence in taken.exchange.assumed:
        print(f"  {printable(sentence)}", file=sys.stderr)
