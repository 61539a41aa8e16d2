"""Which judgments are of a text that has changed, and how old an edition is."""

from __future__ import annotations

import polars as pl
import pytest

from karat.errors import UsageError
from karat.golden.freshness import DAY_US, age_days, stale
from karat.tables.judgments import Judgments


def judgments(*rows: tuple[str, str, str, str | None]) -> Judgments:
    frame = pl.DataFrame(
        rows, ["query_id", "doc_id", "rater", "document_hash"], orient="row"
    ).with_columns(
        judgment=pl.int_range(pl.len()),
        grade=pl.lit(1.0),
        state=pl.lit("graded"),
        source=pl.lit("human"),
        kind=pl.lit("rating"),
        time_us=pl.lit(7),
    )
    return Judgments(frame, (0.0, 3.0))


def test_judgments_of_another_text_are_stale() -> None:
    held = judgments(
        ("q1", "same", "ann", "aa"),
        ("q1", "other", "ann", "aa"),
        ("q1", "other", "bob", "bb"),  # bob saw the text of now
        ("q2", "other", "bob", "aa"),
        ("q2", "gone", "bob", "aa"),
        ("q2", "bare", "bob", "aa"),  # it has no text now that could be compared
        ("q2", "same", "eve", None),  # imported
    )
    now = pl.DataFrame(
        {"doc_id": ["same", "other", "bare", "new"], "sha256": ["aa", "bb", None, "cc"]}
    )
    found = stale(held, now)
    assert found.judgments.select("judgment", "query_id", "doc_id", "rater", "change").rows() == [
        (1, "q1", "other", "ann", "changed"),
        (3, "q2", "other", "bob", "changed"),
        (4, "q2", "gone", "bob", "gone"),
    ]
    assert found.judgments["grade"].to_list() == [1.0] * 3
    assert found.pairs.rows() == [("q1", "other"), ("q2", "other"), ("q2", "gone")]
    assert (found.checked, found.unknown) == (5, 2)


def test_nothing_is_stale_without_judgments() -> None:
    none = Judgments(judgments(("q", "d", "ann", "aa")).frame.clear(), (0.0, 3.0))
    found = stale(none, pl.DataFrame(schema={"doc_id": pl.String, "sha256": pl.String}))
    assert not found.judgments.height
    assert (found.checked, found.unknown) == (0, 0)


def test_age_in_whole_days() -> None:
    assert age_days(5, 5) == 0
    assert age_days(5, 5 + 3 * DAY_US - 1) == 2
    assert age_days(5, 5 + 3 * DAY_US) == 3
    with pytest.raises(UsageError, match="in the future"):
        age_days(6, 5)
