"""karat compare."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from karat.cli import options
from karat.cli.offline import inputs
from karat.cli.pages import need_report, write_page
from karat.errors import UsageError

CANNOT_TELL = 3


@options.command(
    "karat compare qrels.txt bm25.trec dense.trec",
    "karat compare qrels.txt bm25.trec dense.trec -m nDCG@10 --by category",
    "karat compare qrels.txt bm25.trec dense.trec --report compare.html --open",
)
@click.argument("qrels", metavar="QRELS", required=False)
@click.argument("baseline", metavar="BASELINE", required=False)
@click.argument("candidates", metavar="CANDIDATE…", nargs=-1)
@options.measures(
    "A measure such as nDCG@10; repeat for more.  [default: nDCG@10 RR@10 P@10 R@100 AP]"
)
@options.sliced
@options.option(
    "--test",
    "Significance test.",
    "randomisation",
    type=click.Choice(["randomisation", "bootstrap", "t", "wilcoxon", "sign"]),
)
@options.option(
    "--interval",
    "95 % intervals of the difference: Student's t, or BCa bootstrap (too narrow for few "
    "queries: at 20 it covers 88 to 93 % instead of 95).",
    "t",
    type=click.Choice(["t", "bca"]),
)
@options.option(
    "--margin SIZE",
    "Differences smaller than this do not matter; needed for the verdict “equivalent”.",
    type=float,
)
@options.option(
    "--all-pairs", "Test all pairs of runs, not only those with BASELINE, and correct over all."
)
@options.option("--resamples", "Number of resamples.", 10_000)
@options.option("--seed", "Random seed.", 0)
@options.option(
    "--review N",
    "List N bad documents shown and N relevant ones missed, in all and in each slice.",
    0,
    show_default=False,
    type=click.IntRange(min=0),
)
@options.option(
    "--judge-next N",
    "List N judging priorities: pairs whose grades say most about the sign of the first "
    "difference.",
    0,
    show_default=False,
    type=click.IntRange(min=0),
)
@options.option(
    "--judge-file FILE", "Write these pairs to a file for judging: .csv, .tsv, .jsonl or .parquet."
)
@options.option(
    "--certificate FILE",
    "Write a certificate that no grades of unjudged documents reverse the sign of the first "
    "difference.",
)
@options.option(
    "--verify FILE",
    "Verify a certificate, by itself or against QRELS BASELINE CANDIDATE as they are now.",
)
@options.judgments
@options.judged
@options.machine_grades
@options.output("table", "json", "csv", "md", "latex")
@options.option("--full", "Show every query that changed, every leaderboard and every note.")
@options.all_notes
@options.page
@options.option(
    "--trace traces RUN=FILE",
    "The trace of a run, by its name, for the latency of each stage. Repeatable.",
    multiple=True,
)
@options.option("--plot FILE", "Plot the differences to a .png or .svg file.")
@options.read
def compare(
    qrels: str | None,
    baseline: str | None,
    candidates: tuple[str, ...],
    measures: tuple[str, ...],
    output: str,
    full: bool,
    all_notes: bool,
    judge_file: str | None,
    certificate: str | None,
    verify: str | None,
    report: str | None,
    open_page: bool,
    traces: tuple[str, ...],
    plot: str | None,
    input_format: str | None,
    qrels_format: str | None,
    part: str | None,
    **settings: Any,
) -> int:
    """Compare runs with a baseline, query by query: is the difference real, and where?

    For each measure: the difference with its interval, a p-value corrected for multiple
    comparisons, how many queries won and lost, and a verdict: better, worse, equivalent (--margin),
    identical, or cannot tell, with the number of queries it would take.
    """
    with options.importing():
        from karat import formats
        from karat.cli.release.trend import commit as commit_of
        from karat.reports.offline import comparison
        from karat.workflows.offline.compare import compare as compared

    if verify is not None:
        files = [path for path in (qrels, baseline, *candidates) if path is not None]
        _refuse_others(click.get_current_context(), len(files))
        return _verified(verify, files, output, settings, input_format, qrels_format)
    if qrels is None or baseline is None or not candidates:
        raise click.UsageError("QRELS, BASELINE and at least one CANDIDATE are needed.")
    need_report(report, opened=open_page)
    machine = inputs.MachineGrades(settings)
    if certificate is not None and settings["judged_only"]:
        raise UsageError("--certificate is about unjudged documents, which --judged-only drops")
    if certificate is not None and settings["fully_judged"]:
        raise UsageError(
            "--certificate is about unjudged documents, and --fully-judged leaves none",
            fix="leave out one of the two",
        )
    if judge_file is not None and not settings["judge_next"]:
        raise UsageError("--judge-file needs pairs to write", fix="--judge-next 20, for example")
    if judge_file == "-" and output == "json":
        raise UsageError("--judge-file - would mix with the JSON", fix="--judge-file next.jsonl")
    judgments, runs, uses = inputs.read(
        qrels,
        lambda watch: [
            formats.read_run(path, input_format, watch=watch) for path in (baseline, *candidates)
        ],
        settings,
        qrels_format=qrels_format,
        part=part,
    )
    settings["measures"] = measures or None
    keys = ("measures", "by", "scale") if certificate is not None else None
    options.fill_defaults(settings, qrels, judgments, keys)
    settings["documents"] = options.documents_in(qrels, settings)
    code = commit_of(None, os.environ)
    found = compared(judgments, runs[0], runs[1:], full=full, **settings, commit=code)
    found.notes[:0] = uses(commit=code)
    found = _with_stages(found, [run.name for run in runs], traces)
    found = inputs.with_machine_grades(found, found.differences, judgments, runs, machine)
    if judge_file is not None:
        formats.write_pairs(found.to_judge(), judge_file)
    options.emit(comparison, found, output, full=full, all_notes=all_notes)
    if output in {"csv", "latex"}:
        options.notes_aside(found.notes)
    if plot is not None:
        from karat.workflows.offline.report import write_plot

        write_plot(plot, found)
    if report is not None:
        write_page(report, found, runs, judgments, qrels, settings, opened=open_page)
    if certificate is None:
        return 0
    from karat.workflows.release.certify import certify

    shared = ("queries", "documents", "rel", "complete", "depth", "collapse", "scale")
    rules = {name: settings[name] for name in shared}
    try:
        made = certify(judgments, runs[0], runs[1], found.differences[0].measure, **rules)
    except UsageError as error:
        print(f"karat: no certificate: {error}", file=sys.stderr)
        return CANNOT_TELL
    formats.write_certificate(made, certificate)
    print(f"karat: {certificate} certifies the sign of {made.measure}", file=sys.stderr)
    return 0


def _with_stages(found: Any, runs: Sequence[str], traces: Sequence[str]) -> Any:
    from karat.errors import nearest
    from karat.formats.own.traces import read_trace
    from karat.workflows.offline.costs import with_stages

    frames = {}
    for text in traces:
        name = next((run for run in runs if text.startswith(f"{run}=")), text.partition("=")[0])
        path = text[len(name) + 1 :]
        if name not in runs or not path:
            raise UsageError(
                f"--trace {text!r} is not RUN=FILE",
                nearest=nearest(name, runs, 1),
                fix=f"{runs[0]}=trace.jsonl",
            )
        frames[name] = read_trace(path).frame
    if not frames:
        return found
    timed = with_stages(found, frames)
    if not any(costs.stages for costs in timed.costs):
        timed.notes.append("no latency by stage: it needs traces with times, of both runs")
    return timed


def _refuse_others(context: click.Context, files: int) -> None:
    """Refuse options and files that --verify would ignore."""
    known = {"verify", "qrels", "baseline", "candidates", "queries", "documents", "collapse"}
    known |= {"output", "input_format", "qrels_format"}
    typed = options.options_except(context, known)
    if typed or files not in {0, 3}:
        what = f"not {typed[0]}" if typed else "three files or none"
        raise UsageError(
            f"--verify takes measure and rules from the certificate, and {what}",
            fix="karat compare --verify FILE QRELS BASELINE CANDIDATE",
        )


def _verified(
    path: str,
    files: Sequence[str],
    output: str,
    settings: Mapping[str, Any],
    input_format: str | None,
    qrels_format: str | None,
) -> int:
    """Verify a certificate and print the result; 0 if it holds, 1 if not."""
    from karat import formats
    from karat.reports.offline import verification
    from karat.workflows.release.certify import verify_certificate

    about = {name: settings[name] for name in ("queries", "documents", "collapse")}
    given: list[Any] = []
    if files:
        given = [formats.read_qrels(files[0], qrels_format)]
        given += [formats.read_run(file, input_format) for file in files[1:]]
        if not about["queries"] and formats.holds_queries(files[0]):
            about["queries"] = files[0]
        about["documents"] = about["documents"] or options.folder(files[0])
    found = verify_certificate(path, *given, **about)
    options.emit(verification, found, "table" if output != "json" else output)
    return 0 if found.holds else 1
