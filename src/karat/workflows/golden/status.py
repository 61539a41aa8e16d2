"""Status of a golden set: where things stand, and what to do next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

import polars as pl
import sqlalchemy as sa

from karat.golden.composition import Composition, composition
from karat.golden.freshness import age_days, stale
from karat.store.sql import documents, editions, runs, states
from karat.store.sql.editions import EditionRow
from karat.tables.golden.agreement import Agreement
from karat.workflows.golden.agreement import RATERS, Moment, agreement_at, disagreements_at, moment
from karat.workflows.golden.editions import Standing, changes, standing, standing_in
from karat.workflows.workspace.workspace import Workspace


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


@dataclass(frozen=True)
class _Known:
    """What was computed of one state of a golden set.

    Attributes:
        state: Of the golden set, and what counts of the workspace.
        status: Where it stands, but for what time and runs change.
        edition_us: When its newest edition was made, or None.
    """

    state: tuple[object, ...]
    status: Status
    edition_us: int | None


class Statuses:
    """Where golden sets stand, computed once for each state of their data.

    Args:
        most: So many golden sets, those that were asked for last.
    """

    def __init__(self, most: int = 64) -> None:
        self._most, self._lock = most, threading.Lock()
        self._known: OrderedDict[tuple[str, int], _Known] = OrderedDict()
        self._turns: dict[tuple[str, int], threading.Lock] = {}

    def get(self, opened: Workspace, *, now: int) -> Status:
        """As ``status``; of several that ask for the same, one computes it."""
        key = opened.store.url, opened.golden.id
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            known, names = self._now(opened, self._known.get(key))
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._turns.pop(self._known.popitem(last=False)[0], None)
        return _told(known.status, known.edition_us, names, now)

    def _now(self, opened: Workspace, known: _Known | None) -> tuple[_Known, list[str]]:
        policy = opened.workspace.weights, opened.workspace.at_least
        with opened.store.read() as connection:  # what is read is of the state that is read
            state = (states.state_of(connection, opened.golden.id), policy)
            names = _names_of_runs(connection, opened)
            if known is not None and known.state == state:
                return known, names
            read = _read(connection, opened)
        return _Known(state, *_computed(opened, read)), names


STATUSES = Statuses()
"""Of this process."""


def status(opened: Workspace, *, now: int) -> Status:
    """Where the golden set of a workspace stands.

    Args:
        opened: The workspace.
        now: Microseconds UTC.
    """
    with opened.store.read() as connection:
        read, names = _read(connection, opened), _names_of_runs(connection, opened)
    return _told(*_computed(opened, read), names, now)


def _told(found: Status, edition_us: int | None, runs: list[str], now: int) -> Status:
    days = None if edition_us is None else age_days(min(edition_us, now), now)
    return replace(found, runs=runs, edition_days=days, todo=list(found.todo))


def _names_of_runs(connection: sa.Connection, opened: Workspace) -> list[str]:
    return list(dict.fromkeys(row.name for row in runs.runs(connection, opened.golden.id)))


@dataclass(frozen=True)
class _Read:
    """What a status is computed from."""

    held: Moment
    shown: pl.DataFrame
    newest: EditionRow | None
    before: Standing | None


def _read(connection: sa.Connection, opened: Workspace) -> _Read:
    golden = opened.golden
    held = moment(connection, golden.id)
    shown = documents.frame(connection, golden.id).select("doc_id", "sha256")
    newest = next(reversed(editions.editions(connection, golden.id)), None)
    before = standing_in(connection, opened, newest.name) if newest else None
    return _Read(held, shown, newest, before)


def _computed(opened: Workspace, read: _Read) -> tuple[Status, int | None]:
    """Where a golden set stands, but for what time and runs change; and when its edition was."""
    golden, held, newest = opened.golden, read.held, read.newest
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
        runs=[],
        agreement=agreed if agreed.pairs else None,
        disagreements=of_raters,
        contradictions=unsettled.height - of_raters,
        adjudications=int(held.pairs["adjudications_open"].sum()),
        stale=stale(held.judgments, read.shown).judgments.height,
        edition=None if newest is None else newest.name,
        edition_days=None,
        todo=[],
    )
    changed = read.before is None or not changes(read.before, stands).same
    found.todo.extend(_todo(found, held, changed=changed))
    return found, None if newest is None else newest.created_us


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
