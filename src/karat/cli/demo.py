"""karat demo."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karat.cli import options
from karat.cli.workspace import clock, need_store
from karat.errors import MissingExtra

if TYPE_CHECKING:
    from rich.console import Console

    from karat.demo.build import Demo
    from karat.tables.comparison import Comparison

NEXT = 3
"""Pairs to judge next that are shown."""


@click.command()
@click.argument(
    "directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("karat-demo")
)
@click.option(
    "--embed",
    metavar="MODULE:FUNCTION",
    help="Your own embedding function in the semantic system's place: it takes a list of texts "
    "and returns one vector for each. MODULE may lie in the current folder.",
)
def demo(directory: Path, embed: str | None = None) -> None:
    """Search Python's own documentation with three systems, and see which is better.

    Leaves the documents, queries, judgments and runs in DIR (karat-demo), to go on with.
    """
    from karat.demo import embedding
    from karat.demo.build import build
    from karat.demo.words import MEASURES, conclusions
    from karat.formats import read_queries, read_run
    from karat.reports.comparison import show_judge_next
    from karat.reports.gate import why, word
    from karat.reports.terminal import show_breakdown, show_paragraphs, show_results
    from karat.workflows.compare import compare
    from karat.workflows.evaluate import evaluate
    from karat.workflows.gate import gate
    from karat.workflows.report import write_report

    own = embedding.load(embed) if embed is not None else None
    made = build(directory, lambda step: print(f"· {step}", file=sys.stderr), embed=own)
    queries = read_queries(made.queries)
    results = evaluate(made.directory, list(made.runs), queries=queries, by="class")
    screen = options.out()
    system = made.runs[1].stem
    meaning = f"by {own.called}" if own else "meaning (TF-IDF, truncated SVD)"
    screen.print(
        f"\nThree systems searched the {made.document_count:,} modules, classes and functions of "
        f"Python's standard library for {made.query_count} queries. What they found was graded "
        "from 0 (useless) to 3 (just what was wanted).\n"
        f"bm25 matches words (SQLite FTS5); {system} matches {meaning}; hybrid is both, fused by "
        "reciprocal rank.\n"
    )
    show_results(replace(results, slices=[], no_answer=[], notes=[]), screen)
    show_breakdown(results, "class", MEASURES[0], screen)
    words, *others = made.runs
    found = compare(made.directory, words, others, MEASURES, queries=queries, by="class")
    show_paragraphs("What this shows", conclusions(results, found, made), screen)
    deep = compare(made.directory, words, others[-1:], MEASURES[-1], judge_next=NEXT)
    if deep.judge_next:
        screen.print(
            f"\nJudge next, as it says most about {MEASURES[-1]} of {others[-1].stem}:",
            style="bold",
        )
        show_judge_next(deep, screen)
    _keep(made, deep, screen)
    held = gate(made.policy, made.directory, words, others[-1])
    screen.print(f"\nMay {held.candidate} take {held.baseline}'s place? (gate.toml)", style="bold")
    screen.print(f"{word(held.verdict)}: {why(held)}")
    try:
        write_report(
            made.report,
            held,
            runs=[read_run(run) for run in (words, others[-1])],
            qrels=made.directory,
            queries=queries,
            documents=made.directory,
            comparison=compare(made.directory, words, others[-1], by="class"),
        )
        screen.print(f"All of it, query by query, as a page: {made.report}", soft_wrap=True)
    except MissingExtra as lacking:
        screen.print(f"No page of it: {lacking}", soft_wrap=True)
    where = shlex.quote(str(made.directory))
    both = f"{where} {where}/runs/bm25.trec {where}/runs/hybrid.trec"
    # From a clone, karat lies in the environment that dev.py made and not on the path.
    karat = "karat" if shutil.which("karat") else shlex.quote(sys.argv[0])
    screen.print("\nTry next:", style="bold")
    for command in (
        f"{karat} evaluate {where} {where}/runs/*.trec --by class",
        f"{karat} compare {both} --by class",
        f"{karat} gate --policy {where}/gate.toml {both}",
        f"{karat} golden status -w {where}",
        f"{karat} explain {where} {where}/runs/{system}.trec q01",
        f"{karat} lint {where} {where}/runs/*.trec",
    ):
        screen.print(f"  {command}", soft_wrap=True)


def _keep(made: Demo, found: Comparison, screen: Console) -> None:
    """Make a workspace of the demo, where what keeps one is installed."""
    try:
        need_store()
    except MissingExtra as lacking:
        screen.print(f"\nNo workspace of it: {lacking}", soft_wrap=True)
        return
    from karat.demo.workspace import keep
    from karat.reports.terminal import show_notes

    kept = keep(made, found.to_judge(), now=clock())
    screen.print("\nHow far its graders agree, and what is kept", style="bold")
    screen.print(kept.agreement.sentence, highlight=False)
    screen.print(
        f"{made.directory} is a workspace: edition {kept.edition} with {kept.grades:,} grades, "
        f"{len(made.runs)} runs, and {kept.waiting} judgments waiting.",
        soft_wrap=True,
        highlight=False,
    )
    show_notes(kept.notes, screen)
