"""karat online: what users did."""

from __future__ import annotations

import click

from karat.cli import (
    online_evaluate,
    online_import,
    online_queries,
    online_simulate,
    online_watch,
    options,
)


@click.group(
    epilog=options.examples(
        "karat online import clicks.jsonl --mapping mapping.toml",
        "karat online evaluate --by day",
    )
)
def online() -> None:
    """What users did: searches, clicks and what became of them, from logs of events."""


for command in (
    online_import.import_log,
    online_import.status,
    online_evaluate.evaluate,
    online_evaluate.metrics,
    online_queries.queries_that_lose,
    online_queries.against,
    online_watch.watch,
    online_simulate.simulate,
):
    online.add_command(command)
