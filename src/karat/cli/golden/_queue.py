"""karat golden pool, queue, agreement and disagreements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened, tell

if TYPE_CHECKING:
    from rich.console import Console

    from karat.workflows.golden.pooling import Pooled


@click.command(
    epilog=options.examples(
        "karat golden pool bm25.trec dense.trec -k 10",
        "karat golden pool bm25.trec dense.trec --budget 500",
    )
)
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@folder
@click.option(
    "--method",
    type=click.Choice(("depth", "rr", "rbp", "mtf")),
    default="depth",
    show_default=True,
    help="depth: the top k of each run; rr: the best k by reciprocal rank fusion; rbp: the best k "
    "by what they can add to RBP; mtf: move to front, the next document of each query.",
)
@click.option("-k", type=int, default=10, show_default=True, help="Depth, or documents per query.")
@click.option("-p", type=float, default=0.8, show_default=True, help="Persistence of RBP.")
@click.option("--budget", type=int, metavar="N", help="Maximum number of pairs in all.")
@click.option("--per-query", type=int, metavar="N", help="Maximum number of pairs per query.")
@click.option(
    "--bands",
    type=int,
    default=1,
    show_default=True,
    help="Parts of each pool, the best first, to judge one after the other.",
)
@options.output("table", "json")
def pool(
    runs: tuple[str, ...],
    start: Path,
    method: str,
    k: int,
    p: float,
    budget: int | None,
    per_query: int | None,
    bands: int,
    output: str,
) -> None:
    """Queue the documents that runs return, except for pairs already judged.

    Raters see neither which system returned a document nor its rank. The workspace stores the runs.
    """
    from karat.workflows.golden.pooling import METHODS
    from karat.workflows.golden.pooling import pool as pooled

    with opened(start) as found:
        made = pooled(
            found,
            runs,
            now=clock(),
            method=next(name for name in METHODS if name == method),
            k=k,
            p=p,
            budget=budget,
            per_query=per_query,
            bands=bands,
        )
    tell(made, output, _show)


@click.command(epilog=options.examples("karat golden queue pairs.csv"))
@click.argument("pairs", metavar="PAIRS")
@folder
@options.output("table", "json")
def queue(pairs: str, start: Path, output: str) -> None:
    """Add pairs to the queue, such as those of karat compare --judge-file."""
    from karat.workflows.golden.pooling import enqueue

    with opened(start) as found:
        made = enqueue(found, pairs, now=clock())
    tell(made, output, _show)


def _show(made: Pooled, out: Console) -> None:
    from karat.reports.golden import golden as reports
    from karat.reports.writers.terminal import show_notes

    fields = dict(vars(made))
    notes = fields.pop("notes")
    reports.show_pooled(out, **fields)
    show_notes(notes, out)


@click.command(
    epilog=options.examples("karat golden agreement", "karat golden agreement --by category")
)
@folder
@click.option("--by", metavar="ATTRIBUTE", help="Also by this attribute of the queries.")
@options.output("table", "json")
def agreement(start: Path, by: str | None, output: str) -> None:
    """Show how far raters agree, with intervals, and where they do not.

    Intervals treat a query with all its judgments as one unit: raters who understand a query
    differently disagree on all of it.
    """
    from karat.reports.golden import agreement as reports
    from karat.workflows.golden.agreement import agreement_in

    with opened(start) as found:
        agreed = agreement_in(found, by)
    tell(agreed, output, lambda agreed, out: reports.show(agreed, out, by))


@click.command(epilog=options.examples("karat golden disagreements --queue"))
@folder
@click.option("--queue", "queue_them", is_flag=True, help="Queue them for an adjudicator.")
@click.option(
    "--queue-imported",
    is_flag=True,
    help="Queue pairs whose imported grade raters contradict for an adjudicator.",
)
@options.output("table", "json")
def disagreements(start: Path, queue_them: bool, queue_imported: bool, output: str) -> None:
    """List pairs whose grades are far apart and not yet adjudicated.

    An adjudicator settles them with karat judge --terminal --adjudicate, and sees both reasons but
    no names. Agreement is still computed from the raters' own grades.
    """
    from karat.reports.golden import golden as reports
    from karat.workflows.golden.agreement import disagreements_in

    with opened(start) as found:
        listed = disagreements_in(
            found, now=clock(), queue_them=queue_them, queue_imported=queue_imported
        )
    tell(
        listed,
        output,
        lambda listed, out: reports.show_disagreements(listed.frame, listed.queued, out),
    )
