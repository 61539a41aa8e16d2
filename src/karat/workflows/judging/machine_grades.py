"""Grades of machine judges in a golden set: what they are asked about, and where they are kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import polars as pl

from karat.errors import UsageError
from karat.formats.own.judges import read_judge, read_judges
from karat.golden.aggregation import RULE, grades
from karat.store.sql import audit, browsing, documents, judgments, pairs, queries, ratings
from karat.tables import Documents, Pairs
from karat.tables.golden.machine_judges import (
    Doubt,
    JudgeConfig,
    JudgeReport,
    JudgeState,
    JudgingRun,
)
from karat.workflows.judging.autojudge import ToJudge, judgments_frame, pairs_to_judge
from karat.workflows.judging.doubts import PEOPLE, Doubts, doubts
from karat.workflows.judging.machine_judges import judge_report, judge_states
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_runs import read_stored
from karat.workflows.workspace.workspace import Workspace, queries_in

_SOURCES = ("human", "import")  # of people's judgments


def pairs_of_golden_set(opened: Workspace, *, by: str | None = None) -> ToJudge:
    """All pairs of a golden set's queue and judgments, with people's aggregated grades."""
    with opened.store.read() as connection:
        queued = pairs.frame(connection, opened.golden.id).select("query_id", "doc_id")
        texts = documents.frame(connection, opened.golden.id)
        current = judgments.current(connection, opened.golden.id)
        blind = ratings.first(connection, opened.golden.id, current).ratings
    asked = queries_in(opened)
    judged = current.frame.select("query_id", "doc_id")
    every = pl.concat([queued, judged]).unique(maintain_order=True)
    every = every.join(asked.frame.select("query_id"), on="query_id", how="semi")
    if not every.height:
        raise UsageError("the golden set has no pairs yet", fix="karat golden pool RUN…")
    graded = grades(current, RULE, _SOURCES)
    given = pairs_to_judge(Pairs(every), asked, Documents(texts), by=by)
    rows = graded.select("query_id", "doc_id", "grade").iter_rows()
    by_person = blind.filter(pl.col("source") == "human")
    by_person = by_person.unique(["query_id", "doc_id", "rater"], keep="last", maintain_order=True)
    return replace(
        given,
        grades={(query, doc): float(grade) for query, doc, grade in rows},
        ratings=by_person.select("query_id", "doc_id", "rater", "grade").rows(),
    )


def store_grades(opened: Workspace, found: JudgingRun) -> int:
    """Record the grades in the golden set, as those of a machine; how many are new."""
    frame = judgments_frame(found).with_columns(time_us=pl.lit(time.time_ns() // 1000))
    with opened.store.begin() as connection:
        recorded = judgments.record(connection, opened.golden.id, frame, None)
    return recorded.added + recorded.corrected


def doubts_in(
    opened: Workspace,
    judges: Sequence[JudgeConfig],
    *,
    queue: bool,
    now: int,
    **how: Any,  # as for ``doubts``
) -> Doubts:
    """``doubts`` by people's grades in a golden set, put into its queue if asked."""
    golden = opened.golden
    with opened.store.read() as connection:
        people = grades(judgments.current(connection, golden.id), RULE, _SOURCES)
        asked = queries.frame(connection, golden.id)["query_id"]
    found = doubts(judges, people, salt=golden.salt, queries=asked, **how)
    if not queue:
        return found
    frame = _frame(found).select("query_id", "doc_id", "chosen_by", "chance")
    again = pl.col("chosen_by") == PEOPLE
    added = 0
    with opened.store.begin() as connection:
        # One more rater looks at what a person and a machine see differently.
        for part, raters in ((frame.filter(~again), 0), (frame.filter(again), 1)):
            if part.height:
                added += pairs.put(connection, golden.id, part, golden.raters + raters, now).added
    return Doubts(found.pairs, found.chances, added)


def doubts_stored(
    opened: Workspace,
    judges: Sequence[str],
    runs: Sequence[int | str] = (),
    *,
    queue: bool = False,
    person: str = "",
    now: int,
    **how: Any,
) -> Doubts:
    """``doubts_in`` by names of judges and of stored runs; audited if they are queued."""
    if not judges:
        raise UsageError("expected at least one judge, got none", fix="name one or more")
    root = opened.workspace.root
    configs = [read_judge(name, root) for name in dict.fromkeys(judges)]
    read = read_stored(opened, find_runs(opened, runs))
    found = doubts_in(opened, configs, queue=queue, now=now, runs=read, **how)
    if queue:
        about = {"judges": ", ".join(judges), "new": found.queued}
        with opened.store.begin() as connection:
            audit.note(connection, person, "queue doubts", opened.golden.name, now, about)
    return found


def doubts_listed(opened: Workspace, found: Doubts) -> pl.DataFrame:
    """The pairs with the ``text`` of the query and the ``title`` of the document, for a list."""
    frame = _frame(found)
    with opened.store.read() as connection:
        texts = queries.frame(connection, opened.golden.id).select("query_id", "text")
        ids = set(frame["doc_id"])
        titles = browsing.documents(connection, opened.golden.id, "title", doc_ids=ids)
    for on, more in (("query_id", texts), ("doc_id", titles)):
        frame = frame.join(more, on=on, how="left", maintain_order="left")
    return frame.with_columns(
        text=pl.coalesce("text", "query_id"), title=pl.coalesce("title", "doc_id")
    )


def _frame(found: Doubts) -> pl.DataFrame:
    numbers = dict.fromkeys(("machine", "people", "chance"), pl.Float64)
    schema = dict.fromkeys((each.name for each in fields(Doubt)), pl.String) | numbers
    return pl.DataFrame([asdict(row) for row in found.pairs], schema=schema)


def judges_in(opened: Workspace, *, now: int) -> list[JudgeState]:
    """The judges declared in a workspace, in its order."""
    judges = list(read_judges(opened.workspace.root).values())
    return judge_states(judges, stored=_by_machines(opened), now=now)


def judge_in(opened: Workspace, name: str, *, now: int) -> JudgeReport:
    """A judge with its passport; raises UsageError if it is not declared."""
    judge = read_judge(name, opened.workspace.root)
    [state] = judge_states([judge], stored=_by_machines(opened), now=now)
    return judge_report(judge, state)


def undeclared(opened: Workspace, judges: Sequence[JudgeState]) -> dict[str, int]:
    """Stored grades of machines that are not one of these judges as they are now, by rater."""
    known = {each.rater for each in judges}
    return {rater: n for rater, n in sorted(_by_machines(opened).items()) if rater not in known}


def _by_machines(opened: Workspace) -> dict[str, int]:
    with opened.store.read() as connection:
        return judgments.counts_of_machines(connection)
