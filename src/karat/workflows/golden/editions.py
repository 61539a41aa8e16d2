"""Editions: frozen golden sets, their differences, coverage and staleness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.errors import InputError, PolicyRefused, UsageError
from karat.formats import read_run
from karat.golden import coverage as covering
from karat.golden.aggregation import RULE, grades
from karat.golden.editions import EditionDifference, Freeze, difference, edition, may_freeze
from karat.golden.freshness import Stale, stale
from karat.store.sql import audit, browsing, documents, editions, imports, judgments, queries
from karat.tables import Run
from karat.tables.golden.golden_sets import Edition
from karat.tables.names import check_name
from karat.workflows.golden.agreement import IMPORT, Moment, agreement_at, disagreements_at, moment
from karat.workflows.workspace.known_queries import following_all
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace

NOW = "now"  # name of the current, unfrozen golden set where an edition may be named
LONGEST = 100  # maximum length of an edition's name, in characters


@dataclass(frozen=True)
class Frozen:
    name: str
    sha256: str  # hash of its content
    queries: int
    grades: int
    # Imported grades left out because raters contradict them and no adjudicator has settled them
    contradicted: int
    agreed: Freeze  # whether raters agree enough, and why


@dataclass(frozen=True, slots=True)
class Covered(covering.Coverage):
    """How much of the top of runs is graded; the workspace stores the runs."""

    notes: list[str]  # notes on how the runs were stored


@dataclass(frozen=True)
class Standing:
    """The content of a golden set: of an edition, or the current one."""

    name: str  # of the edition, or `now`
    queries: pl.DataFrame  # the queries with their attributes
    grades: pl.DataFrame  # `query_id`, `doc_id`, `grade`, `votes`, `rule`, `raters`
    about: dict[str, Any]  # scale, rule, guideline, and for an edition its agreement and policy


def standing(snapshot: Moment) -> Standing:
    """The content of a golden set in a snapshot."""
    return snapshot.derive("standing", lambda: _standing(snapshot))


def _standing(snapshot: Moment) -> Standing:
    # An imported grade without a rater is aggregated already: it does not vote with raters.
    judged = snapshot.judgments
    combined = grades(judged, RULE, ("human",))
    if "import" in judged.frame["source"]:
        imported = grades(judged, RULE, ("import",))
        others = imported.join(combined, on=["query_id", "doc_id"], how="anti")
        combined = pl.concat([combined, others])
    golden = snapshot.golden
    about = {"scale": list(golden.scale), "rule": RULE, "guideline": golden.guideline}
    return Standing(NOW, snapshot.queries, combined, about)


def standing_in(connection: sa.Connection, opened: Workspace, name: str) -> Standing:
    """The content of an edition; of the current golden set for ``now``."""
    golden = opened.golden
    if name == NOW:
        return standing(moment(connection, golden.id))
    row, query_rows, grade_rows = editions.edition(connection, golden.id, name)
    if edition(query_rows, grade_rows, row.about)[1] != row.sha256:
        raise InputError(
            f"edition {name} is damaged: its content does not match its SHA-256",
            file=opened.store.url,
            fix="restore the store from a backup",
        )
    return Standing(name, query_rows, grade_rows, dict(row.about))


def content_of(opened: Workspace, name: str | None = None) -> Standing:
    """``standing_in`` in a transaction of its own; None for ``now``."""
    with opened.store.read() as connection:
        return standing_in(connection, opened, name or NOW)


def freeze(opened: Workspace, name: str, *, now: int, person: str | None = None) -> Frozen:
    """Freeze the current golden set as an edition, which never changes afterwards."""
    _check_name(name)
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
    content = standing(snapshot)
    if not content.grades.height:
        fix = "judge, or import judgments first"
        raise InputError("nothing is judged yet", fix=fix)
    agreement = agreement_at(snapshot, opened.workspace)
    verdict = may_freeze(agreement.headline, opened.workspace)
    if verdict.verdict == "refuse":
        fix = "judge more, or settle what raters disagree on"
        raise PolicyRefused(f"fail: {verdict.sentence}", fix=fix)
    about = {**content.about, "agreement": agreement.sentence, "policy": verdict.sentence}
    contradicted = disagreements_at(snapshot).filter(pl.col("between") == IMPORT).height
    if contradicted:
        about["contradicted"] = contradicted
    _, sha256 = edition(content.queries, content.grades, about)
    with opened.store.begin() as connection:
        editions.freeze(
            connection,
            opened.golden.id,
            name=name,
            sha256=sha256,
            about=about,
            queries=content.queries,
            grades=content.grades,
            now=now,
        )
        if person is not None:
            details: dict[str, Any] = {"golden set": opened.golden.name, "sha256": sha256}
            details["grades"] = content.grades.height
            audit.note(connection, person, "freeze edition", name, now, details)
    sizes = content.queries.height, content.grades.height
    return Frozen(name, sha256, *sizes, contradicted, verdict)


def _check_name(name: str) -> None:
    fix = "such as 2026-03"
    if name == NOW:
        why = f"{NOW!r} is reserved for the current golden set"
        raise UsageError(why, fix=fix)
    check_name(name, "an edition", longest=LONGEST, fix=fix)


def list_editions(opened: Workspace) -> list[Edition]:
    """All editions, oldest first."""
    with opened.store.read() as connection:
        return editions.editions(connection, opened.golden.id)


def compare_editions(
    opened: Workspace, old: str, new: str, *, by: str | None = None
) -> EditionDifference:
    """What changed from one edition to another; ``now`` is the current golden set."""
    with opened.store.read() as connection:
        before, after = (standing_in(connection, opened, name) for name in (old, new))
    return changes(before, after, by=by)


def changes(before: Standing, after: Standing, *, by: str | None = None) -> EditionDifference:
    """What changed from one content to another, optionally by an attribute of the queries."""
    # The current golden set has no policy verdict yet: compare only what both have.
    shared = [name for name in before.about if name in after.about]
    contents = [
        edition(content.queries, content.grades, {name: content.about[name] for name in shared})[0]
        for content in (before, after)
    ]
    return difference(contents[0], contents[1], by=by)


def coverage(
    opened: Workspace,
    runs: Sequence[str | Path | Run],
    *,
    now: int,
    name: str | None = None,
    k: int = 10,
) -> Covered:
    """How much of the top k of runs is judged; the workspace stores the runs."""
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    names = [run.name for run in read]
    repeated = next((each for i, each in enumerate(names) if each in names[:i]), None)
    if repeated is not None:
        raise UsageError(
            f"two runs are called {repeated!r}", fix="name each run once; rename one of two files"
        )
    content = content_of(opened, name)
    return covered_by(opened, content, read, k, store_runs(opened, read, now=now).notes)


def covered_by(
    opened: Workspace, content: Standing, runs: Sequence[Run], k: int, notes: Sequence[str] = ()
) -> Covered:
    """How much of the top k of stored runs is judged."""
    with opened.store.read() as connection:
        aliases = imports.aliases(connection, opened.golden.id)
    where = "the golden set" if content.name == NOW else f"edition {content.name}"
    systems, more = following_all(runs, set(content.queries["query_id"]), aliases, where)
    covered = covering.coverage(content.queries, content.grades, systems, k)
    return Covered(covered.k, covered.runs, covered.queries, covered.unjudged, [*notes, *more])


def stale_judgments(opened: Workspace) -> Stale:
    """Judgments of documents that changed since, each with the ``text`` of its query."""
    with opened.store.read() as connection:
        query_rows = queries.frame(connection, opened.golden.id)
        current = judgments.current(connection, opened.golden.id).of(query_rows["query_id"])
        document_rows = documents.frame(connection, opened.golden.id)
    outdated = stale(current, document_rows.select("doc_id", "sha256"))
    texts = query_rows.select("query_id", "text")
    named = outdated.judgments.join(texts, on="query_id", how="left", maintain_order="left")
    return replace(outdated, judgments=named)


def named(opened: Workspace, frame: pl.DataFrame) -> pl.DataFrame:
    """Add texts of queries and titles of documents to rows; ids where there are none.

    Returns:
        The rows in their order, with ``text`` of the query, if they lack it, and ``name`` of the
        document, both as they are now.
    """
    with opened.store.read() as connection:
        query_rows = queries.frame(connection, opened.golden.id, dropped=True)
        titles = browsing.documents(connection, opened.golden.id, "title")
    if "text" not in frame.columns:
        texts = query_rows.select("query_id", "text")
        frame = frame.join(texts, on="query_id", how="left", maintain_order="left")
    frame = frame.join(titles, on="doc_id", how="left", maintain_order="left")
    return frame.with_columns(
        text=pl.coalesce("text", "query_id"), name=pl.coalesce("title", "doc_id")
    ).drop("title")


def weighed(asked: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Queries with a weight for each, if any has one.

    Args:
        asked: ``query_id`` and perhaps ``weight``, null for queries that no log counted.

    Returns:
        The queries, with weight 0 for null (they count only in slices of zero-weight queries), or
        without weights if none has one; and the number of zero weights added.
    """
    if "weight" not in asked.columns or not asked["weight"].count():
        return asked.drop("weight", strict=False), 0
    return asked.with_columns(pl.col("weight").fill_null(0.0)), asked["weight"].null_count()
