"""karat demo."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from karat.cli import options


@click.command()
@click.argument(
    "directory", metavar="[DIR]", type=click.Path(path_type=Path), default=Path("karat-demo")
)
def demo(directory: Path) -> None:
    """Search Python's own documentation with two systems, and see which is better.

    Leaves the documents, queries, judgments and runs in DIR (karat-demo), to go on with.
    """
    from karat.demo.build import build
    from karat.reports.terminal import show_results
    from karat.workflows.evaluate import evaluate

    made = build(directory, lambda step: print(f"· {step}", file=sys.stderr))
    results = evaluate(made.directory, list(made.runs))
    screen = options.out()
    screen.print(
        f"\nTwo systems searched the {made.document_count:,} modules, classes and functions of "
        f"Python's standard library for {made.query_count} queries. What they found was graded "
        "from 0 (useless) to 3 (just what was wanted).\n"
        "bm25 matches words (SQLite FTS5); semantic matches meaning (TF-IDF, truncated SVD).\n"
    )
    show_results(results, screen)
    if made.absent_count:
        screen.print(
            f"{made.absent_count} of {made.judged_count} judged documents are not in this Python; "
            "their grades are kept and count as not found."
        )
    where = shlex.quote(str(made.directory))
    # From a clone, karat lies in the environment that dev.py made and not on the path.
    karat = "karat" if shutil.which("karat") else shlex.quote(sys.argv[0])
    screen.print("\nTry next:", style="bold")
    for command in (
        f"{karat} evaluate {where} {where}/runs/*.trec --by class",
        f"{karat} explain {where} {where}/runs/semantic.trec q01",
        f"{karat} lint {where} {where}/runs/*.trec",
    ):
        screen.print(f"  {command}", soft_wrap=True)
