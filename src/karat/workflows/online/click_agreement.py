"""Agreement of grades from clicks with people's, of a workspace or of two files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.errors import UsageError, nearest
from karat.formats.own.click_grades import read_click_grades
from karat.online.clicks.agreement import agreement
from karat.online.clicks.grading import NAIVE
from karat.stats.agreement import weights_named
from karat.tables import Qrels, Queries
from karat.tables.notes import Concern, Note
from karat.tables.online.clicks import ClickAgreement, ClickOrigin
from karat.workflows.offline import inputs
from karat.workflows.online.click_judgments import opened_workspace

if TYPE_CHECKING:
    from karat.workflows.workspace.workspace import Workspace

OPPOSE = "clicks disagree"  # why a pair is in the queue


def agree_clicks(
    workspace: Workspace | str | Path | None = None,
    *,
    clicks: str | Path | None = None,
    qrels: Any = None,
    queries: Any = None,
    by: str | None = None,
    weights: str | None = None,
    rel: float = 1.0,
    queue: bool = False,
    person: str = "",
    now: int | None = None,
) -> ClickAgreement:
    """How far grades from clicks agree with people's, over the pairs that both graded.

    Args:
        workspace: With grades from clicks of its golden set, compared with people's (and imported
            ones where people gave none).
        clicks: Instead, a Parquet file of ``karat clicks judge``.
        qrels: Required with ``clicks``: the judgments, in any form that ``evaluate`` accepts.
        queries: With ``clicks``: texts and attributes of the queries; those of ``qrels`` if None.
        by: An attribute of the queries; agreement is also shown for each of its values.
        weights: Of κ: none, linear or quadratic; those of the workspace, or quadratic, if None.
        rel: Lowest relevant grade.
        queue: Whether pairs that oppose are put into the judging queue, for one more rater.
        person: Who queues them, for the audit log.
        now: Microseconds UTC; by default the time.

    Raises:
        UsageError: no grades from clicks, an unknown attribute, or files without judgments.
        InputError: a file that cannot be read.
    """
    now = time.time_ns() // 1000 if now is None else now
    if clicks is not None:
        if queue:
            raise UsageError("a queue belongs to a workspace", fix="--workspace DIR")
        if qrels is None:
            raise UsageError("no judgments of people were given", fix="--qrels FILE")
        frame, origin = read_click_grades(Path(clicks))
        about = inputs.about(queries, qrels)
        return _agreement(frame, origin, inputs.qrels(qrels), about, by, weights, rel)
    if workspace is None:
        raise UsageError("no grades from clicks were given", fix="a workspace, or a file")
    from karat.workflows.workspace.stored_inputs import judged
    from karat.workflows.workspace.stored_judgments import click_grades

    with opened_workspace(workspace, now) as opened:
        assert opened is not None
        stored = click_grades(opened)
        if stored is None:
            raise UsageError(
                f"the golden set {opened.golden.name} has no grades from clicks",
                fix="karat clicks judge makes some from a log",
            )
        people = judged(opened)
        weights = weights or opened.workspace.weights
        found = _agreement(*stored, people.qrels, people.queries, by, weights, rel)
        return replace(found, queued=queue_opposing(opened, found, person, now)) if queue else found


def _agreement(
    clicks: pl.DataFrame,
    origin: ClickOrigin,
    qrels: Qrels,
    queries: Queries | None,
    by: str | None,
    weights: str | None,
    rel: float,
) -> ClickAgreement:
    kind = weights_named(weights or "quadratic")
    if by is not None and (queries is None or by not in queries.frame.columns):
        names = [] if queries is None else list(queries.attributes)
        raise UsageError(
            f"queries have no attribute {by!r}",
            nearest=nearest(by, names, 1),
            fix=f"one of {', '.join(names)}" if names else "--queries FILE, in Python queries=FILE",
        )
    found = agreement(
        clicks, graded_by_people(qrels, queries, by), origin, weights=kind, by=by, rel=rel
    )
    return replace(found, notes=list(_notes(found)))


def graded_by_people(qrels: Qrels, queries: Queries | None, by: str | None = None) -> pl.DataFrame:
    """People's grades with the texts of their queries, and an attribute of these as ``class``."""
    people = qrels.frame.filter(pl.col("grade") >= 0)
    if queries is None:
        return people
    more = [pl.col("text")] if "text" in queries.frame.columns else []
    more += [pl.col(by).alias("class")] if by is not None else []
    return people.join(queries.frame.select("query_id", *more), on="query_id", how="left")


def _notes(found: ClickAgreement) -> Iterator[str]:
    if found.origin.model == NAIVE:
        yield Note(
            "the naive rule takes position for relevance: what agrees may be the order shown",
            Concern.INPUT,
        )
    if found.origin.simulated:
        yield Note("the clicks are of simulated users", Concern.INPUT)
    if not found.all.kappa.pairs:
        yield Note("no pair is graded by both clicks and people", Concern.QUERIES)
    if found.best_cuts is not None:
        yield "cross-fitted: each query's grades by cut points chosen on the other queries"
    if found.oppose > len(found.opposing):
        yield f"{len(found.opposing):,} of {found.oppose:,} opposing pairs are listed"


def queue_opposing(opened: Workspace, found: ClickAgreement, person: str, now: int) -> int:
    """Put the opposing pairs into the judging queue, for one more rater; audited."""
    from karat.store.sql import audit, pairs

    golden = opened.golden
    rows = [(each.query_id, each.doc_id, OPPOSE) for each in found.opposing]
    if not rows:
        return 0
    frame = pl.DataFrame(rows, ["query_id", "doc_id", "chosen_by"], orient="row")
    keys = ["query_id", "doc_id"]
    with opened.store.begin() as connection:
        queued = pairs.frame(connection, golden.id).select(keys)
        # Grades of pairs that are not in the queue were imported: they have no slot.
        for part, raters in (
            (frame.join(queued, on=keys, how="semi"), golden.raters + 1),
            (frame.join(queued, on=keys, how="anti"), 1),
        ):
            if part.height:
                pairs.put(connection, golden.id, part, raters, now)
        about = {"pairs": len(rows), "clicks": found.origin.model}
        audit.note(connection, person, "queue opposing clicks", golden.name, now, about)
    return len(rows)
