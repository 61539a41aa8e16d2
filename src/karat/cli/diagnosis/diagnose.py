"""karat diagnose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from karat.cli import options
from karat.cli.pages import need_page, put_page
from karat.errors import UsageError, check_known

if TYPE_CHECKING:
    from karat.tables.diagnosis.results import Diagnosis
    from karat.tables.diagnosis.traces import StageKind
    from karat.workflows.diagnosis.diagnose import Diagnosed


@options.command(
    "karat diagnose qrels.txt run.trec --trace trace.jsonl --review review.csv",
    "karat diagnose qrels.txt top.trec --stage bm25=a.trec --stage top=b.trec",
    "karat diagnose qrels.txt run.trec --trace trace.jsonl --query q42",
)
@click.argument("qrels", metavar="QRELS")
@click.argument("run", metavar="RUN")
@options.option(
    "--trace FILE",
    "What each stage returned: JSON lines, Parquet, or spans of OpenTelemetry (OTLP JSON).",
)
@options.option(
    "--stage stages NAME[:KIND]=RUN",
    "Instead of a trace: a stage's run, in the order of the pipeline. Its kind is retrieve, "
    "filter, fuse, rerank or rewrite; without one it follows from the documents. Repeatable.",
    multiple=True,
)
@options.measures("Measures; the first decides which queries fail.  [default: nDCG@10]")
@options.option("--below VALUE", "Queries with a lower value fail.", 0.5)
@options.option("--baseline RUN", "Queries that this run has a higher value for fail too.")
@options.option("--query query_id QUERY_ID", "Show the documents of one query.")
@options.option("--queries FILE", "The queries: texts, weights, attributes.")
@options.option(
    "--documents FILE", "The documents: updated_at, source_updated_at, subject_id, supersedes."
)
@options.option(
    "--engine NAME", "An engine declared in karat.toml, asked which documents its index has."
)
@options.option(
    "-w --workspace DIR",
    "A workspace with the raters' single judgments and grades from clicks, for doubts about "
    "labels, and with the queries, unless they are given.",
)
@options.option("--by ATTRIBUTE", "Also by this attribute of the queries.")
@options.option(
    "--fail-on MODE[=SHARE]",
    "End with 1 if a mode has a larger share of the failing queries (0 by default). Repeatable.",
    multiple=True,
)
@options.option(
    "--review FILE",
    "Write relevant documents that are missed, and what is shown above them, judged not relevant "
    "or not at all, with their modes: CSV, TSV, JSONL or Parquet, by its name.",
)
@options.option("--queue", "Add these documents to the judging queue of the workspace.")
@options.option("--report FILE", "Also write a page: a single .html file.")
@options.open_page
@options.rel
@options.measures_from
@options.output("table", "json", "md")
@options.input_format
@options.qrels_format
def diagnose(
    qrels: str,
    run: str,
    stages: tuple[str, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    query_id: str | None,
    queries: str | None,
    engine: str | None,
    workspace: str | None,
    fail_on: tuple[str, ...],
    review: str | None,
    queue: bool,
    report: str | None,
    open_page: bool,
    output: str,
    input_format: str | None,
    qrels_format: str | None,
    **settings: Any,
) -> int:
    """Show which stage loses relevant documents, why queries fail, and what fixes are worth.

    Exit codes: 0, or 1 with --fail-on.
    """
    from karat import formats
    from karat.formats.own.engines import read_engine
    from karat.reports.diagnosis import diagnosis
    from karat.workflows.diagnosis.diagnose import diagnose as diagnosed
    from karat.workflows.diagnosis.diagnose import road_of

    need_page(report, opened=open_page)
    limits = dict(_limit(given) for given in fail_on)
    named, kinds = _stages(stages)
    _refuse(review, queue, workspace, output)
    if queries is None and formats.holds_queries(qrels):
        queries = qrels
    judgments, known, clicks = (None,) * 3 if workspace is None else _of_workspace(workspace)
    found = diagnosed(
        formats.read_qrels(qrels, qrels_format),
        formats.read_run(run, input_format),
        stages={name: formats.read_run(path, input_format) for name, path in named.items()},
        kinds=kinds,
        measures=measures or ("nDCG@10",),
        baseline=None if baseline is None else formats.read_run(baseline, input_format),
        queries=known if queries is None else queries,
        engine=None if engine is None else read_engine(engine, Path()),
        judgments=judgments,
        clicks=clicks,
        **settings,
    )
    _write(found, review, report, workspace if queue else None, opened=open_page)
    if query_id is not None:
        _show_roads(query_id, road_of(found, query_id), output)
        return 0
    options.emit(diagnosis, found, output)
    return _exit_code(found, limits)


def _refuse(review: str | None, queue: bool, workspace: str | None, output: str) -> None:
    if queue and workspace is None:
        raise UsageError("--queue needs a workspace", fix="--workspace DIR")
    if review == "-" and output == "json":
        raise UsageError("--review - would mix with the JSON", fix="--review review.jsonl")


def _write(
    found: Diagnosed, review: str | None, report: str | None, queue: str | None, *, opened: bool
) -> None:
    """Write the documents to review and the page; add the documents to the queue of a workspace."""
    from karat.cli.workspace.workspace import enqueue
    from karat.formats import write_pairs
    from karat.reports.diagnosis.diagnosis import QUERIES
    from karat.workflows.diagnosis.diagnose import road_of

    if review is not None:
        write_pairs(found.to_review(), review)
    if queue is not None:
        enqueue(queue, found.to_review(), "to review")
    if report is not None:
        from karat.reports.html.diagnosis import to_page

        shown = [row.query_id for row in found.queries[:QUERIES]]
        page = to_page(found, {query: road_of(found, query) for query in shown})
        put_page(report, page, opened=opened)


def _stages(given: tuple[str, ...]) -> tuple[dict[str, str], dict[str, StageKind]]:
    """Stage → file, and stage → kind for those that name one."""
    from karat.tables.diagnosis.traces import KINDS

    named: dict[str, str] = {}
    kinds: dict[str, StageKind] = {}
    for text in given:
        left, equals, path = text.partition("=")
        name, colon, kind = left.partition(":")
        if not (name and equals and path):
            raise UsageError(f"--stage {text!r} is not NAME=RUN", fix="--stage bm25=bm25.trec")
        if name in named:
            raise UsageError(f"the stage {name} is given twice", fix="one name for each stage")
        named[name] = path
        if colon:
            check_known(kind, KINDS, f"unknown kind {kind!r} of the stage {name}")
            kinds[name] = cast("StageKind", kind)
    return named, kinds


def _limit(text: str) -> tuple[str, float]:
    from karat.tables.diagnosis.results import MODES

    mode, equals, share = text.partition("=")
    check_known(mode, MODES, f"unknown failure mode {mode!r}")
    try:
        limit = float(share) if equals else 0.0
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= 1:
        raise UsageError(f"{share!r} is not a share from 0 to 1", fix=f"--fail-on {mode}=0.2")
    return mode, limit


def _exit_code(found: Diagnosis, limits: Mapping[str, float]) -> int:
    shares: dict[str, float] = {row.mode: row.share for row in found.modes}
    return int(any(shares.get(mode, 0.0) > limit for mode, limit in limits.items()))


def _of_workspace(folder: str) -> tuple[Any, Any, Any]:
    from karat.cli.workspace.workspace import opened
    from karat.workflows.workspace.stored_inputs import golden_queries, single_judgments
    from karat.workflows.workspace.stored_judgments import click_grades

    with opened(Path(folder)) as workspace:
        return single_judgments(workspace), golden_queries(workspace), click_grades(workspace)


def _show_roads(query_id: str, roads: list[Any], output: str) -> None:
    from dataclasses import asdict

    from karat.reports.diagnosis.diagnosis import roads_table
    from karat.reports.writers.markdown import markdown
    from karat.reports.writers.tables import draw

    table = roads_table(query_id, roads)
    if output == "json":
        options.print_json({"query_id": query_id, "documents": [asdict(road) for road in roads]})
    elif output == "md":
        print(markdown(table), end="")
    else:
        draw(table, options.out())
