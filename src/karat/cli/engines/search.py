"""karat search."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import opened
from karat.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from karat.tables import Queries
    from karat.tables.searched import Searched


@click.command(
    epilog=options.examples(
        "karat search --python my_search:search queries.jsonl -o run.jsonl",
        "karat search --python my_search:search -o new.parquet --about index=v2",
    )
)
@click.argument("queries", metavar="[QUERIES]", required=False)
@click.option(
    "--python",
    "function",
    metavar="MODULE:FUNCTION",
    help="The search function, importable from the current folder or the workspace's: it takes the "
    "text of a query and returns ids, (id, score) pairs or dicts, best first; may be async.",
)
@click.option(
    "-o",
    "--out",
    metavar="RUN",
    required=True,
    help="Where to write the run: .jsonl, .parquet, .trec, .run, .csv, .tsv or .json, also .gz, "
    ".zst or .bz2; - is standard output, as JSONL.",
)
@click.option(
    "--concurrency", type=int, default=1, show_default=True, help="Number of concurrent calls."
)
@click.option(
    "--timeout", type=float, metavar="SECONDS", help="Timeout of each call.  [default: none]"
)
@click.option("--retries", type=int, default=0, show_default=True, help="Retries after an error.")
@click.option(
    "--warmup",
    type=int,
    default=0,
    show_default=True,
    help="Number of queries to ask once beforehand, untimed.",
)
@click.option("-k", "--depth", type=int, metavar="N", help="Keep the top N documents.")
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the run, also in a history.  [default: the file's name]",
)
@click.option(
    "--about",
    "facts",
    metavar="KEY=VALUE",
    multiple=True,
    help="Record this about the run: engine, engine_version, index, index_fingerprint, template, "
    "parameters, commit, corpus, or a key of your own; repeat for more.",
)
@click.option(
    "--output-format",
    metavar="FORMAT",
    help="Format of the run, if not clear from its suffix: jsonl, parquet, trec, csv, tsv, json, "
    "msmarco.",
)
@options.output("table", "json")
def search(
    queries: str | None,
    function: str | None,
    out: str,
    facts: tuple[str, ...],
    output: str,
    **settings: Any,
) -> None:
    """Run all queries of a set against a search function, and write the run.

    QUERIES is a file of queries, a golden set, a BEIR folder, or - for standard input; without it,
    the queries of the current folder's workspace are used. A query that raises an error, times out
    or returns no ranking is recorded as failed; if all fail, nothing is written and the exit code
    is 4.
    """
    from karat.cli.release import trend
    from karat.workflows.engines.search import search as searched

    if function is None:
        raise UsageError("no search function", fix="--python my_search:search")
    about = _about(facts)
    asked, root = _queries(queries)
    folders = [Path.cwd(), *([root] if root is not None else [])]
    from karat.clients.python_function import load

    found = searched(
        asked,
        load(function, folders),
        out,
        engine=function,
        about=about,
        commit=trend.commit(None, os.environ),
        **settings,
    )
    _print(found, output, out, _next(queries, out))


def _queries(given: str | None) -> tuple[Queries, Path | None]:
    """The queries to ask, and the folder of the workspace, if any."""
    from karat import formats
    from karat.formats.own.workspace import find_workspace

    if given is not None:
        asked = formats.read_queries(given)
        try:
            return asked, find_workspace(Path.cwd()).parent
        except UsageError:
            return asked, None
    try:
        find_workspace(Path.cwd())
    except UsageError:
        raise UsageError(
            "no queries: no file is given, and the current folder is not in a workspace",
            fix="name a file of queries, or create a workspace: karat init",
        ) from None
    from karat.workflows.workspace.workspace import queries_in

    with opened(Path()) as workspace:
        return queries_in(workspace), workspace.workspace.root


def _about(facts: tuple[str, ...]) -> dict[str, str]:
    """The pairs of ``KEY=VALUE``."""
    about = {}
    for fact in facts:
        key, sign, value = fact.partition("=")
        if not key.strip() or not sign:
            raise UsageError(f"--about {fact!r} is not KEY=VALUE", fix="--about index=docs-7")
        about[key.strip()] = value
    return about


def _next(queries: str | None, out: str) -> str | None:
    """The command to run next."""
    from karat import formats

    if out == "-" or queries == "-":
        return None
    if queries is None:
        return f"karat golden pool {shlex.quote(out)}"
    folder = Path(queries)
    try:
        judged = formats.holds_queries(queries)
    except InputError:  # queries alone
        judged = False
    if folder.is_dir():
        judged = any(folder.glob("qrels/*.tsv*"))
    qrels = shlex.quote(queries) if judged else "QRELS"
    return f"karat evaluate {qrels} {shlex.quote(out)}"


def _print(found: Searched, output: str, out: str, command: str | None) -> None:
    """Print the summary; on standard error if the run itself is on standard output."""
    from karat.reports.engines.search import show_searched
    from karat.reports.writers.terminal import console

    if output == "json":
        text = json.dumps(found.to_dict() | {"next": command}, indent=2, ensure_ascii=False)
        print(text, file=sys.stderr if out == "-" else sys.stdout)
        return
    where: Console = console(sys.stderr) if out == "-" else options.out()
    show_searched(found, where, command)
