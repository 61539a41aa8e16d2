"""Rating a pair where it is shown, outside the queue's order but by its rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.golden.queue import Claim, Pair, checked_submission
from karat.store.sql import (
    audit,
    browsing,
    documents,
    golden_sets,
    judgments,
    pairs,
    queries,
    queue,
    ratings,
    slots,
)
from karat.store.sql.queue import PairRefused, note_votes, rated_by_others
from karat.store.sql.ratings import Own
from karat.workflows.workspace.artifacts import key_of
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
        rows = browsing.documents(
            connection, opened.golden.id, "text", "url", "sha256", doc_ids=doc_ids
        )
    by_doc = {doc: fields for doc, *fields in rows.iter_rows()}
    shown = {}
    for doc in doc_ids:
        text, url, sha256 = by_doc.get(doc, (None, None, None))
        shown[doc] = GradableDocument(text, url, Seen(sha256, opened.golden.guideline))
    return shown


@dataclass(frozen=True)
class ReadDocument:
    """A document of a query with its judgments, as shown to one rater."""

    doc_id: str
    title: str | None
    text: str | None
    url: str | None
    attributes: Mapping[str, Any]
    history: pl.DataFrame  # as ``store.sql.judgments.history``, the newest first
    own: OwnRating | None  # the rater's own rating
    # Whether another rater has graded it, and this one has not: their grade would not be blind
    by_others: bool
    waits: bool  # whether it is in the queue for another rater
    seen: Seen = field(repr=False)


def read_document(opened: Workspace, rater: str, query_id: str, doc_id: str) -> ReadDocument:
    set_id = opened.golden.id
    with opened.store.read() as connection:
        row = browsing.one_document(connection, set_id, doc_id) or {}
        hashes = browsing.documents(connection, set_id, "sha256", doc_ids=[doc_id])
        history = judgments.history(connection, set_id, query_id, doc_id)
        others = rated_by_others(connection, set_id, rater, query_id, doc_id)
        _, free = pairs.places(connection, set_id, query_id, doc_id)
    own = own_of(opened, rater, query_id).get(doc_id)
    return ReadDocument(
        doc_id,
        row.get("title"),
        row.get("text"),
        row.get("url"),
        row.get("attributes") or {},
        history.reverse(),
        own,
        others and own is None,
        free > 0,
        Seen(next(iter(hashes["sha256"].to_list()), None), opened.golden.guideline),
    )


def ask_another(opened: Workspace, query_id: str, doc_id: str, *, person: str, now: int) -> None:
    """Put a pair that others have graded into the queue, for one more rater; audited."""
    golden = opened.golden
    row = pl.DataFrame({"query_id": [query_id], "doc_id": [doc_id], "chosen_by": ["comparison"]})
    with opened.store.begin() as connection:
        golden_sets.hold(connection, golden.id)  # of two clicks, one counts
        every, free = pairs.places(connection, golden.id, query_id, doc_id)
        if not free:
            pairs.put(connection, golden.id, row, every + 1, now)
            about = {"query": query_id, "document": doc_id}
            audit.note(connection, person, "queue for another rater", golden.name, now, about)


def own_of(opened: Workspace, rater: str, query_id: str) -> Mapping[str, OwnRating]:
    with opened.store.read() as connection:
        own = ratings.own(connection, opened.golden.id, rater, query_id)
        newest = queue.newest(connection, opened.golden.id, rater) if own else None
    return {
        doc: OwnRating(rating.judgment, rating.grade, rating.judgment == newest)
        for doc, rating in own.items()
    }


def refuse_changed(claim: Claim, seen: Seen | None) -> None:
    """Refuse a pair that changed since it was seen; None is not checked."""
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
    **more: Any,
) -> int:
    """Record a rating of a pair shown next to its rankings, where others' grades would show.

    The pair is added to the queue if it is not in it; ``more`` as in ``rate_in``.
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
        number = rate_in(connection, opened, rater, query_id, doc_id, grade, now=now, **more)
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
    reason: str | None = None,  # in the rater's words, or one of `karat.golden.queue.REASONS`
    token: str | None = None,  # a random idempotency key: sent twice, it records one judgment
    seen: Seen | None = None,  # the versions that the rater saw; not checked if None
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


_BEGINS = 240  # characters of a document in a list


@dataclass(frozen=True)
class Rated:
    query_id: str
    doc_id: str  # the document
    judgment: int | None  # id of the judgment; None if it was refused
    refused: str | None  # the reason; None if it was recorded
    # Whether agreement still uses the corrected rating, because the rater may have seen other votes
    # since
    first_stays: bool


