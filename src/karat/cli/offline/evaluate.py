"""karat evaluate."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.offline import inputs
from karat.cli.pages import need_report, write_page
from karat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.tables import Results, Run


@options.command(
    "karat evaluate qrels.txt bm25.trec",
    "karat evaluate qrels.txt bm25.trec dense.trec -m nDCG@10 -m R@100",
    "karat evaluate qrels.txt bm25.trec --by category --queries queries.csv",
)
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@options.measures(
    "A measure such as nDCG@10, 'P(rel=2)@5', MRR or map; repeat for more.  "
    "[default: nDCG@10 RR@10 P@10 R@100 AP]"
)
@options.option("-q --per-query", "Also show the values of each query (trec_eval -q).")
@options.sliced
@options.option(
    "--outcome outcomes ATTRIBUTE",
    "Correlate measures with this attribute of the queries (did the answer succeed?).",
    multiple=True,
)
@options.option(
    "--threshold SCORE",
    "For queries marked no_answer: a best score below it counts as no answer.",
    type=float,
)
@options.judgments
@options.judged
@options.machine_grades
@options.option("--compat TOOL", "Match trec_eval-9 or trec_eval-10 to the last printed digit.")
@options.option(
    "--interval",
    "95 % interval: Student's t, BCa bootstrap (too narrow for few queries: at 20 it covers 88 "
    "to 93 % instead of 95), or none.",
    "t",
    type=click.Choice(["t", "bca", "none"]),
)
@options.option("--seed", "Seed of --interval bca.", 0)
@options.option(
    "--bounds/--no-bounds",
    "Show how much unjudged documents could change.  [default: for cutoffs up to 100; for all "
    "with --full, json, csv]",
)
@options.output(*options.FORMATS)
@options.option("--full", "Show all digits, counts, bands, bounds and notes.")
@options.all_notes
@options.page
@options.option("--plot FILE", "Plot the measures to a .png or .svg file.")
@options.option(
    "--name run_names NAME",
    "Name of the run in the output and the history; one per run, in their order.  [default: the "
    "file's name]",
    multiple=True,
)
@options.history
@options.read
def evaluate(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    output: str,
    full: bool,
    all_notes: bool,
    report: str | None,
    open_page: bool,
    plot: str | None,
    history: str | None,
    commit: str | None,
    corpus: str | None,
    series: str | None,
    run_names: tuple[str, ...],
    input_format: str | None,
    qrels_format: str | None,
    part: str | None,
    **settings: Any,
) -> None:
    """Evaluate runs: numbers with intervals, counts and notes.

    QRELS are judgments: a file, a BEIR folder, or - for standard input. RUN… are one or more
    runs. Formats are detected from the content: TREC, BEIR, MS MARCO, CSV, TSV, JSONL, Parquet,
    nested JSON; plain or .gz, .zst, .bz2.
    """
    with options.importing():
        from karat import formats
        from karat.cli.release.trend import commit as commit_of
        from karat.workflows.offline.evaluate import evaluate as evaluated

    names = [name for name in measures if name.casefold() != "runid"]
    if measures and not names and output != "trec":
        raise UsageError('unknown measure "runid"', fix="--format trec prints it")
    need_report(report, opened=open_page)
    machine = inputs.MachineGrades(settings)
    if history is not None:
        from karat.workflows.release.trend import check_series

        check_series(series, len(runs))
    judgments, read, uses = inputs.read(
        qrels,
        lambda watch: [
            formats.read_run(path, input_format, name, watch=watch)
            for path, name in zip(runs, _named(runs, run_names), strict=True)
        ],
        settings,
        qrels_format=qrels_format,
        part=part,
    )
    # trec_eval's output does not depend on where it is run.
    settings["measures"] = names if measures else None
    keys = () if output == "trec" or settings["compat"] else None
    options.fill_defaults(settings, qrels, judgments, keys)
    if settings["bounds"] is None and not settings["fully_judged"]:
        settings["bounds"] = full or output in {"json", "csv"} or None
    settings["documents"] = options.documents_in(qrels, settings)
    if output == "trec":
        settings["interval"] = "none"  # trec_eval prints none
    if history is not None:
        from karat.workflows.offline.inputs import queries

        settings["queries"] = queries(settings["queries"])
    code = commit_of(commit, os.environ)
    results = evaluated(judgments, read, **settings, commit=code)
    results.notes[:0] = uses(commit=code)
    results = inputs.with_machine_grades(results, results.results, judgments, read, machine)
    if history is not None:
        from karat.cli.release import trend
        from karat.workflows.release.trend import keep, rules_text

        keep(
            history,
            results,
            time=trend.moment(),
            qrels=judgments,
            queries=settings["queries"],
            commit=code,
            corpus=corpus,
            rules=rules_text({**settings, "part": part}),
            series=series,
            renamed=bool(run_names),
        )
    if output == "trec":
        lists = {"official", "all_trec", "runid"}
        wants_id = not measures or any(name.casefold() in lists for name in measures)
        _print_trec(results, read, settings["per_query"], wants_id)
    else:
        from karat.reports.offline import evaluation

        options.emit(evaluation, results, output, full=full, all_notes=all_notes)
        if output in {"csv", "latex"}:
            options.notes_aside(results.notes)
    if plot is not None:
        from karat.workflows.offline.report import write_plot

        write_plot(plot, results)
    if report is not None:
        write_page(report, results, read, judgments, qrels, settings, opened=open_page)


def _named(runs: tuple[str, ...], names: tuple[str, ...]) -> Sequence[str | None]:
    """The name of each run; None for the file's name."""
    if not names:
        return [None] * len(runs)
    if len(names) != len(runs):
        raise UsageError(
            f"{len(names):,} names and {len(runs):,} runs: expected one --name for each run",
            fix="--name A --name B, in the order of the runs",
        )
    if len(set(names)) < len(names) or not all(name.strip() for name in names):
        raise UsageError("each run needs a --name of its own", fix="--name A --name B")
    return names


def _print_trec(results: Results, runs: list[Run], per_query: bool, wants_id: bool) -> None:
    from karat.reports.writers.trec import lines

    names = dict.fromkeys(row.run for row in results.results)
    for name, run in zip(names or [run.name for run in runs], runs, strict=True):
        runid = run.about.get("tag", run.name) if wants_id else None
        for line in lines(results, name, per_query=per_query, runid=runid):
            print(line)
    sys.stdout.flush()
    options.notes_aside(results.notes)
