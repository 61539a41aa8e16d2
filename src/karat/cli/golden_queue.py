"""karat golden pool, queue, agreement and disagreements."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.workspace import clock, folder, opened


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@folder
@click.option(
    "--method",
    type=click.Choice(("depth", "rr", "rbp", "mtf")),
    default="depth",
    show_default=True,
    help="The top k of each run; or the best k by reciprocal rank fusion, by what they can add to "
    "RBP; or move to front: the next document of each query.",
)
@click.option("-k", type=int, default=10, show_default=True, help="Depth, or documents of a query.")
@click.option("-p", type=float, default=0.8, show_default=True, help="Persistence of RBP.")
@click.option("--budget", type=int, metavar="N", help="At most so many pairs in all.")
@click.option("--per-query", type=int, metavar="N", help="At most so many of a query.")
@click.option(
    "--bands",
    type=int,
    default=1,
    show_default=True,
    help="Parts of each pool, the best first, that are judged one after the other.",
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
    """Put what systems return into the queue; what is judged already stays out.

    Raters see neither which system returned a document nor where. The workspace keeps the runs.
    """
    from karat.reports import golden as reports
    from karat.workflows.pool import METHODS
    from karat.workflows.pool import pool as pooled

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
    if output == "json":
        print(reports.to_json(made))
    else:
        reports.show_pooled(options.out(), **vars(made))


@click.command()
@click.argument("pairs", metavar="PAIRS")
@folder
def queue(pairs: str, start: Path) -> None:
    """Put pairs into the queue, such as karat compare --judge-file writes."""
    from karat.reports import golden as reports
    from karat.workflows.pool import enqueue

    with opened(start) as found:
        reports.show_pooled(options.out(), **vars(enqueue(found, pairs, now=clock())))


@click.command()
@folder
@click.option("--by", metavar="ATTRIBUTE", help="Class by class, by this attribute of the queries.")
@options.output("table", "json")
def agreement(start: Path, by: str | None, output: str) -> None:
    """Say how far raters agree, how sure that is, and where they do not.

    Intervals take queries as they come, with all their judgments: raters who read a query
    differently differ in all of it.
    """
    from karat.reports import agreement as reports
    from karat.workflows.agreeing import agreement_in

    with opened(start) as found:
        agreed = agreement_in(found, by)
    if output == "json":
        print(reports.to_json(agreed))
    else:
        reports.show_agreement(agreed, options.out(), by)


@click.command()
@folder
@click.option("--queue", "queue_them", is_flag=True, help="Put them before an adjudicator.")
@options.output("table", "json")
def disagreements(start: Path, queue_them: bool, output: str) -> None:
    """List pairs whose grades are far apart, and that nobody has settled.

    An adjudicator settles them with karat judge --terminal --adjudicate, seeing both reasons and no
    names. Agreement goes on being computed on what raters said first.
    """
    from karat.reports import golden as reports
    from karat.workflows.agreeing import disagreements_in

    with opened(start) as found:
        listed = disagreements_in(found, now=clock(), queue_them=queue_them)
    if output == "json":
        print(reports.to_json(listed))
    else:
        reports.show_disagreements(listed.frame, listed.queued, options.out())
