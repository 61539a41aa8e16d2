"""karat tune."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import opened
from karat.errors import InputError

_CODES = {"better": 0, "not better": 1, "cannot tell": 3}


@options.command(
    "karat tune prod --param boost_title=0.1:10:log -m nDCG@10",
    "karat tune prod golden.json --param fuse=0:1 --param k=10:200:int",
    "karat tune prod q.csv --judgments qrels.txt --param analyzer=a,b",
)
@click.argument("engine")
@click.argument("queries", metavar="[QUERIES]", required=False)
@options.option(
    "--param params NAME=VALUES",
    "A parameter to search: a range of numbers, 0.1:10 or 0.1:10:log, of whole numbers, "
    "10:200:int, or a list, plain,english; repeat for more.",
    multiple=True,
)
@options.option("-m --measure", "The measure to improve.", "nDCG@10")
@options.option("--judgments QRELS", "The judgments, if they are not in the file of QUERIES.")
@options.rel
@options.option("--trials N", "Most combinations.", 100)
@options.option(
    "--patience N",
    "Stop when the last N combinations gained no more than the standard error of that gain; 0 "
    "never stops early.  [default: 20, or 10 for each parameter]",
    type=int,
)
@options.option("--seed", "Random seed of the search.", 0)
@options.option("--concurrency", "Number of concurrent calls.", 1)
@options.option("--retries", "Retries after an error.", 2)
@options.option("-k --depth N", "Documents per query.", type=int)
@options.option(
    "-o --out FILE",
    "Write the params line for karat.toml here if it is better; with it, the same command goes "
    "on after an interruption.",
)
@options.all_notes
@options.output("table", "json")
def tune(
    engine: str,
    queries: str | None,
    params: tuple[str, ...],
    judgments: str | None,
    out: str | None,
    all_notes: bool,
    output: str,
    **settings: Any,
) -> int:
    """Search better parameters of an engine, and test them on queries held out.

    ENGINE is declared in karat.toml. QUERIES is a golden set, a BEIR folder, or a file of queries
    with --judgments; without it, the golden set of the current folder's workspace is used. The
    search asks the queries of the part dev only. Then the best combination and the declared one
    are compared on the part held_out, which counts as a use of it (see karat golden split).

    Exit codes: 0 better on held-out queries, 1 not better, 3 cannot tell.
    """
    from karat.cli.release.trend import commit
    from karat.formats.own.engines import read_engine
    from karat.reports.engines import tuning
    from karat.workflows.engines.tuning import tune as tuned

    config = read_engine(engine, Path())
    qrels, asked = _golden(queries, judgments)
    found = tuned(
        config, params, qrels, asked, out=out, commit=commit(None, os.environ), **settings
    )
    options.emit(tuning, found, output, all_notes=all_notes)
    if out is not None and found.verdict == "better":
        try:
            Path(out).write_text(tuning.params_line(found), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=out) from None
    return _CODES[found.verdict]


def _golden(queries: str | None, judgments: str | None) -> tuple[Any, Any]:
    from karat import formats

    if queries is not None:
        return formats.read_qrels(judgments or queries), formats.read_queries(queries)
    from karat.formats.own.workspace import NAME
    from karat.workflows.workspace.stored_inputs import judged

    with opened(Path()) as workspace:
        found = judged(workspace)
        qrels = found.qrels if judgments is None else formats.read_qrels(judgments)
        if judgments is None:
            qrels.file = str(workspace.workspace.root / NAME)  # the ledger of held-out uses
        return qrels, found.queries
