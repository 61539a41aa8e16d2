"""Status of a golden set: where things stand, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.golden.composition import Composition, composition
from karat.golden.freshness import age_days, stale
from karat.store import documents, editions, runs
from karat.tables.agreement import Agreement
from karat.workflows.agreeing import RATERS, Moment, agreement_at, disagreements_at, moment
from karat.workflows.editions import changes, standing, standing_in
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
        uncounted: Judged queries that have no part in means: others have a weight, and they none.
        waiting: Judgments that the queue waits for.
        runs: Names of the runs kept.
        agreement: How far raters agree; None where nothing was judged by two.
        disagreements: Pairs that nobody has settled, nor was asked to.
        contradictions: Imported grades that raters contradict, likewise; they have no effect.
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
    uncounted: int
    waiting: int
    runs: list[str]
    agreement: Agreement | None
    disagreements: int
    contradictions: int
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
        held = moment(connection, golden.id)
        shown = documents.frame(connection, golden.id).select("doc_id", "sha256")
        kept = list(dict.fromkeys(row.name for row in runs.runs(connection, golden.id)))
        newest = next(reversed(editions.editions(connection, golden.id)), None)
        before = standing_in(connection, opened, newest.name) if newest else None
    stands = standing(held)
    agreed = agreement_at(held, opened.workspace)
    unsettled = _unsettled(held)
    of_raters = unsettled.filter(pl.col("between") == RATERS).height
    found = Status(
        name=golden.name,
        store=opened.store.url,
        made_of=composition(held.queries),
        judged=stands.grades["query_id"].n_unique(),
        grades=stands.grades.height,
        uncounted=_uncounted(held.queries, stands.grades),
        waiting=int(held.pairs["open"].sum()),
        runs=kept,
        agreement=agreed if agreed.pairs else None,
        disagreements=of_raters,
        contradictions=unsettled.height - of_raters,
        adjudications=int(held.pairs["adjudications_open"].sum()),
        stale=stale(held.judgments, shown).judgments.height,
        edition=None if newest is None else newest.name,
        edition_days=None if newest is None else age_days(min(newest.created_us, now), now),
        todo=[],
    )
    changed = before is None or not changes(before, stands).same
    found.todo.extend(_todo(found, held, changed=changed))
    return found


def _uncounted(asked: pl.DataFrame, grades: pl.DataFrame) -> int:
    """Queries with a grade that a mean leaves out; a weight of 0 that was given is meant so."""
    if "weight" not in asked.columns or not asked["weight"].count():
        return 0
    lacking = asked.filter(pl.col("weight").is_null())
    return lacking.join(grades, on="query_id", how="semi").height


def _unsettled(held: Moment) -> pl.DataFrame:
    """Disagreements that no adjudicator was asked to settle, nor could not."""
    said = held.judgments.frame
    asked_for = pl.concat(
        [
            said.filter(pl.col("kind") == "adjudication").select("query_id", "doc_id"),
            held.pairs.filter(pl.col("adjudications_open") > 0).select("query_id", "doc_id"),
        ]
    )
    return disagreements_at(held).join(asked_for, on=["query_id", "doc_id"], how="anti")


def _todo(found: Status, held: Moment, *, changed: bool) -> list[tuple[str, str]]:
    out = []
    if not held.queries.height:
        out.append(("choose queries from a log, or import them", "karat golden choose LOG"))
        return out
    if not held.pairs.height and not found.grades:
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
        what = "1 judgment of a document that changed"
        if found.stale > 1:
            what = f"{found.stale:,} judgments of documents that changed"
        out.append((what, "karat golden stale"))
    if found.uncounted:
        are = "query has" if found.uncounted == 1 else "queries have"
        what = (
            f"{found.uncounted:,} judged {are} no weight, and no part in means: import a file of "
            "queries that gives weights, 0 to leave it so"
        )
        out.append((what, "karat golden import QUERIES"))
    if found.grades and changed:
        out.append(("freeze what is judged", "karat golden freeze NAME"))
    return out
