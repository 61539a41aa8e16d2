"""Freshness: how old an edition is, and which judgments are of a text that has changed since."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.errors import UsageError
from karat.tables.judgments import Judgments

DAY_US = 86_400_000_000
"""Microseconds of a day."""
_KEY = ["query_id", "doc_id"]


@dataclass(frozen=True, slots=True)
class Stale:
    """Judgments of documents that are no longer what they were.

    Attributes:
        judgments: ``judgment``, ``query_id``, ``doc_id``, ``rater``, ``grade``, ``time_us``,
            ``change`` (``changed``: the text is another; ``gone``: there is no such document).
        checked: Judgments whose document was compared.
        unknown: Judgments that do not say what the document was, imported ones mostly.
    """

    judgments: pl.DataFrame
    checked: int
    unknown: int

    @property
    def pairs(self) -> pl.DataFrame:
        """``query_id`` and ``doc_id`` of what should be judged again, each once."""
        return self.judgments.select(_KEY).unique(maintain_order=True)


def stale(judgments: Judgments, documents: pl.DataFrame) -> Stale:
    """Judgments whose document's hash is not the document's hash now.

    Args:
        judgments: Those that count.
        documents: ``doc_id`` and ``sha256`` of every document as it is now; null where there is no
            text to compare.
    """
    said = judgments.frame.filter(pl.col("document_hash").is_not_null())
    now = documents.select("doc_id", "sha256", known=pl.lit(value=True))
    compared = said.join(now, on="doc_id", how="left", maintain_order="left")
    change = (
        pl.when(pl.col("known").is_null())
        .then(pl.lit("gone"))
        .when(pl.col("sha256") != pl.col("document_hash"))
        .then(pl.lit("changed"))
    )
    found = compared.with_columns(change=change).filter(pl.col("change").is_not_null())
    blank = compared.filter(pl.col("known") & pl.col("sha256").is_null()).height
    return Stale(
        found.select("judgment", *_KEY, "rater", "grade", "time_us", "change"),
        checked=said.height - blank,
        unknown=len(judgments) - said.height + blank,
    )


def age_days(created_us: int, now_us: int) -> int:
    """Whole days since an edition was made.

    Args:
        created_us: When, in microseconds UTC.
        now_us: Now, likewise.

    Raises:
        UsageError: it was made after now.
    """
    if created_us > now_us:
        raise UsageError(
            "the edition was made after now", fix="set the clock of this machine, or of the other"
        )
    return (now_us - created_us) // DAY_US
