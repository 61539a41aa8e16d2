"""Rating one pair where it is seen, outside the queue's order, by the queue's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from karat.store import documents, judgments, pairs
from karat.store.queue import Claim, PairRefused, claim_pair
from karat.workflows.workspace import Opened


@dataclass(frozen=True)
class Seen:
    """What somebody had before them when they graded a pair in a list.

    Attributes:
        document_sha256: Hash of the document; None if it was not in the store.
        guideline: Version of the guideline.
    """

    document_sha256: str | None
    guideline: str


def seen_of(opened: Opened, doc_ids: Iterable[str]) -> Mapping[str, Seen]:
    """What somebody sees of documents who is shown them now, by document."""
    with opened.store.read() as connection:
        known = documents.frame(connection, opened.golden.id)
    hashes = dict(known.select("doc_id", "sha256").iter_rows())
    return {doc: Seen(hashes.get(doc), opened.golden.guideline) for doc in doc_ids}


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
    opened: Opened,
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
    """Record a rating of a pair, which is added to the queue if it is not there.

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
        PairRefused: as many have rated it as may, or the rater may not, or it is not what was seen.
        InputError: the query is not in the golden set.
        UsageError: no such grade or reason.
    """
    golden = opened.golden
    row = pl.DataFrame({"query_id": [query_id], "doc_id": [doc_id]})
    with opened.store.begin() as connection:
        chosen = row.with_columns(chosen_by=pl.lit("comparison"))
        pairs.put(connection, golden.id, chosen, golden.raters, now)
        lease = opened.workspace.lease_us
        claim = claim_pair(connection, golden.id, rater, query_id, doc_id, now=now, lease_us=lease)
        refuse_changed(claim, seen)
        return judgments.submit(
            connection,
            golden.id,
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
