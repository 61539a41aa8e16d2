"""karat review."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.offline import inputs
from karat.cli.pages import need_page, put_page

if TYPE_CHECKING:
    from karat.tables.online.watch import Watched

_SIDES = ("baseline", "candidate")


@options.command(
    "karat review qrels.txt old.trec new.trec --by class",
    "karat review qrels.txt old.trec new.trec --trace old.jsonl",
    "karat review qrels.txt old.trec new.trec --report review.html --open",
)
@click.argument("qrels", metavar="QRELS")
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@options.measures("Measures; the first decides.  [default: nDCG@10]")
@options.sliced
@options.option(
    "--trace traces [SIDE=]FILE",
    "A trace of the baseline, for the reasons why its queries fail; candidate=FILE is one of the "
    "candidate.",
    multiple=True,
)
@options.option("--below VALUE", "Queries with a lower value are bad.", 0.5)
@options.option(
    "-w --workspace start DIR",
    "A workspace with the raters' single judgments, and with a log for the rollback signal.  "
    "[default of the log: the workspace of the current folder]",
    type=click.Path(path_type=Path),
)
@options.rel
@options.scale
@options.fully_judged
@options.option(
    "--documents FILE",
    "The documents, for --by and for failure modes: updated_at, subject_id, supersedes, ….",
)
@options.output("table", "json", "md")
@options.option("--report FILE", "Also write a page: a single .html file.")
@options.open_page
@options.read
def review(
    qrels: str,
    baseline: str,
    candidate: str,
    measures: tuple[str, ...],
    traces: tuple[str, ...],
    below: float,
    start: Path | None,
    output: str,
    report: str | None,
    open_page: bool,
    input_format: str | None,
    qrels_format: str | None,
    part: str | None,
    **settings: Any,
) -> None:
    """Print the one page to discuss before a change is released.

    Which failures it catches, which slice should improve first, the gain with its interval, what
    it costs, which signal says to roll it back, and what was not measured.
    """
    from karat import formats
    from karat.cli.release.trend import commit as commit_of
    from karat.reports.release import review as shown
    from karat.workflows.release.review import review as reviewed

    need_page(report, opened=open_page)
    of_sides = _traces(traces)
    judgments, runs, uses = inputs.read(
        qrels,
        lambda watch: [
            formats.read_run(path, input_format, watch=watch) for path in (baseline, candidate)
        ],
        settings,
        qrels_format=qrels_format,
        part=part,
    )
    settings["measures"] = list(measures)
    options.fill_defaults(settings, qrels, judgments)
    settings["documents"] = options.documents_in(qrels, settings | {"collapse": None})
    chosen = settings.pop("measures") or ["nDCG@10"]
    code = commit_of(None, os.environ)
    found = reviewed(
        judgments,
        runs[0],
        runs[1],
        chosen,
        traces=of_sides,
        below=below,
        judgments=None if start is None else _judgments(start),
        watched=_usual(start, settings),
        commit=code,
        **settings,
    )
    found.notes[:0] = uses(commit=code)
    options.emit(shown, found, output)
    if report is not None:
        put_page(report, shown.to_page(found), opened=open_page)


def _traces(given: tuple[str, ...]) -> dict[str, str]:
    """Side → file; a file without a side is the baseline's."""
    from karat.errors import UsageError

    found: dict[str, str] = {}
    for text in given:
        side, equals, path = text.partition("=")
        if side not in _SIDES or not equals:
            side, path = "baseline", text
        if side in found:
            raise UsageError(f"the {side} has two traces", fix="--trace candidate=FILE")
        found[side] = path
    return found


def _judgments(start: Path) -> Any:
    from karat.cli.workspace.workspace import opened
    from karat.workflows.workspace.stored_inputs import single_judgments

    with opened(start) as workspace:
        return single_judgments(workspace)


def _usual(start: Path | None, settings: dict[str, Any]) -> Watched | None:
    """What the metrics of the log usually are; None without a log."""
    from karat.cli.online.options import counting
    from karat.cli.workspace.workspace import clock
    from karat.errors import InputError, KaratError
    from karat.workflows.release.review import usual

    where = {"start": start or Path(), "events": None, "engine": "polars", "master": None}
    try:
        with counting({**where, "rules": (), "only": ()}) as (log, engine, rest):
            by, queries = settings["by"], settings["queries"]
            return usual(log, engine, by, now=clock(), queries=queries, **rest)
    except KaratError as error:
        if start is not None and not isinstance(error, InputError):
            raise
        return None
