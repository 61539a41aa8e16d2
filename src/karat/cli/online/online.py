"""karat online."""

from __future__ import annotations

import click

from karat.cli import options
from karat.cli.online import _alerts, _evaluate, _import, _queries, _simulate, _watch


@click.group(
    epilog=options.examples(
        "karat online import clicks.jsonl --mapping mapping.toml", "karat online evaluate --by day"
    )
)
def online() -> None:
    """Analyse what users did, from event logs: searches, clicks and their outcomes."""


for command in (
    _import.import_log,
    _import.status,
    _evaluate.evaluate,
    _evaluate.metrics,
    _queries.queries_that_lose,
    _queries.against,
    _watch.watch,
    _alerts.alerts,
    _simulate.simulate,
):
    online.add_command(command)
