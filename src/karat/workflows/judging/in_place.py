"""Rating one pair where it is seen, outside the queue's order, by the queue's rules."""

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
    """What somebody had before them when they graded a pair in a list.

    Attributes:
        document_sha256: Hash of the document; None if it was not in the store.
        guideline: Version of the guideline.
    """

    document_sha256: str | None
    guideline: str


@dataclass(frozen=True)
class ToGrade:
    """A document as it is shown to somebody who may grade it in place.

    Attributes:
        text: The text; None if nobody knows it.
        url: Where it is; None if nobody knows.
        seen: What a form says of it.
    """

    text: str | None
    url: str | None
    seen: Seen


@dataclass(frozen=True)
class OwnHere:
    """What somebody has said of a document where it is shown.

    Attributes:
        judgment: Number of their rating.
        grade: The grade; None if it could not be judged.
        newest: Whether they may take it back: it is the newest they gave.
    """

    judgment: int
    grade: float | None
    newest: bool


def to_grade(opened: Workspace, doc_ids: Collection[str]) -> Mapping[str, ToGrade]:
    """Documents, a few hundred, as they are shown now to whoever may grade them, by document."""
    with opened.store.read() as connection:
        found = browsing.wholes(connection, opened.golden.id, doc_ids)
    known = {doc: held for doc, *held in found.iter_rows()}
    out = {}
    for doc in doc_ids:
        text, url, sha256 = known.get(doc, (None, None, None))
        out[doc] = ToGrade(text, url, Seen(sha256, opened.golden.guideline))
    return out


def own_of(opened: Workspace, rater: str, query_id: str) -> Mapping[str, OwnHere]:
    """What somebody has said of a query's documents, by document."""
    with opened.store.read() as connection:
        said = ratings.own(connection, opened.golden.id, rater, query_id)
        newest = queue.newest(connection, opened.golden.id, rater)
    return {
        doc: OwnHere(each.judgment, each.grade, each.judgment == newest)
        for doc, each in said.items()
    }


def refuse_changed(claim: Claim, seen: Seen | None) -> None:
    """Refuse a pair that is not as it was seen; ``seen`` None is not checked.

    Raises:
        PairRefused: the document or the guideline changed meanwhile.
    """
    if seen is None:
        return
    changed = [
        what
        for what, now, then in (
            ("document", claim.document_sha256, seen.document_sha256),
            ("guideline", claim.guideline, seen.guideline),
        )
        if now != then
    ]
    if changed:
        raise PairRefused(f"its {' and '.join(changed)} changed since you looked: look at it again")


def rate(
    opened: Workspace,
    rater: str,
    query_id: str,
    doc_id: str,
    grade: float | None,
    *,
    now: int,
    reason: str | None = None,
    token: str | None = None,
    seen: Seen | None = None,
) -> int:
    """Record a rating of a pair beside its rankings, where the grades of others would show.

    It is added to the queue if it is not there.

    Args:
        opened: The workspace.
        rater: Who rates.
        query_id: The query.
        doc_id: The document.
        grade: The grade; None if it cannot be judged, and then ``reason`` says why.
        now: Microseconds UTC.
        reason: In the rater's words, or one of ``karat.golden.queue.REASONS``.
        token: Whatever the sender drew: sent twice, it is one judgment.
        seen: What they looked at; not checked if None.

    Returns:
        Number of the judgment.

    Raises:
        PairRefused: others have rated it and the rater has not, it is not what was seen, or the
            token was sent with another grade.
        InputError: the query is not in the golden set.
        UsageError: no such grade or reason.
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
                "somebody has graded it since, and their grade may be in sight",
                fix="look at it again; it waits in the queue if it needs another rater",
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
        stands = ratings.own(connection, golden.id, rater, query_id).get(doc_id)
        if stands is not None and (stands.judgment, stands.grade) != (number, grade):
            raise PairRefused(
                "this form was sent before, with another grade",
                fix="look at it again, and take that grade back",
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
    """As ``rate``, of a pair that is in the queue, in a write transaction that is open.

    Raises:
        PairRefused: as in ``rate``, or it is not in the queue; the transaction has to end then.
        UsageError: no such grade or reason.
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
    """Take back a rating where it was given: the newest of the rater's, as the queue's undo.

    The pair goes back into the queue. If others have rated it, their votes may be in sight, and
    the rater rates it no more.

    Args:
        opened: The workspace.
        rater: Whose rating it is.
        query_id: The query.
        doc_id: The document.
        number: Of the rating, so that what is sent twice takes one back.
        now: Microseconds UTC.

    Returns:
        Whether there was anything to take back: False if it was, or was corrected.

    Raises:
        PairRefused: the rater has judged another pair since.
    """
    set_id = opened.golden.id
    with opened.store.begin() as connection:
        slots.hold_rater(connection, set_id, rater)
        held: Own | None = ratings.own(connection, set_id, rater, query_id).get(doc_id)
        if held is None or held.judgment != number:
            return False
        if queue.newest(connection, set_id, rater) != number:
            raise PairRefused(
                "you have judged another pair since",
                fix="take that back first: undo goes back one by one",
            )
        undone = judgments.undo(connection, set_id, rater, now)
        if undone is None:
            return False
        slot_id = undone.claim.slot_id
        note_votes(connection, set_id, slot_id, rater, query_id, doc_id)
        slots.let_go(connection, set_id, slot_id, rater)
    return True
