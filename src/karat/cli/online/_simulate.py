"""karat online simulate."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, tell
from karat.errors import UsageError

_DAY = 24 * 60 * 60 * 1_000_000


@click.command(
    epilog=options.examples("karat online simulate qrels.txt bm25.trec --out events.jsonl")
)
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    "target",
    metavar="LOG",
    required=True,
    help="Where to write the log: .ndjson (UBI; also .gz, .zst), or .parquet.",
)
@options.queries
@click.option(
    "--behaviour",
    metavar="NAME",
    default="position",
    show_default=True,
    help="How people click: position (attention falls with the place), cascade (down to the first "
    "click), dbn (down until a click satisfies, or patience ends).",
)
@click.option("--days", type=int, default=28, show_default=True, help="How many days.")
@click.option(
    "--until", metavar="DAY", help="The last day, as in 2026-11-30.  [default: yesterday]"
)
@click.option("--users", type=int, default=500, show_default=True, help="How many people.")
@click.option(
    "--sessions", type=float, default=100, show_default=True, help="Sessions on a mean day."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--attribute",
    "attributes",
    metavar="NAME",
    multiple=True,
    help="An attribute of the queries that the log shall hold, to slice by; repeat for more. "
    "class becomes query_class there.",
)
@click.option(
    "--break",
    "breaks",
    metavar="NAME=VALUE@DAY",
    multiple=True,
    help="From this day on, queries with this value find nothing by their own words, as if a "
    "synonym were lost; repeat for more.",
)
@click.option(
    "--worsen",
    "worsened",
    metavar="NAME=VALUE@DAY",
    multiple=True,
    help="From this day on, their pages are upside down; repeat for more.",
)
@click.option(
    "--instant",
    type=float,
    default=0.25,
    show_default=True,
    help="Share of people whose page searches while they type.",
)
@click.option(
    "--impressions",
    type=click.Choice(["page", "seen", "none"]),
    default="page",
    show_default=True,
    help="Which results are logged as seen: all of a page, those down to the last one looked at, "
    "or none.",
)
@click.option("--heartbeats", is_flag=True, help="Pages say every ten seconds that they are read.")
@click.option(
    "--carts", type=float, default=0, help="Share of what satisfies that is put in a cart."
)
@click.option("--answers", type=float, default=0, help="Share of queries answered on the page.")
@click.option(
    "--latency", metavar="MS[,MS…]", help="Median latency, of all or by arm.  [default: 90]"
)
@click.option(
    "--errors", metavar="SHARE[,…]", help="Share that fails, of all or by arm.  [default: .004]"
)
@click.option(
    "--timeouts", metavar="SHARE[,…]", help="Share that runs out of time.  [default: .002]"
)
@click.option(
    "--robots", type=float, default=0.02, show_default=True, help="Share of searches by robots."
)
@click.option("--truth", metavar="FILE", help="Write what was drawn, as JSON.")
@options.output("table", "json")
def simulate(
    qrels: str,
    runs: tuple[str, ...],
    target: str,
    until: str | None,
    attributes: tuple[str, ...],
    breaks: tuple[str, ...],
    worsened: tuple[str, ...],
    latency: str | None,
    errors: str | None,
    timeouts: str | None,
    truth: str | None,
    output: str,
    **settings: Any,
) -> None:
    """Make a log of people who do not exist, searching over judgments and runs that do.

    Each RUN is an arm. People look, click, read, say it in other words, turn pages and buy by a
    declared behaviour, so that what a metric should find is known. Each event says that it is
    simulated.
    """
    from karat.online.simulate.habits import Habits
    from karat.reports.online.simulate import show_simulated
    from karat.workflows.online.simulate import read_planted, simulate_log, write_truth

    chosen = {
        name: settings.pop(name)
        for name in ("impressions", "heartbeats", "carts", "answers", "robots")
    }
    for name, said in (("latency_ms", latency), ("errors", errors), ("timeouts", timeouts)):
        if said is not None:
            chosen[name] = _numbers(name.removesuffix("_ms"), said)
    planted = [read_planted(each, "zero") for each in breaks]
    planted += [read_planted(each, "worse") for each in worsened]
    _, log = simulate_log(
        qrels,
        list(runs),
        target,
        last_day=_last_day(until),
        habits=Habits(**chosen),
        attributes=attributes,
        planted=planted,
        **settings,
    )
    if truth is not None:
        write_truth(log, truth)
    tell(log, output, show_simulated)


def _last_day(until: str | None) -> Any:
    from datetime import date, timedelta

    from karat.tables.days import EPOCH

    if until is None:
        return EPOCH + timedelta(days=clock() // _DAY - 1)
    try:
        return date.fromisoformat(until.strip())
    except ValueError:
        raise UsageError(f"--until {until!r} is no day", fix="--until 2026-11-30") from None


def _numbers(name: str, said: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in said.split(","))
    except ValueError:
        raise UsageError(
            f"--{name} {said!r} is no number, or several with commas", fix=f"--{name} 90,120"
        ) from None
