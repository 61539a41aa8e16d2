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
        "karat search prod -o run.parquet",
        "karat search prod queries.jsonl -o boosted.jsonl --param boost_title=5",
        "karat search --python my_search:search queries.jsonl -o run.jsonl",
    )
)
@click.argument("targets", metavar="[ENGINE] [QUERIES]", nargs=-1)
@click.option(
    "--python",
    "function",
    metavar="MODULE:FUNCTION",
    help="The search function, importable from the current folder or the workspace's: it takes the "
    "text of a query and returns ids, (id, score) pairs or dicts, best first; may be async.",
)
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="Another value of a parameter of the engine; repeat for more.",
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
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="Timeout of each call.  [default: that of the engine; none for --python]",
)
@click.option("--retries", type=int, default=0, show_default=True, help="Retries after an error.")
@click.option(
    "--warmup",
    type=int,
    default=0,
    show_default=True,
    help="Number of queries to ask once beforehand, untimed.",
)
@click.option("-k", "--depth", type=int, metavar="N", help="Documents per query.")
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
    targets: tuple[str, ...],
    function: str | None,
    out: str,
    facts: tuple[str, ...],
    params: tuple[str, ...],
    output: str,
    **settings: Any,
) -> None:
    """Run all queries of a set against a search engine, and write the run.

    ENGINE is declared in karat.toml ([engine.NAME]); --python names a search function instead.
    QUERIES is a file of queries, a golden set, a BEIR folder, or - for standard input; without it,
    the queries of the current folder's workspace are used. A query that raises an error, times out
    or returns no ranking is recorded as failed; if all fail, nothing is written and the exit code
    is 4. An interrupted search of an ENGINE goes on where it stopped when it is repeated.
    """
    from karat.cli.release import trend

    settings |= {"about": pairs(facts, "--about", "index=docs-7")}
    settings |= {"commit": trend.commit(None, os.environ)}
    if function is not None:
        from karat.clients.python_function import load
        from karat.workflows.engines.search import search as searched

        if len(targets) > 1 or params:
            raise UsageError("an engine and --python exclude each other", fix="give one of them")
        queries = targets[0] if targets else None
        asked, root = _queries(queries)
        folders = [Path.cwd(), *([root] if root is not None else [])]
        found = searched(asked, load(function, folders), out, engine=function, **settings)
    else:
        from karat.formats.own.engines import read_engine, with_params
        from karat.workflows.engines.live import search_engine

        if not 1 <= len(targets) <= 2 or (len(targets) == 1 and Path(targets[0]).exists()):
            raise UsageError(
                "no search engine",
                fix="karat search ENGINE [QUERIES], or --python my_search:search [QUERIES]",
            )
        config = read_engine(targets[0], Path())
        config = with_params(config, pairs(params, "--param", "boost_title=5"))
        queries = targets[1] if len(targets) == 2 else None
        found = search_engine(_queries(queries)[0], config, out, **settings)
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


def pairs(given: tuple[str, ...], option: str, example: str) -> dict[str, str]:
    """The pairs of ``NAME=VALUE``."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not key.strip() or not sign:
            form = "KEY=VALUE" if option == "--about" else "NAME=VALUE"
            raise UsageError(f"{option} {text!r} is not {form}", fix=f"{option} {example}")
        found[key.strip()] = value
    return found


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
