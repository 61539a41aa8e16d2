"""Status of a golden set, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl
import sqlalchemy as sa

from karat.golden.composition import Composition, composition
from karat.golden.freshness import age_days, stale
from karat.reports.phrases.numbers import counted
from karat.store.sql import documents, editions, runs, states
from karat.tables.golden.agreement import Agreement
from karat.workflows.golden.agreement import RATERS, Moment, agreement_at, disagreements_at, moment
from karat.workflows.golden.editions import changes, standing, standing_in
from karat.workflows.workspace.artifacts import Memory
from karat.workflows.workspace.workspace import Workspace


@dataclass(frozen=True)
class Status:
    name: str  # name of the golden set
    store: str  # URL of its store
    made_of: Composition  # composition of its queries
    judged: int  # number of queries with a graded document
    grades: int  # number of pairs with a grade
    # Number of judged queries left out of means, because others have a weight and they do not
    uncounted: int
    waiting: int  # number of judgments that the queue needs
    runs: list[str]  # names of the stored runs
    agreement: Agreement | None  # how far raters agree; None if no pair was judged by two
    disagreements: int  # pairs neither settled nor in the adjudication queue
    contradictions: int  # imported grades that raters contradict, likewise; they have no effect
    adjudications: int  # pairs in the adjudication queue
    stale: int  # judgments of documents that changed since
    edition: str | None  # name of the newest edition, or None
    edition_days: int | None  # its age in days, or None
    todo: list[tuple[str, str]]  # next steps, most urgent first: description and command


_STATUSES = Memory(64)


def status(opened: Workspace, *, now: int) -> Status:
    """The status of a workspace's golden set, computed once for each of its states."""
    policy = opened.workspace.weights, opened.workspace.at_least
    with opened.store.read() as connection:  # state and data from one transaction
        state = opened.store.url, opened.golden.id, states.state_of(connection, opened.golden.id)
        names = list(dict.fromkeys(r.name for r in runs.runs(connection, opened.golden.id)))
        computed, edition_us = _STATUSES.get(
            (*state, policy), lambda: _computed(connection, opened)
        )
    days = None if edition_us is None else age_days(min(edition_us, now), now)
    return replace(computed, runs=names, edition_days=days, todo=list(computed.todo))


def _computed(connection: sa.Connection, opened: Workspace) -> tuple[Status, int | None]:
    """The status without what depends on time and runs; and when the newest edition was frozen."""
    golden = opened.golden
    snapshot = moment(connection, golden.id)
    hashes = documents.frame(connection, golden.id).select("doc_id", "sha256")
    newest = next(reversed(editions.editions(connection, golden.id)), None)
    before = standing_in(connection, opened, newest.name) if newest else None
    content = standing(snapshot)
    agreement = agreement_at(snapshot, opened.workspace)
    unsettled = _unsettled(snapshot)
    of_raters = unsettled.filter(pl.col("between") == RATERS).height
    status_now = Status(
        name=golden.name,
        store=opened.store.url,
        made_of=composition(snapshot.queries),
        judged=content.grades["query_id"].n_unique(),
        grades=content.grades.height,
        uncounted=_uncounted(snapshot.queries, content.grades),
        waiting=int(snapshot.pairs["open"].sum()),
        runs=[],
        agreement=agreement if agreement.pairs else None,
        disagreements=of_raters,
        contradictions=unsettled.height - of_raters,
        adjudications=int(snapshot.pairs["adjudications_open"].sum()),
        stale=stale(snapshot.judgments, hashes).judgments.height,
        edition=None if newest is None else newest.name,
        edition_days=None,
        todo=[],
    )
    changed = before is None or not changes(before, content).same
    status_now.todo.extend(_todo(status_now, snapshot, changed=changed))
    return status_now, None if newest is None else newest.created_us


def _uncounted(asked: pl.DataFrame, grades: pl.DataFrame) -> int:
    """Number of graded queries left out of means for lack of a weight (not for a weight of 0)."""
    if "weight" not in asked.columns or not asked["weight"].count():
        return 0
    lacking = asked.filter(pl.col("weight").is_null())
    return lacking.join(grades, on="query_id", how="semi").height


def _unsettled(snapshot: Moment) -> pl.DataFrame:
    """Disagreements not adjudicated and not in the adjudication queue."""
    current = snapshot.judgments.frame
    asked_for = pl.concat(
        [
            current.filter(pl.col("kind") == "adjudication").select("query_id", "doc_id"),
            snapshot.pairs.filter(pl.col("adjudications_open") > 0).select("query_id", "doc_id"),
        ]
    )
    return disagreements_at(snapshot).join(asked_for, on=["query_id", "doc_id"], how="anti")


def _todo(computed: Status, snapshot: Moment, *, changed: bool) -> list[tuple[str, str]]:
    steps = []
    if not snapshot.queries.height:
        steps.append(("choose queries from a log, or import them", "karat golden choose LOG"))
        return steps
    if not snapshot.pairs.height and not computed.grades:
        steps.append(("pool what your systems return", "karat golden pool RUN…"))
    if computed.waiting:
        steps.append((f"{counted(computed.waiting, 'judgment')} to give", "karat judge --terminal"))
    if computed.disagreements:
        count = counted(computed.disagreements, "disagreement")
        steps.append((f"{count} to send to an adjudicator", "karat golden disagreements --queue"))
    if computed.adjudications:
        count = counted(computed.adjudications, "disagreement")
        steps.append((f"{count} to settle", "karat judge --terminal --adjudicate"))
    if computed.stale:
        step = "1 judgment of a document that changed"
        if computed.stale > 1:
            step = f"{computed.stale:,} judgments of documents that changed"
        steps.append((step, "karat golden stale"))
    if computed.uncounted:
        are = "query has" if computed.uncounted == 1 else "queries have"
        step = (
            f"{computed.uncounted:,} judged {are} no weight, and so no part in means: import a "
            "file of queries with weights, 0 to leave it so"
        )
        steps.append((step, "karat golden import QUERIES"))
    if computed.grades and changed:
        steps.append(("freeze what is judged", "karat golden freeze NAME"))
    return steps
