"""Status of a golden set: where things stand, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.golden.composition import Composition, composition
from karat.golden.freshness import age_days
from karat.store import judgments, pairs, queries, runs
from karat.tables.agreement import Agreement
from karat.workflows.agreeing import agreement_in, disagreements_in
from karat.workflows.editions import (
    NOW,
    compare_editions,
    content_of,
    list_editions,
    stale_judgments,
)
from karat.workflows.workspace import Opened


@dataclass(frozen=True)
class Status:
    """Where a golden set stands.

    Attributes:
        name: Of the golden set.
        store: Where it is kept.
        made_of: What its queries are made of.
        judged: Queries with a graded document.
        grades: Pairs with a grade.
        waiting: Judgments that the queue waits for.
        runs: Names of the runs kept.
        agreement: How far raters agree; None where nothing was judged by two.
        disagreements: Pairs that nobody has settled, nor was asked to.
        adjudications: Pairs that wait for an adjudicator.
        stale: Judgments of documents whose text changed since.
        edition: Name of the newest edition, or None.
        edition_days: Its age in days, or None.
        todo: What to do next: what it is, and the command; the first is the most urgent.
    """

    name: str
    store: str
    made_of: Composition
    judged: int
    grades: int
    waiting: int
    runs: list[str]
    agreement: Agreement | None
    disagreements: int
    adjudications: int
    stale: int
    edition: str | None
    edition_days: int | None
    todo: list[tuple[str, str]]


def status(opened: Opened, *, now: int) -> Status:
    """Where the golden set of a workspace stands.

    Args:
        opened: The workspace.
        now: Microseconds UTC.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        asked = queries.frame(connection, golden.id)
        queued = pairs.frame(connection, golden.id)
        said = judgments.current(connection, golden.id)
        kept = list(dict.fromkeys(row.name for row in runs.runs(connection, golden.id)))
    content = content_of(opened)
    agreed = agreement_in(opened)
    frozen = list_editions(opened)
    newest = frozen[-1] if frozen else None
    # Where an adjudicator could not judge either, nobody is asked again.
    asked_for = pl.concat(
        [
            said.frame.filter(pl.col("kind") == "adjudication").select("query_id", "doc_id"),
            queued.filter(pl.col("adjudications_open") > 0).select("query_id", "doc_id"),
        ]
    )
    unsettled = disagreements_in(opened, now=now).frame
    unsettled = unsettled.join(asked_for, on=["query_id", "doc_id"], how="anti")
    waiting = int(queued["open"].sum()) if queued.height else 0
    old = stale_judgments(opened).judgments.height
    judged = content.grades["query_id"].n_unique()
    changed = newest is None or not compare_editions(opened, newest.name, NOW).same
    found = Status(
        name=golden.name,
        store=opened.store.url,
        made_of=composition(asked),
        judged=judged,
        grades=content.grades.height,
        waiting=waiting,
        runs=kept,
        agreement=agreed if agreed.pairs else None,
        disagreements=unsettled.height,
        adjudications=int(queued["adjudications_open"].sum()),
        stale=old,
        edition=None if newest is None else newest.name,
        edition_days=None if newest is None else age_days(min(newest.created_us, now), now),
        todo=[],
    )
    found.todo.extend(_todo(found, asked, queued, changed=changed))
    return found


def _todo(
    found: Status, asked: pl.DataFrame, queued: pl.DataFrame, *, changed: bool
) -> list[tuple[str, str]]:
    out = []
    if not asked.height:
        out.append(("choose queries from a log, or import them", "karat golden choose LOG"))
        return out
    if not queued.height and not found.grades:
        out.append(("pool what your systems return", "karat golden pool RUN…"))
    if found.waiting:
        count = f"{found.waiting:,} judgment{'' if found.waiting == 1 else 's'}"
        out.append((f"{count} to give", "karat judge --terminal"))
    if found.disagreements:
        count = f"{found.disagreements:,} disagreement{'' if found.disagreements == 1 else 's'}"
        out.append((f"{count} to put before an adjudicator", "karat golden disagreements --queue"))
    if found.adjudications:
        count = f"{found.adjudications:,} disagreement{'' if found.adjudications == 1 else 's'}"
        out.append((f"{count} to settle", "karat judge --terminal --adjudicate"))
    if found.stale:
        out.append((f"{found.stale:,} judgments of documents that changed", "karat golden stale"))
    if found.grades and changed:
        out.append(("freeze what is judged", "karat golden freeze NAME"))
    return out
