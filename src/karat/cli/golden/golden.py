"""karat golden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from karat.cli import options
from karat.cli.golden import _editions, _exchange, _queries, _queue, _split
from karat.cli.workspace.workspace import clock, folder, opened, tell

if TYPE_CHECKING:
    from rich.console import Console

    from karat.workflows.golden.status import Status


@options.group("karat golden status", "karat golden choose searches.csv")
def golden() -> None:
    """Build and maintain a golden set: queries, judgments, agreement, editions.

    \b
    karat init                    create a workspace
    karat golden choose LOG       draw queries from a log, with known weights
    karat search --python M:F …   run the queries against your search
    karat golden pool RUN…        queue the documents to judge
    karat judge --terminal        judge them
    karat golden agreement        how far raters agree, with intervals
    karat golden freeze NAME      create an immutable edition
    karat golden export FILE      export, to evaluate or for another tool
    """  # noqa: D301 - click wants a real backspace before what it must not wrap


@options.command("karat golden status", of=golden)
@folder
@options.output("table", "json")
def status(start: Path, output: str) -> None:
    """Show the state of the golden set, and what to do next."""
    with opened(start) as found:
        from karat.workflows.golden.status import status as of

        tell(of(found, now=clock()), output, _show)


def _show(state: Status, out: Console) -> None:
    from karat.reports.golden import golden as reports
    from karat.reports.phrases.numbers import counted

    out.print(f"{state.name} in {state.store}", soft_wrap=True, highlight=False)
    out.print(
        f"{counted(state.made_of.queries, 'query')}, {state.judged:,} with a grade; "
        f"{counted(state.grades, 'pair')} graded, "
        f"{counted(state.waiting, 'judgment')} waiting",
        highlight=False,
    )
    if state.agreement is not None:
        out.print(state.agreement.sentence, highlight=False)
    if state.contradictions:
        grades = counted(state.contradictions, "imported grade")
        out.print(f"{grades} contradicted by raters: karat golden disagreements", highlight=False)
    if state.edition is not None:
        age = f"{state.edition_days} days old" if state.edition_days else "created today"
        out.print(f"edition {state.edition}, {age}", highlight=False)
    if state.runs:
        out.print(f"runs {', '.join(state.runs)}", highlight=False)
    if state.made_of.queries:
        out.print()
        reports.show_made_of(state.made_of, out)
    reports.show_todo(state.todo, out)


for command in (
    _queries.choose,
    _queries.plan,
    _split.split,
    _queue.pool,
    _queue.documents,
    _queue.queue,
    _queue.agreement,
    _queue.disagreements,
    _editions.freeze,
    _editions.editions,
    _editions.diff,
    _editions.coverage,
    _editions.stale,
    _exchange.import_from,
    _exchange.correct,
    _exchange.export_golden_set,
):
    golden.add_command(command)
