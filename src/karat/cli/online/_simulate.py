"""karat online simulate."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, tell
from karat.errors import UsageError


@options.command("karat online simulate qrels.txt bm25.trec --out events.jsonl")
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@options.option(
    "-o --out target LOG",
    "Where to write the log: .ndjson (UBI; also .gz, .zst), or .parquet.",
    required=True,
)
@options.queries
@options.option(
    "--behaviour NAME",
    "Click model: position (attention falls with the rank), cascade (down to the first click), "
    "dbn (down until a click satisfies, or patience ends).",
    "position",
)
@options.option("--days", "Number of days.", 28)
@options.option("--until DAY", "The last day, such as 2026-11-30.  [default: yesterday]")
@options.option("--users", "Number of users.", 500)
@options.option("--sessions", "Sessions on an average day.", 100, type=float)
@options.option("--seed", "Random seed.", 0)
@options.option(
    "--attribute attributes NAME",
    "An attribute of the queries to write to the log, to slice by; repeat for more. class is "
    "written as query_class.",
    multiple=True,
)
@options.option(
    "--break breaks NAME=VALUE@DAY",
    "From this day on, queries with this value return nothing as typed, as if a synonym were "
    "lost; repeat for more.",
    multiple=True,
)
@options.option(
    "--worsen worsened NAME=VALUE@DAY",
    "From this day on, results of queries with this value are reversed; repeat for more.",
    multiple=True,
)
@options.option("--instant", "Share of users with search as they type.", 0.25)
@options.option(
    "--impressions",
    "Results logged as impressions: all of a page, those down to the last one seen, or none.",
    "page",
    type=click.Choice(["page", "seen", "none"]),
)
@options.option("--heartbeats", "Log a heartbeat every ten seconds while a page is read.")
@options.option(
    "--carts",
    "Share of satisfying results that are put in a cart.",
    0,
    show_default=False,
    type=float,
)
@options.option(
    "--answers", "Share of queries answered on the results page.", 0, show_default=False, type=float
)
@options.option("--latency MS[,MS…]", "Median latency, of all arms or one each.  [default: 90]")
@options.option(
    "--errors SHARE[,…]", "Share of failed searches, of all arms or one each.  [default: .004]"
)
@options.option("--timeouts SHARE[,…]", "Share of searches that time out.  [default: .002]")
@options.option("--robots", "Share of searches by bots.", 0.02)
@options.option("--truth FILE", "Write the ground truth as JSON.")
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
    """Simulate an event log of users who search with real judgments and runs.

    Each RUN is an arm. Users look, click, read, reformulate, turn pages and buy by a declared
    click model, so the true values of metrics are known. Each event is marked as simulated.
    """
    from karat.online.simulate.behaviours import Habits
    from karat.reports.online.simulate import show
    from karat.workflows.online.simulate import read_planted, simulate_log, write_truth

    chosen = {
        name: settings.pop(name)
        for name in ("impressions", "heartbeats", "carts", "answers", "robots")
    }
    for name, numbers in (("latency_ms", latency), ("errors", errors), ("timeouts", timeouts)):
        if numbers is not None:
            chosen[name] = _numbers(name.removesuffix("_ms"), numbers)
    planted = [read_planted(text, "zero") for text in breaks]
    planted += [read_planted(text, "worse") for text in worsened]
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
    tell(log, output, show)


def _last_day(until: str | None) -> Any:
    from datetime import date, timedelta

    from karat.online.rules import DAY
    from karat.tables.days import EPOCH

    if until is None:
        return EPOCH + timedelta(days=clock() // DAY - 1)
    try:
        return date.fromisoformat(until.strip())
    except ValueError:
        raise UsageError(f"--until {until!r} is not a date", fix="--until 2026-11-30") from None


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--{name} {text!r} is not a list of numbers", fix=f"--{name} 90,120"
        ) from None
