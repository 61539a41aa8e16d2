"""karat try."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.engines.search import pairs
from karat.cli.workspace.serve import who
from karat.cli.workspace.workspace import clock, need_store, opened
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.tables.engines import Variant
    from karat.workflows.workspace.workspace import Workspace


@options.command(
    "karat try prod 'red shoes' --against-param boost_title=5",
    "karat try prod --all --param boost_title=5 --name heavier",
    "karat try --list",
    name="try",
)
@click.argument("targets", metavar="[ENGINE] [QUERY]", nargs=-1)
@options.option(
    "--param params NAME=VALUE",
    "Another value of a parameter of the engine; repeat for more.",
    multiple=True,
)
@options.option("--template FILE", "Another template for the engine.")
@options.option(
    "--against ENGINE",
    "A second engine, side by side.  [default: the same, if --against-param or "
    "--against-template is given]",
)
@options.option(
    "--against-param against_params NAME=VALUE",
    "Another value of a parameter of the second; repeat for more.",
    multiple=True,
)
@options.option("--against-template FILE", "Another template for the second.")
@options.option("-k --depth N", "Documents of the query.", 10)
@options.option("--explain", "Also ask what the scores are made of.")
@options.option(
    "--all every",
    "Ask all queries of the golden set, store the answers as a run, and compare it with the last "
    "try.",
)
@options.option("--name NAME", "With --all: name of the try.  [default: ENGINE-try-NUMBER]")
@options.option("--list history", "List the tries, or those of ENGINE.")
@options.option("--forget NAME", "Delete a try, with its run and comparison.")
@options.option("--promote NAME", "Save a try as baseline.json, the baseline of karat gate.")
@options.output("table", "json")
def try_(targets: tuple[str, ...], output: str, **given: Any) -> int:
    """Ask an engine one query, with grades; side by side with a second variant of it.

    ENGINE is declared in karat.toml ([engine.NAME]); --param and --template change it for this
    try only. QUERY is a text, or the id of a query of the golden set.

    Exit codes: 0 every engine answered, 4 one did not.
    """
    need_store()
    if given["history"] or given["forget"] or given["promote"]:
        _history(targets, given, output)
    elif given["every"]:
        _all(targets, given, output)
    else:
        return _one(targets, given, output)
    return 0


def _one(targets: tuple[str, ...], given: dict[str, Any], output: str) -> int:
    from karat.formats.own.workspace import find_workspace
    from karat.reports.engines.tries import show_tried
    from karat.workflows.engines.tries import try_query

    if len(targets) != 2 or given["name"]:
        raise UsageError(
            "expected an engine and a query"
            if len(targets) != 2
            else "--name is the name of a try of all queries",
            fix="karat try ENGINE 'red shoes', or karat try ENGINE --all",
        )
    variants = [_variant(targets[0], given["template"], given["params"], "--param")]
    again = given["against_params"], given["against_template"]
    if given["against"] or any(again):
        second = given["against"] or targets[0]
        variants.append(_variant(second, again[1], again[0], "--against-param"))
    root = find_workspace(Path()).parent
    with ExitStack() as stack:
        workspace: Workspace | None = None
        if _has_golden_set(root):
            workspace = stack.enter_context(opened(Path()))
        tried = try_query(
            root,
            variants,
            targets[1],
            opened=workspace,
            depth=given["depth"],
            strict=True,
            explain=given["explain"],
        )
    options.print_or_show(tried, output, lambda out: show_tried(tried, out))
    return 0 if tried.answered else 4


def _has_golden_set(root: Path) -> bool:
    """Whether a folder is a workspace, rather than one with only declared engines."""
    from karat.formats import toml
    from karat.formats.own.workspace import NAME

    with suppress(OSError):
        return "workspace" in toml.read(root / NAME).content
    return False


def _variant(engine: str, template: str | None, params: tuple[str, ...], option: str) -> Variant:
    from karat.formats.tables.source import Source
    from karat.tables.engines import Variant

    text = None
    if template is not None:
        with Source(template) as source:
            text = source.whole().decode("utf-8-sig", "replace")
    return Variant(engine, text, pairs(params, option, "boost_title=5"))


def _all(targets: tuple[str, ...], given: dict[str, Any], output: str) -> None:
    from karat.reports.engines.tries import show_try, try_json
    from karat.workflows.engines.tries import numbers_of, run_all

    if len(targets) != 1 or given["against"] or given["against_params"]:
        raise UsageError(
            "--all asks one engine all queries",
            fix="karat try ENGINE --all; it is compared with the last try of the engine",
        )
    variant = _variant(targets[0], given["template"], given["params"], "--param")
    with opened(Path()) as workspace:
        row = run_all(
            workspace, variant, person=who(), clock=clock, name=given["name"] or "", progress=True
        )
        results, comparison = numbers_of(workspace, row)
    options.print_or_show(
        try_json(row, results, comparison),
        output,
        lambda out: show_try(row, results, comparison, out),
    )


def _history(targets: tuple[str, ...], given: dict[str, Any], output: str) -> None:
    from karat.reports.engines.tries import tries_table
    from karat.workflows.engines.tries import find_try, forget_try, list_tries
    from karat.workflows.offline.catalogue import default_measures
    from karat.workflows.release.baseline import save_stored_baseline

    if len(targets) > 1:
        raise UsageError("expected at most one engine", fix="karat try --list ENGINE")
    with opened(Path()) as workspace:
        if given["forget"]:
            forget_try(workspace, given["forget"], person=who(), now=clock())
        if given["promote"]:
            run = find_try(workspace, given["promote"]).run
            path = save_stored_baseline(workspace, run, person=who(), now=clock())
            print(f"karat: {given['promote']} is the baseline: {path}", file=sys.stderr)
        tries = list_tries(workspace, *targets)
    content = {"tries": [asdict(row) for row in tries]}
    options.print_rows(tries_table(tries, default_measures()[0]), content, output)
