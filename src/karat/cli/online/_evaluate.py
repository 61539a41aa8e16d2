"""karat online evaluate, karat online metrics."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import options
from karat.cli.online import options as online_options


@options.command("karat online evaluate", "karat online evaluate -m CTR -m ZeroResults --by day")
@online_options.where
@options.option(
    "-m --metric metrics METRIC",
    "A metric such as CTR, CTR@5, SAT or Latency:p95; repeat for more.  [default: a standard "
    "set; karat online metrics lists all]",
    multiple=True,
)
@options.option(
    "--by SLICE",
    "Slice by day, hour (of the day), arm, query, class, an attribute of the log, or several at "
    "once (day,arm); repeat for more.",
    multiple=True,
)
@online_options.classes
@online_options.rules
@options.option("--full", "Show every slice with every metric, not one screen of them.")
@options.option(
    "--seed",
    "Random seed of the bootstrap intervals of dwell and latency.",
    0,
    type=click.IntRange(min=0),
)
@online_options.counted
@options.output("table", "json", "csv", "md")
@options.all_notes
def evaluate(
    metrics: tuple[str, ...],
    by: tuple[str, ...],
    full: bool,
    output: str,
    all_notes: bool,
    **settings: Any,
) -> None:
    """Compute online metrics with intervals, and check whether the log can be trusted.

    Null is not zero: a metric that is not available from the log, or has nothing to count over, is
    shown as –, and a note says why.
    """
    from karat.online.metrics import registry
    from karat.reports.online import evaluation as shown
    from karat.workflows.online.evaluate import evaluate as evaluated

    registry.find_all(metrics)  # report a misspelt name before anything is opened
    with online_options.counting(settings) as (log, engine, rest):
        results = evaluated(log, engine, metrics or None, by, **rest)
    how = {"full": full, "every_metric": bool(metrics), "all_notes": all_notes or full}
    options.emit(shown, results, output, **how)
    if output == "csv":
        options.notes_aside([*results.health, *results.notes])


@options.command("karat online metrics", "karat online metrics CTR")
@click.argument("name", metavar="[NAME]", required=False)
@options.output("table", "json", "md")
def metrics(name: str | None, output: str) -> None:
    """List the online metrics, or explain one.

    NAME may be in any case: CTR@5, Dwell, Latency:p95.
    """
    from karat.online.metrics import registry
    from karat.reports.online import catalogue as shown

    found = registry.all_metrics() if name is None else [registry.find(name)]
    options.emit_entries(shown, found, output, one=name is not None)
