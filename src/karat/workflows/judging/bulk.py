"""Bulk judging: the queue as a list, and one grade for many of its pairs."""

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
    chosen: Iterable[Pair],
    grade: float,
    *,
    now: int,
    reason: str | None = None,
    seen: Mapping[Pair, Seen] | None = None,
) -> Sequence[Rated]:
    """Give several pairs one grade, as the rater's own ratings, each in its own transaction.

    A pair that the rater has rated already is corrected; if others have rated it too, agreement
    still uses the earlier grade. No pair gets more ratings than it has places, and a pair leased
    to another rater stays theirs.

    Args:
        chosen: Queries and documents.
        grade: The grade of all of them.
        reason: In the rater's words.
        seen: The versions that the rater saw, by pair: a pair that changed since is refused. Pairs
            not in it are not checked.

    Returns:
        The outcome for each pair, in the order given.
    """
    golden = opened.golden
    checked_submission("graded", grade, reason, scale=golden.scale, grades=list(golden.grades))
    outcomes = []
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
            outcomes.append(Rated(query_id, doc_id, None, refused.what, first_stays=False))
        else:
            outcomes.append(Rated(query_id, doc_id, number, None, stays))
    return outcomes


def _column_or_null(frame: pl.DataFrame, name: str) -> pl.Expr:
    """The column, or nulls if the frame does not have it."""
    return pl.col(name) if name in frame.columns else pl.lit(None, pl.String)
