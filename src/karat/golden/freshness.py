"""Freshness: the age of an edition, and judgments of documents that have changed since."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from karat.errors import UsageError
from karat.tables.judgments import Judgments

DAY_US = 86_400_000_000  # microseconds in a day
_KEY = ["query_id", "doc_id"]


@dataclass(frozen=True, slots=True)
class Stale:
    """Judgments of documents that have changed."""

    # `judgment`, `query_id`, `doc_id`, `rater`, `grade`, `time_us`, `change` (`changed`: the text
    # differs; `gone`: the document no longer exists)
    judgments: pl.DataFrame
    checked: int  # judgments whose document was compared
    unknown: int  # judgments without a document hash, mostly imported ones

    @property
    def pairs(self) -> pl.DataFrame:
        """The distinct pairs to judge again: ``query_id`` and ``doc_id``."""
        return self.judgments.select(_KEY).unique(maintain_order=True)


def stale(judgments: Judgments, documents: pl.DataFrame) -> Stale:
    """Judgments whose document hash differs from the current one.

    Args:
        judgments: Those that count.
        documents: ``doc_id`` and current ``sha256`` of every document; null where there is no text
            to compare.
    """
    hashed = judgments.frame.filter(pl.col("document_hash").is_not_null())
    now = documents.select("doc_id", "sha256", known=pl.lit(value=True))
    compared = hashed.join(now, on="doc_id", how="left", maintain_order="left")
    change = (
        pl.when(pl.col("known").is_null())
        .then(pl.lit("gone"))
        .when(pl.col("sha256") != pl.col("document_hash"))
        .then(pl.lit("changed"))
    )
    outdated = compared.with_columns(change=change).filter(pl.col("change").is_not_null())
    blank = compared.filter(pl.col("known") & pl.col("sha256").is_null()).height
    return Stale(
        outdated.select("judgment", *_KEY, "rater", "grade", "time_us", "change"),
        checked=hashed.height - blank,
        unknown=len(judgments) - hashed.height + blank,
    )


def age_days(created_us: int, now_us: int) -> int:
    """Whole days since an edition was made.

    Args:
        created_us: Creation time, in microseconds UTC.
        now_us: Current time, in microseconds UTC.

    Raises:
        UsageError: the creation time is in the future.
    """
    if created_us > now_us:
        raise UsageError(
            "the edition's creation time is in the future", fix="check the clocks of both machines"
        )
    return (now_us - created_us) // DAY_US
