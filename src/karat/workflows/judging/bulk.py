"""Bulk judging: the pairs of a queue in a list, and one grade for many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from karat.golden.queue import Pair, checked_submission
from karat.store.sql import documents, judgments, pairs, queries, ratings
from karat.store.sql.queue import PairRefused
from karat.workflows.judging.in_place import Seen, rate_in
from karat.workflows.workspace.workspace import Workspace

_BEGINS = 240  # characters of a document in a list


@dataclass(frozen=True)
class Rated:
    """What became of one pair.

    Attributes:
        query_id: The query.
        doc_id: The document.
        judgment: Number of the judgment; None if it was refused.
        refused: Why; None if it was recorded.
        first_stays: Whether it corrects a rating that agreement goes on being computed of, because
            others' votes may have been in sight since.
    """

    query_id: str
    doc_id: str
    judgment: int | None
    refused: str | None
    first_stays: bool


def pairs_of(opened: Workspace, rater: str) -> pl.DataFrame:
    """The pairs of the queue, with the rater's own grades and nobody else's.

    Args:
        opened: The workspace.
        rater: Who looks.

    Returns:
        ``query_id``, ``query``, ``need``, ``doc_id``, ``title``, ``begins`` (of the text), ``url``,
        ``yours`` (the grade as a text, ``cannot judge``, or null), ``judgments`` (how many count),
        ``free`` (places that nobody has), ``priority``, ``chosen_by``, ``document_sha256`` (null
        if the document is not in the store), ``guideline`` (its version); in the order of the
        queue.
    """
    golden = opened.golden
    with opened.store.read() as connection:
        held = pairs.frame(connection, golden.id)
        asked = queries.frame(connection, golden.id)
        known = documents.frame(connection, golden.id)
        said = judgments.current(connection, golden.id).frame
    asked = asked.select(
        "query_id", query=pl.coalesce("text", "query_id"), need=_if_there(asked, "need")
    )
    flat = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
    cut = pl.concat_str(flat.str.slice(0, _BEGINS), pl.lit("…"))
    begins = pl.when(flat.str.len_chars() > _BEGINS).then(cut).otherwise(flat)
    known = known.select(
        "doc_id",
        title=pl.coalesce("title", "doc_id"),
        begins=begins,
        url=_if_there(known, "url"),
        document_sha256="sha256",
    )
    own = said.filter(pl.col("rater") == rater, pl.col("kind") == "rating").sort("judgment")
    own = own.unique(["query_id", "doc_id"], keep="last").select("query_id", "doc_id", "grade")
    said_so = [None if g is None else f"{g:g}" for g in own["grade"]]
    own = own.with_columns(yours=pl.Series(said_so, dtype=pl.String).fill_null("cannot judge"))
    return (
        held.filter(pl.col("gold_grade").is_null())  # a gold item tests raters: none is pointed at
        .join(asked, on="query_id", how="left", maintain_order="left")
        .join(known, on="doc_id", how="left", maintain_order="left")
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
    chosen: Iterable[Pair],
    grade: float,
    *,
    now: int,
    reason: str | None = None,
    seen: Mapping[Pair, Seen] | None = None,
) -> Sequence[Rated]:
    """Give pairs one grade, as the rater's own ratings, each in a transaction of its own.

    A pair that the rater has rated already is corrected; if others have rated it too, agreement
    is of what the rater said before. No pair gets more ratings than it has places, and nothing is
    taken from a rater who has it just now.

    Args:
        opened: The workspace.
        rater: Who judges.
        chosen: Queries and documents.
        grade: For each of them.
        now: Microseconds UTC.
        reason: In the rater's words.
        seen: What they looked at, by pair: one that changed since is refused. What is not in it is
            not checked.

    Returns:
        What became of each, in the order they were given.

    Raises:
        UsageError: no such grade, or the rater has no name; then nothing is recorded.
    """
    golden = opened.golden
    checked_submission("graded", grade, reason, scale=golden.scale, grades=list(golden.grades))
    out = []
    for query_id, doc_id in dict.fromkeys(chosen):
        try:
            with opened.store.begin() as connection:
                number = rate_in(
                    connection,
                    opened,
                    rater,
                    query_id,
                    doc_id,
                    grade,
                    now=now,
                    reason=reason,
                    token=None,
                    seen=(seen or {}).get((query_id, doc_id)),
                )
                stays = ratings.first_stays(connection, number)
        except PairRefused as refused:
            out.append(Rated(query_id, doc_id, None, refused.what, first_stays=False))
        else:
            out.append(Rated(query_id, doc_id, number, None, stays))
    return out


def _if_there(frame: pl.DataFrame, name: str) -> pl.Expr:
    """A column that is left out where nothing has it."""
    return pl.col(name) if name in frame.columns else pl.lit(None, pl.String)
