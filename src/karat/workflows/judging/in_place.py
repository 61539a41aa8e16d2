"""Rating a pair where it is shown, outside the queue's order but by its rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl
import sqlalchemy as sa

from karat.store.sql import browsing, judgments, pairs, queue, ratings, slots
from karat.store.sql.queue import Claim, PairRefused
from karat.store.sql.ratings import Own
from karat.store.sql.snoozed import note_votes, rated_by_others
from karat.workflows.workspace.workspace import Workspace


@dataclass(frozen=True)
class Seen:
    """The versions that a rater saw when grading a pair in a list."""

    document_sha256: str | None  # hash of the document; None if it was not in the store
    guideline: str  # version of the guideline


@dataclass(frozen=True)
class GradableDocument:
    """A document as shown to a rater who may grade it in place."""

    text: str | None  # the text; None if unknown
    url: str | None  # the URL; None if unknown
    seen: Seen  # the versions to send back with the grade


@dataclass(frozen=True)
class OwnRating:
    """A rater's own rating of a document that is shown."""

    judgment: int
    grade: float | None  # the grade; None if it could not be judged
    newest: bool  # whether it is the rater's newest, which can be undone


def to_grade(opened: Workspace, doc_ids: Collection[str]) -> Mapping[str, GradableDocument]:
    """Documents as shown now to raters, by document id; for a few hundred at most."""
    with opened.store.read() as connection:
        rows = browsing.wholes(connection, opened.golden.id, doc_ids)
    by_doc = {doc: fields for doc, *fields in rows.iter_rows()}
    shown = {}
    for doc in doc_ids:
        text, url, sha256 = by_doc.get(doc, (None, None, None))
        shown[doc] = GradableDocument(text, url, Seen(sha256, opened.golden.guideline))
    return shown


def own_of(opened: Workspace, rater: str, query_id: str) -> Mapping[str, OwnRating]:
    with opened.store.read() as connection:
        own = ratings.own(connection, opened.golden.id, rater, query_id)
        newest = queue.newest(connection, opened.golden.id, rater)
    return {
        doc: OwnRating(rating.judgment, rating.grade, rating.judgment == newest)
        for doc, rating in own.items()
    }


def refuse_changed(claim: Claim, seen: Seen | None) -> None:
    """Refuse a pair that changed since it was seen; None is not checked.

    Raises:
        PairRefused: the document or the guideline changed meanwhile.
    """
    if seen is None:
        return
    changed = [
        part
        for part, now, before in (
            ("document", claim.document_sha256, seen.document_sha256),
            ("guideline", claim.guideline, seen.guideline),
        )
        if now != before
    ]
    if changed:
        raise PairRefused(f"its {' and '.join(changed)} changed since you opened it: reload it")


def rate(
    opened: Workspace,
    rater: str,
    query_id: str,
    doc_id: str,  # the document
    grade: float | None,  # the grade; None if it cannot be judged, and then `reason` says why
    *,
    now: int,
    reason: str | None = None,  # in the rater's words, or one of `karat.golden.queue.REASONS`
    token: str | None = None,  # a random idempotency key: sent twice, it records one judgment
    seen: Seen | None = None,  # the versions that the rater saw; not checked if None
) -> int:
    """Record a rating of a pair shown next to its rankings, where others' grades would show.

    The pair is added to the queue if it is not in it.

    Returns:
        Id of the judgment.

    Raises:
        PairRefused: others have rated it and the rater has not, it changed since it was seen, or
            the token was sent with another grade.
    """
    golden = opened.golden
    row = pl.DataFrame({"query_id": [query_id], "doc_id": [doc_id]})
    with opened.store.begin() as connection:
        chosen = row.with_columns(chosen_by=pl.lit("comparison"))
        pairs.put(connection, golden.id, chosen, golden.raters, now)
        slots.hold_rater(connection, golden.id, rater)
        mine = ratings.own(connection, golden.id, rater, query_id).get(doc_id)
        if mine is None and rated_by_others(connection, golden.id, rater, query_id, doc_id):
            raise PairRefused(
                "another rater has graded it since, and you may have seen that grade",
                fix="reload it; it is in the queue if it needs another rater",
            )
        number = rate_in(
            connection,
            opened,
            rater,
            query_id,
            doc_id,
            grade,
            now=now,
            reason=reason,
            token=token,
            seen=seen,
        )
        recorded = ratings.own(connection, golden.id, rater, query_id).get(doc_id)
        if recorded is not None and (recorded.judgment, recorded.grade) != (number, grade):
            raise PairRefused(
                "this form was sent before, with another grade",
                fix="reload it, and undo that grade",
            )
        return number


def rate_in(
    connection: sa.Connection,
    opened: Workspace,
    rater: str,
    query_id: str,
    doc_id: str,
    grade: float | None,
    *,
    now: int,
    reason: str | None,
    token: str | None,
    seen: Seen | None,
) -> int:
    """As ``rate``, for a pair that is in the queue, in an open write transaction.

    Raises:
        PairRefused: as in ``rate``, or the pair is not in the queue; roll back the transaction.
    """
    set_id, lease_us = opened.golden.id, opened.workspace.lease_us
    claim = queue.claim_pair(
        connection, set_id, rater, query_id, doc_id, now=now, lease_us=lease_us
    )
    refuse_changed(claim, seen)
    return judgments.submit(
        connection,
        set_id,
        claim.slot_id,
        rater,
        grade=grade,
        reason=reason,
        state="cannot_judge" if grade is None else "graded",
        now=now,
        token=token,
        shown=claim.document_sha256,
        guideline=claim.guideline,
    )


def take_back(
    opened: Workspace, rater: str, query_id: str, doc_id: str, number: int, *, now: int
) -> bool:
    """Undo the rater's newest rating where it was given.

    The pair returns to the queue. If others have rated it, the rater may have seen their votes,
    and is not asked to rate it again.

    Args:
        doc_id: The document.
        number: Id of the rating, so a repeated request undoes one only.

    Returns:
        Whether it was undone: False if it had been already, or was corrected.

    Raises:
        PairRefused: the rater has judged another pair since.
    """
    set_id = opened.golden.id
    with opened.store.begin() as connection:
        slots.hold_rater(connection, set_id, rater)
        own: Own | None = ratings.own(connection, set_id, rater, query_id).get(doc_id)
        if own is None or own.judgment != number:
            return False
        if queue.newest(connection, set_id, rater) != number:
            raise PairRefused(
                "you have judged another pair since",
                fix="undo that first: ratings are undone one by one",
            )
        undone = judgments.undo(connection, set_id, rater, now)
        if undone is None:
            return False
        slot_id = undone.claim.slot_id
        note_votes(connection, set_id, slot_id, rater, query_id, doc_id)
        slots.release_slots(connection, set_id, slot_id, rater)
    return True