def pairs_of(opened: Workspace, rater: str) -> pl.DataFrame:
    """The pairs of the queue, with the rater's own grades only.

    Returns:
        ``query_id``, ``query``, ``need``, ``doc_id``, ``title``, ``begins`` (of the text), ``url``,
        ``yours`` (the grade as a text, ``cannot judge``, or null), ``judgments`` (how many count),
        ``free`` (places not taken), ``priority``, ``chosen_by``, ``document_sha256`` (null
        if the document is not in the store), ``guideline`` (its version); in the order of the
        queue.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        queue = pairs.frame(connection, golden.id)
        query_rows = queries.frame(connection, golden.id)
        document_rows = documents.frame(connection, golden.id)
        current = judgments.current(connection, golden.id).frame
    query_rows = query_rows.select(
        "query_id", query=pl.coalesce("text", "query_id"), need=_column_or_null(query_rows, "need")
    )
    flat = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
    cut = pl.concat_str(flat.str.slice(0, _BEGINS), pl.lit("…"))
    begins = pl.when(flat.str.len_chars() > _BEGINS).then(cut).otherwise(flat)
    document_rows = document_rows.select(
        "doc_id",
        title=pl.coalesce("title", "doc_id"),
        begins=begins,
        url=_column_or_null(document_rows, "url"),
        document_sha256="sha256",
    )
    own = current.filter(pl.col("rater") == rater, pl.col("kind") == "rating").sort("judgment")
    own = own.unique(["query_id", "doc_id"], keep="last").select("query_id", "doc_id", "grade")
    grade_texts = [None if g is None else f"{g:g}" for g in own["grade"]]
    own = own.with_columns(yours=pl.Series(grade_texts, dtype=pl.String).fill_null("cannot judge"))
    return (
        queue.filter(pl.col("gold_grade").is_null())  # a gold item tests raters: do not reveal it
        .join(query_rows, on="query_id", how="left", maintain_order="left")
        .join(document_rows, on="doc_id", how="left", maintain_order="left")
        .join(own, on=["query_id", "doc_id"], how="left", maintain_order="left")
        .sort("priority", maintain_order=True)
        .select(
            "query_id",
            "query",
            "need",
            "doc_id",
            title=pl.coalesce("title", "doc_id"),
            begins="begins",
            url="url",
            yours="yours",
            judgments="judgments",
            free=pl.col("open") - pl.col("leased"),
            priority="priority",
            chosen_by="chosen_by",
            document_sha256="document_sha256",
            guideline=pl.lit(golden.guideline),
        )
    )


def rate_pairs(
    opened: Workspace,
    rater: str,
    chosen: Iterable[Pair],  # queries and documents
    grade: float,  # the grade of all of them
    *,
    now: int,
    reason: str | None = None,  # in the rater's words
    seen: Mapping[Pair, Seen] | None = None,
    token: str | None = None,  # a random idempotency key: sent twice, it records each pair once
) -> Sequence[Rated]:
    """Give several pairs one grade, as the rater's own ratings, each in its own transaction.

    A pair that the rater has rated already is corrected; if others have rated it too, agreement
    still uses the earlier grade. No pair gets more ratings than it has places, and a pair leased
    to another rater stays theirs.

    Args:
        seen: The versions that the rater saw, by pair: a pair that changed since is refused. Pairs
            not in it are not checked.
    """
    golden = opened.golden
    checked_submission("graded", grade, reason, scale=golden.scale, grades=list(golden.grades))
    outcomes = []
    for query_id, doc_id in dict.fromkeys(chosen):
        try:
            with opened.store.begin() as connection:
                pair_seen = (seen or {}).get((query_id, doc_id))
                number = rate_in(
                    connection, opened, rater, query_id, doc_id, grade, now=now, reason=reason,
                    token=None if token is None else key_of(token, query_id, doc_id),
                    seen=pair_seen,
                )  # fmt: skip
                stays = ratings.first_stays(connection, number)
        except PairRefused as refused:
            outcomes.append(Rated(query_id, doc_id, None, refused.what, first_stays=False))
        else:
            outcomes.append(Rated(query_id, doc_id, number, None, stays))
    return outcomes


def _column_or_null(frame: pl.DataFrame, name: str) -> pl.Expr:
    """The column, or nulls if the frame does not have it."""
    return pl.col(name) if name in frame.columns else pl.lit(None, pl.String)
