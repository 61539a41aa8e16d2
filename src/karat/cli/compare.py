"""karat compare."""

from __future__ import annotations

import sys
from typing import Any

import click

from karat.cli import options
from karat.cli.progress import watching


@click.command()
@click.argument("qrels", metavar="QRELS")
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidates", metavar="CANDIDATE…", nargs=-1, required=True)
@click.option(
    "-m",
    "--measure",
    "measures",
    metavar="MEASURE",
    multiple=True,
    help="A measure such as nDCG@10; repeat for more.  [default: nDCG@10 RR@10 P@10 R@100 AP]",
)
@options.by
@options.queries
@click.option(
    "--test",
    type=click.Choice(["randomisation", "t", "wilcoxon", "sign"]),
    default="randomisation",
    show_default=True,
    help="Where the p-values come from.",
)
@click.option(
    "--margin",
    type=float,
    metavar="SIZE",
    help="Differences smaller than this do not matter; without it nothing is “equivalent”.",
)
@click.option("--resamples", type=int, default=10_000, show_default=True, help="Of the test.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the test.")
@click.option(
    "--judge-next",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="List N pairs whose grades would say most about the sign of the first difference.",
)
@options.rel
@options.scale
@options.complete
@options.depth
@options.judged_only
@options.collapse
@options.documents
@options.output("table", "json")
@click.option("--full", is_flag=True, help="Every query that moved.")
@options.input_format
@options.qrels_format
@options.measures_from
def compare(
    qrels: str,
    baseline: str,
    candidates: tuple[str, ...],
    measures: tuple[str, ...],
    output: str,
    full: bool,
    input_format: str | None,
    qrels_format: str | None,
    **settings: Any,
) -> None:
    """Compare runs with a baseline, query by query: is the difference real, and where.

    For each measure: the difference with its interval, a p-value corrected over all comparisons,
    how many queries won and lost, and what may be said: better, worse, equivalent (--margin),
    identical, or cannot tell, and then how many queries it would take.
    """
    from karat import formats
    from karat.reports.comparison import show_comparison, to_json
    from karat.workflows.compare import compare as compared

    folder = options.folder(qrels)
    settings["documents"] = settings["documents"] or (folder if settings["collapse"] else None)
    with watching() as watch:
        runs = [
            formats.read_run(path, input_format, watch=watch) for path in (baseline, *candidates)
        ]
    judgments = formats.read_qrels(qrels, qrels_format)
    if not settings["queries"] and formats.holds_queries(qrels):
        settings["queries"] = qrels
    found = compared(judgments, runs[0], runs[1:], measures or None, **settings)
    if output == "json":
        sys.stdout.write(to_json(found))
    else:
        show_comparison(found, options.out(), full=full)
