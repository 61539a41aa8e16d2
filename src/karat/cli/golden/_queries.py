"""karat golden choose and plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, folder, opened, tell
from karat.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from karat.workflows.golden.sampling import Chosen

_OF_HARD_FROM = ("hard_most", "hard_measure", "qrels")


@options.command(
    "karat golden choose searches.csv --size 100",
    "karat golden choose searches.csv --hard-from run.jsonl",
)
@click.argument("log", metavar="LOG")
@folder
@options.option("--size", "Queries to draw.", 100)
@options.option(
    "--band bands NAME=SHARE",
    "A band of the most frequent queries and its share of all searches; repeat for more, the "
    "rest is the tail.  [default: head=1/3, torso=1/3]",
    multiple=True,
)
@options.option(
    "--quota quotas ATTRIBUTE=VALUE:N",
    "At least N queries with this value; repeat for more.",
    multiple=True,
)
@options.option(
    "--hard FILE",
    "Queries known to be hard, one per line: added to the sample, and reported separately.",
)
@options.option(
    "--hard-from RUN",
    "Add the queries that this run answers worst as hard ones, by the workspace's grades or "
    "--qrels; those without an answer come first.",
)
@options.option("--hard-most", "Maximum number of queries from --hard-from.", 20)
@options.option("--hard-measure MEASURE", "Measure that --hard-from ranks by.", "nDCG@10")
@options.option("--qrels FILE", "Judgments for --hard-from.")
@options.option("--mask", "Mask e-mail addresses, numbers and the like.")
@options.option("--text COLUMN", "Column of the queries, if it has another name.")
@options.option("--count COLUMN", "Column of the counts, if it has another name.")
@options.option(
    "--replace",
    "Proceed even if most of an earlier sample is dropped, or judged queries no longer count.",
)
@options.output("table", "json")
def choose(
    log: str,
    start: Path,
    size: int,
    bands: tuple[str, ...],
    quotas: tuple[str, ...],
    hard: str | None,
    hard_from: str | None,
    hard_most: int,
    hard_measure: str,
    qrels: str | None,
    output: str,
    **settings: Any,
) -> None:
    """Draw queries from a log, head to tail, with weights that represent all searches.

    LOG is CSV, TSV, JSONL, Parquet, or plain text with one query per line; each row is a search, or
    a query with its count. A new draw from a later log keeps the queries that are still asked.
    """
    from karat.workflows.golden.hard_queries import hard_queries
    from karat.workflows.golden.sampling import choose_queries, read_bands, read_quota

    context = click.get_current_context()
    others = {str(option.name) for option in context.command.params} - set(_OF_HARD_FROM)
    typed = options.options_except(context, others)
    if typed and hard_from is None:
        raise UsageError(f"{typed[0]} needs --hard-from", fix="--hard-from RUN")
    with opened(start) as found:
        of_run = None
        if hard_from is not None:
            of_run = hard_queries(
                found, hard_from, qrels=qrels, measure=hard_measure, most=hard_most
            )
        chosen = choose_queries(
            found,
            log,
            size,
            now=clock(),
            bands=read_bands(bands),
            quotas=[read_quota(quota) for quota in quotas],
            hard=_lines(hard),
            hard_from=of_run,
            **settings,
        )
    # Only the sample: the log may be long, and contain personal data.
    tell(chosen, output, _show, without=("log.frame",))


def _show(chosen: Chosen, out: Console) -> None:
    from karat.reports.golden import golden as reports

    reports.show_chosen(chosen.log, chosen.sample, chosen.made_of, out)
    if chosen.hard is not None:
        reports.show_hard(chosen.hard.run, chosen.hard.frame, chosen.hard.notes, out)
    reports.show_gone(chosen.gone, out)


@options.command("karat golden plan --difference 0.02")
@options.option("--difference", "Difference between two systems to detect.", 0.05)
@options.option(
    "--sd",
    "Standard deviation of that difference over queries.  [default: a typical value]",
    type=float,
)
@options.option("--depth", "Documents per query.", 15, type=float)
@options.option("--raters", "Raters per document.", 2)
@options.option("--seconds", "Seconds per judgment.  [default: a typical value]", type=float)
@options.option("--per-hour PRICE", "Cost of an hour of rating.", type=float)
@options.output("table", "json")
def plan(output: str, **settings: Any) -> None:
    """Show how many queries and judgments detect a difference, and what they cost."""
    from karat.golden.planning import plan as planned
    from karat.reports.golden import golden as reports

    given = {name: value for name, value in settings.items() if value is not None}
    tell(planned(**given), output, reports.show_plan)


def _lines(path: str | None) -> list[str]:
    if path is None:
        return []
    from karat.formats.tables.source import Source

    with Source(path) as source:
        text = source.whole().decode("utf-8-sig", "replace")
    return [line.strip() for line in text.split("\n") if line.strip()]
