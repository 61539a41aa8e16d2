"""karat golden pool, queue, agreement and disagreements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from karat.tables.engines import EngineConfig
    from karat.workflows.golden.engine_documents import Fetched
    from karat.workflows.golden.pooling import Pooled
    from karat.workflows.workspace.workspace import Workspace


@options.command(
    "karat golden pool bm25.trec dense.trec -k 10",
    "karat golden pool bm25.trec dense.trec --budget 500",
    "karat golden pool --engine prod --engine candidate",
)
@click.argument("runs", metavar="[RUN…]", nargs=-1)
@folder
@options.option(
    "--engine engines NAME",
    "An engine declared in karat.toml, to ask now; also gives the documents. Repeatable.",
    multiple=True,
)
@options.option(
    "--method",
    "depth: the top k of each run; rr: the best k by reciprocal rank fusion; rbp: the best k by "
    "what they can add to RBP; mtf: move to front, the next document of each query.",
    "depth",
    type=click.Choice(("depth", "rr", "rbp", "mtf")),
)
@options.option("-k", "Depth, or documents per query.", 10)
@options.option("-p", "Persistence of RBP.", 0.8)
@options.option("--budget N", "Maximum number of pairs in all.", type=int)
@options.option("--per-query N", "Maximum number of pairs per query.", type=int)
@options.option("--bands", "Parts of each pool, the best first, to judge one after the other.", 1)
@options.output("table", "json")
def pool(
    runs: tuple[str, ...], start: Path, engines: tuple[str, ...], output: str, **settings: Any
) -> None:
    """Queue the documents that runs return, except for pairs already judged.

    Raters see neither which system returned a document nor its rank. The workspace stores the runs.
    Documents that it lacks are asked of the declared engines that answered the runs.
    """
    if not runs and not engines:
        raise click.UsageError("name a RUN, or an engine to ask: karat golden pool --engine prod")
    configs = _engines(engines, start)
    with opened(start) as found:
        made = _pooled(found, configs, runs, now=clock(), **settings)
    tell(made, output, _show)


def _engines(names: Sequence[str], start: Path) -> list[EngineConfig]:
    from karat.formats.own.engines import read_engine

    return [read_engine(name, start) for name in names]


def _pooled(
    found: Workspace, configs: list[EngineConfig], runs: Sequence[str], **how: Any
) -> Pooled:
    if configs:
        from karat.workflows.golden.engine_pooling import pool_engines

        return pool_engines(found, configs, runs, **how)
    from karat.workflows.golden.pooling import pool as pooled

    return pooled(found, runs, **how)


@options.command("karat golden documents prod", "karat golden documents prod archive")
@click.argument("engines", metavar="ENGINE…", nargs=-1, required=True)
@folder
@options.output("table", "json")
def documents(engines: tuple[str, ...], start: Path, output: str) -> None:
    """Take over from engines the documents to judge that the golden set lacks."""
    from karat.workflows.golden.engine_documents import fetch_documents

    configs = _engines(engines, start)
    with opened(start) as found:
        fetched = fetch_documents(found, configs, now=clock())
    tell(fetched, output, _show_fetched)


def _show_fetched(fetched: Fetched, out: Console) -> None:
    from karat.reports.writers.terminal import show_notes
    from karat.workflows.golden.engine_documents import fetched_notes

    if not fetched.asked:
        out.print("the golden set has every document to judge")
    show_notes(list(fetched_notes(fetched)), out)


@options.command("karat golden queue pairs.csv")
@click.argument("pairs", metavar="PAIRS")
@folder
@options.output("table", "json")
def queue(pairs: str, start: Path, output: str) -> None:
    """Add pairs to the queue: of karat compare --judge-file, or karat diagnose --review."""
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


@options.command("karat golden agreement", "karat golden agreement --by category")
@folder
@options.option("--by ATTRIBUTE", "Also by this attribute of the queries.")
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


@options.command("karat golden disagreements --queue")
@folder
@options.option("--queue queue_them", "Queue them for an adjudicator.")
@options.option(
    "--queue-imported", "Queue pairs whose imported grade raters contradict for an adjudicator."
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
