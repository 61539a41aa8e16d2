"""karat demo."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.workspace.serve import address, go, need_web, who
from karat.cli.workspace.workspace import clock, need_store
from karat.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from karat.demo.build import Demo
    from karat.tables.comparison import Comparison

NEXT, QUEUED = 3, 20
"""Judging priorities: how many are shown, and how many go into the queue."""


@options.command("karat demo", "karat demo demo-folder --serve")
@click.argument(
    "directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("karat-demo")
)
@options.option(
    "--embed MODULE:FUNCTION",
    "Use your own embedding function for the semantic system: it takes a list of texts and "
    "returns one vector for each. MODULE may be in the current folder.",
)
@options.option(
    "--serve/--no-serve served",
    "Serve the demo as web pages afterwards.  [default: only in a terminal]",
)
@address
def demo(
    directory: Path,
    embed: str | None = None,
    served: bool | None = None,
    port: int = 8000,
    no_browser: bool = False,
) -> int:
    """Search Python's own documentation with three systems, and see which is best.

    Writes the documents, queries, judgments and runs to DIR (karat-demo), and serves them as web
    pages, on this machine only.
    """
    from karat.demo import embedding
    from karat.demo.build import build
    from karat.demo.words import MEASURES, conclusions
    from karat.formats import read_queries, read_run
    from karat.reports.offline.comparison import judge_next
    from karat.reports.offline.evaluation import breakdown, main_table
    from karat.reports.phrases.gate import why, word
    from karat.reports.writers.tables import draw
    from karat.reports.writers.terminal import show_paragraphs
    from karat.workflows.offline.compare import compare
    from karat.workflows.offline.evaluate import evaluate
    from karat.workflows.offline.report import write_report
    from karat.workflows.release.gate import gate

    own = embedding.load(embed) if embed is not None else None
    made = build(directory, lambda step: print(f"· {step}", file=sys.stderr), embed=own)
    queries = read_queries(made.queries)
    results = evaluate(made.directory, list(made.runs), queries=queries, by="class")
    screen = options.out()
    system = made.runs[1].stem
    meaning = f"by {own.called}" if own else "meaning (TF-IDF, truncated SVD)"
    screen.print(
        f"\nThree systems searched the {made.document_count:,} modules, classes and functions of "
        f"Python's standard library for {made.query_count} queries. Their results were graded "
        "from 0 (useless) to 3 (exactly right).\n"
        f"bm25 matches words (SQLite FTS5); {system} matches {meaning}; hybrid fuses both by "
        "reciprocal rank.\n"
    )
    draw(main_table(results), screen)
    draw(breakdown(results, "class", MEASURES[0]), screen)
    words, *others = made.runs
    found = compare(made.directory, words, others, MEASURES, queries=queries, by="class")
    show_paragraphs("What this shows", conclusions(results, found), screen)
    deep = compare(made.directory, words, others[-1:], MEASURES[-1], judge_next=QUEUED)
    if deep.judge_next:
        title = f"Judging priorities for {MEASURES[-1]} of {others[-1].stem}"
        screen.print()
        draw(replace(judge_next(deep, deep.judge_next[:NEXT]), title=title), screen)
    has_workspace = _keep(made, found, deep, screen, port)
    result = gate(made.policy, made.directory, words, others[-1])
    screen.print(f"\nCan {result.candidate} replace {result.baseline}? (gate.toml)", style="bold")
    screen.print(f"{word(result.verdict)}: {why(result)}")
    try:
        write_report(
            made.report,
            result,
            runs=[read_run(run) for run in (words, others[-1])],
            qrels=made.directory,
            queries=queries,
            documents=made.directory,
            comparison=compare(made.directory, words, others[-1], by="class"),
        )
        screen.print(f"The full report, query by query: {made.report}", soft_wrap=True)
    except MissingExtra as lacking:
        screen.print(f"No report: {_in_web(lacking)}", soft_wrap=True)
    screen.print("\nTry next:", style="bold")
    for command in _next(shlex.quote(str(made.directory)), system):
        screen.print(f"  {command}", soft_wrap=True)
    wanted = sys.stdin.isatty() and sys.stdout.isatty() if served is None else served
    if not wanted or not has_workspace:
        return 0
    try:
        need_web()
    except MissingExtra as lacking:
        screen.print(f"\nNot served: {lacking}", soft_wrap=True)
        return 0
    return _serve(made.directory, port, browser=not no_browser)


def _next(where: str, system: str) -> list[str]:
    """Commands to try; ``system`` is the name of the semantic one."""
    # In a clone, karat is in the environment of dev.py, not on the path.
    karat = "karat" if shutil.which("karat") else shlex.quote(sys.argv[0])
    both, machine = f"{where}/runs/bm25.trec {where}/runs/hybrid.trec", f"{where}/machine"
    return [
        f"{karat} evaluate {where} {where}/runs/*.trec --by class",
        f"{karat} compare {where} {both} --by class",
        f"{karat} gate --policy {where}/gate.toml {where} {both}",
        f"{karat} golden status -w {where}",
        f"{karat} explain {where} {where}/runs/{system}.trec q01",
        f"{karat} lint {where} {where}/runs/*.trec",
        f"{karat} trend {where}/history.jsonl",
        f"{karat} compare {machine}/people.tsv {both} --machine-grades {machine}/grades.csv",
        f"{karat} online evaluate -w {where}",
        f"{karat} online watch -w {where} --by query_class",
        f"{karat} clicks agree -w {where} --by class",
        f"{karat} release why hybrid-2 -w {where}",
        f"{karat} serve -w {where}",
    ]


def _serve(directory: Path, port: int, *, browser: bool) -> int:
    """Serve the demo on this machine; on another port if this one is in use."""
    from karat.formats.own.workspace import STORE
    from karat.web.framework.settings import LOCAL, Settings
    from karat.web.server import Serving, free

    os.environ.pop(STORE, None)  # the demo stays out of a team's store
    print()
    settings = Settings(directory.resolve(), accounts=False, owner=who(), hosts=LOCAL)
    where = Serving(settings, port=port)
    return go(replace(where, port=free(where.host, port)), browser=browser)


def _in_web(lacking: MissingExtra) -> MissingExtra:
    """The same error, naming the extra that has everything the demo uses."""
    return MissingExtra(lacking.packages, "web", lacking.purpose)


def _keep(made: Demo, found: Comparison, deep: Comparison, screen: Console, port: int) -> bool:
    """Create a workspace in the demo's folder; return whether the needed packages are installed."""
    try:
        need_store()
    except MissingExtra as lacking:
        screen.print(f"\nNo workspace: {_in_web(lacking)}", soft_wrap=True)
        return False
    from karat.demo import experiments, releases
    from karat.demo.clicks import keep_clicks
    from karat.demo.judge import keep_judge
    from karat.demo.judge import paragraphs as of_judge
    from karat.demo.steps import RUN, keep_steps
    from karat.demo.traffic import keep_traffic, paragraphs
    from karat.demo.workspace import keep, keep_comparison
    from karat.reports.writers.terminal import show_notes, show_paragraphs

    kept = keep(made, deep.to_judge(), now=clock())
    screen.print("\nThe workspace, and how far its graders agree", style="bold")
    screen.print(kept.agreement.sentence, highlight=False)
    screen.print(
        f"{made.directory} is a workspace: edition {kept.edition} with {kept.grades:,} grades, "
        f"{len(made.runs)} runs, and {kept.waiting} judgments waiting.",
        soft_wrap=True,
        highlight=False,
    )
    show_notes(kept.notes, screen)
    history = keep_steps(made, clock)
    screen.print(
        f"{history} has the history of {RUN}, step by step, for karat trend.",
        soft_wrap=True,
        highlight=False,
    )

    def show(title: str, sentences: Iterable[str]) -> None:
        screen.print()
        show_paragraphs(title, sentences, screen)

    print("· Simulating five weeks of users", file=sys.stderr)
    log = keep_traffic(made, now=clock())
    show("Simulated users", paragraphs(log, now=clock()))
    experiments.keep_experiments(made, log)
    show("Their experiments", experiments.paragraphs(made, log))
    show("Grades from their clicks", keep_clicks(made, log, now=clock()))
    print("· A fake machine judge grades the golden set", file=sys.stderr)
    judged = keep_judge(made, now=clock())
    show("A fake machine judge, made for the demonstration", of_judge(judged, found))
    print("· Three releases, day by day", file=sys.stderr)
    releases.keep_releases(made, log)
    show("Releases", releases.paragraphs(made, clock()))
    try:
        need_web()
    except MissingExtra:
        return True
    if (called := keep_comparison(made, clock)) is not None:
        screen.print(f"The comparison {called!r} is stored for the web pages.", highlight=False)
    _diagnose(made, screen, port)
    return True


def _diagnose(made: Demo, screen: Console, port: int) -> None:
    """Say what loses most, and where the page of one query is."""
    from karat.demo.workspace import keep_diagnoses
    from karat.reports.diagnosis.diagnosis import summary
    from karat.reports.writers.terminal import show_paragraphs
    from karat.web.framework.diagnosis_links import diagnosis_address

    print("· Diagnosing the queries that fail", file=sys.stderr)
    found = keep_diagnoses(made, clock)
    if found is None or not found.diagnosis.queries:
        return
    first = found.diagnosis.queries[0]
    worst = f"“{first.text}” loses most: {first.doc_id}, {first.evidence}."
    screen.print()
    show_paragraphs(
        f"Why queries of {found.run.name} fail", [summary(found.diagnosis), worst], screen
    )
    where = diagnosis_address(found.run.id, found.stages, first.query_id, found.baseline)
    site = f"http://127.0.0.1:{port}" if port else ""
    screen.print(f"Stage by stage, once served: {site}{where}", soft_wrap=True, highlight=False)
