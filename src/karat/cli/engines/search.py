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
    help="The search function, found from the current folder or the workspace's: it takes the "
    "text of a query and returns ids, (id, score) pairs or dicts, best first; plain or async.",
)
@click.option(
    "-o",
    "--out",
    metavar="RUN",
    required=True,
    help="Where to write the run: .jsonl, .parquet, .trec, .run, .csv, .tsv or .json, also .gz, "
    ".zst or .bz2; - is standard output, as JSONL.",
)
@click.option("--concurrency", type=int, default=1, show_default=True, help="Calls at once.")
@click.option("--timeout", type=float, metavar="SECONDS", help="For each call.  [default: none]")
@click.option(
    "--retries", type=int, default=0, show_default=True, help="Further tries after an error."
)
@click.option(
    "--warmup",
    type=int,
    default=0,
    show_default=True,
    help="Ask so many of the first queries once before; they are not timed.",
)
@click.option("-k", "--depth", type=int, metavar="N", help="Keep the best N documents.")
@click.option(
    "--name",
    metavar="NAME",
    help="What the run is called, also in a history.  [default: the file's name]",
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
    help="Format of the run, where its name does not tell: jsonl, parquet, trec, csv, tsv, json, "
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
    """Ask a search function all queries of a set, and write the run.

    QUERIES is a file of queries, a golden set, a BEIR folder, or - for standard input; without it,
    the queries of the workspace of the current folder. A query that raises an error, takes too long
    or returns no ranking is kept as failed; if all do, nothing is written and the exit code is 4.
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
    """The queries to ask, and the folder of the workspace, if there is one."""
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
            "no queries: none are named, and the current folder is not in a workspace",
            fix="name a file of queries, or make a workspace: karat init",
        ) from None
    from karat.workflows.workspace.workspace import queries_in

    with opened(Path()) as workspace:
        return queries_in(workspace), workspace.workspace.root


def _about(facts: tuple[str, ...]) -> dict[str, str]:
    """The pairs of ``KEY=VALUE``."""
    about = {}
    for each in facts:
        key, sign, value = each.partition("=")
        if not key.strip() or not sign:
            raise UsageError(f"--about {each!r} is not KEY=VALUE", fix="--about index=docs-7")
        about[key.strip()] = value
    return about


def _next(queries: str | None, out: str) -> str | None:
    """The command that goes on from here."""
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
    """The summary on standard output, or beside the run that is there on standard error."""
    from karat.reports.engines.search import show_searched
    from karat.reports.writers.terminal import console

    if output == "json":
        text = json.dumps(found.to_dict() | {"next": command}, indent=2, ensure_ascii=False)
        print(text, file=sys.stderr if out == "-" else sys.stdout)
        return
    where: Console = console(sys.stderr) if out == "-" else options.out()
    show_searched(found, where, command)
