"""karat search."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import replace
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


@options.command(
    "karat search prod -o run.parquet",
    "karat search prod queries.jsonl -o boosted.jsonl --param boost_title=5",
    "karat search vectors --exact --param ef=10,50,100 --plot recall.svg",
)
@click.argument("targets", metavar="[ENGINE] [QUERIES]", nargs=-1)
@options.option(
    "--python function MODULE:FUNCTION",
    "The search function, importable from the current folder or the workspace's: it takes the "
    "text of a query and returns ids, (id, score) pairs or dicts, best first; may be async.",
)
@options.option(
    "--param params NAME=VALUE",
    "Another value of a parameter of the engine; repeat for more. With --exact several, as in "
    "ef=10,50,100: each is a setting.",
    multiple=True,
)
@options.option(
    "-o --out RUN",
    "Where to write the run: .jsonl, .parquet, .trec, .run, .csv, .tsv or .json, also .gz, .zst "
    "or .bz2; - is standard output, as JSONL.",
)
@options.option("--concurrency", "Number of concurrent calls.", 1)
@options.option(
    "--timeout SECONDS",
    "Timeout of each call.  [default: that of the engine; none for --python]",
    type=float,
)
@options.option("--retries", "Retries after an error.", 0)
@options.option("--warmup", "Number of queries to ask once beforehand, untimed.", 0)
@options.option("--repeat", "How often to ask each query; its latency is the median.", 1)
@options.option(
    "-k --depth N",
    "Documents per query.  [default: the engine's, or 100; --python: all; --exact: 10]",
    type=int,
)
@options.option("--name NAME", "Name of the run, also in a history.  [default: the file's name]")
@options.option(
    "--about facts KEY=VALUE",
    "Record this about the run: engine, engine_version, index, index_fingerprint, template, "
    "parameters, commit, corpus, or a key of your own; repeat for more.",
    multiple=True,
)
@options.option(
    "--output-format FORMAT",
    "Format of the run, if not clear from its suffix: jsonl, parquet, trec, csv, tsv, json, "
    "msmarco.",
)
@options.option(
    "--exact",
    "Compare the engine with its own exact search for neighbours: recall of the first -k (10) "
    "and latency, for each setting. No run is written.",
)
@options.option(
    "--trace FILE",
    "Also ask each stage of the ENGINE by itself (sub-queries of a hybrid, what a reranker gets, "
    "declared stages), and write what it returned: .jsonl or .parquet, for karat diagnose.",
)
@options.option(
    "--trace-depth N", "Documents to ask of each stage.  [default: 5 times --depth]", type=int
)
@options.option("--plot FILE", "With --exact: latency against recall, as .svg.")
@options.output("table", "json")
def search(
    targets: tuple[str, ...],
    function: str | None,
    out: str | None,
    exact: bool,
    trace: str | None,
    trace_depth: int | None,
    plot: str | None,
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
    from karat.cli.release.trend import commit

    if exact or plot:
        _exact(targets, params, output, plot, function or out or facts or trace, settings)
        return
    if out is None:
        raise click.MissingParameter(param_hint="'-o' / '--out'", param_type="option")
    settings |= {"about": pairs(facts, "--about", "index=docs-7")}
    settings |= {"commit": commit(None, os.environ)}
    if function is not None:
        from karat.clients.python_function import load
        from karat.workflows.engines.search import search as searched

        if len(targets) > 1 or params:
            raise UsageError("an engine and --python exclude each other", fix="give one of them")
        if trace:
            raise UsageError(
                "--trace asks the stages of an engine, and --python names a function",
                fix="use karat.trace in the function, or declare it as an engine with stages",
            )
        queries = targets[0] if targets else None
        asked, root = _queries(queries)
        folders = [Path.cwd(), *([root] if root is not None else [])]
        found = searched(asked, load(function, folders), out, engine=function, **settings)
    else:
        from karat.formats.own.engines import read_engine, with_params
        from karat.workflows.engines.live import search_engine
        from karat.workflows.engines.trace import check_trace, trace_search

        if not 1 <= len(targets) <= 2 or (len(targets) == 1 and Path(targets[0]).exists()):
            raise UsageError(
                "no search engine",
                fix="karat search ENGINE [QUERIES], or --python my_search:search [QUERIES]",
            )
        config = read_engine(targets[0], Path())
        config = with_params(config, pairs(params, "--param", "boost_title=5"))
        queries = targets[1] if len(targets) == 2 else None
        asked = _queries(queries)[0]
        if trace:
            check_trace(config, trace, trace_depth)
        found = search_engine(asked, config, out, **settings)
        if trace:
            calls = {name: settings[name] for name in ("concurrency", "retries")}
            found = trace_search(asked, config, found, trace, depth=trace_depth, **calls)
    _print(found, output, out, _next(queries, out, trace))


def _exact(
    targets: tuple[str, ...],
    params: tuple[str, ...],
    output: str,
    plot: str | None,
    others: Any,
    settings: dict[str, Any],
) -> None:
    from karat.formats.own.engines import read_engine
    from karat.reports.engines import exact
    from karat.workflows.engines.exact import search_exact

    if others or not 1 <= len(targets) <= 2:
        raise UsageError(
            "--exact needs an engine, and writes no run",
            fix="karat search ENGINE [QUERIES] --exact",
        )
    if plot is not None and not plot.endswith(".svg"):
        raise UsageError(f"{plot} does not end in .svg", fix="--plot recall.svg")
    config = read_engine(targets[0], Path())
    if settings["timeout"] is not None:
        config = replace(config, timeout=settings["timeout"])
    names = ("depth", "concurrency", "retries", "warmup")
    found = search_exact(
        _queries(targets[1] if len(targets) == 2 else None)[0],
        config,
        pairs(params, "--param", "ef=10,50,100"),
        **{name: settings[name] for name in names},
    )
    options.emit(exact, found, output)
    if plot is not None:
        from karat.reports.charts.drawing import to_svg

        try:
            Path(plot).write_text(to_svg(exact.chart(found)), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=plot) from None


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
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not key.strip() or not sign:
            form = "KEY=VALUE" if option == "--about" else "NAME=VALUE"
            raise UsageError(f"{option} {text!r} is not {form}", fix=f"{option} {example}")
        found[key.strip()] = value
    return found


def _next(queries: str | None, out: str, trace: str | None) -> str | None:
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
    if trace:
        return f"karat diagnose {qrels} {shlex.quote(out)} --trace {shlex.quote(trace)}"
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
