"""How old documents were when a query was asked."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from karat.diagnosis.slices import slices_of
from karat.errors import InputError, UsageError
from karat.measures import parse
from karat.measures.scores import Rules, score
from karat.tables import Documents, Qrels, Queries, Run

# Asked on 2026-11-23 at noon. By hand: a 11 h before; b 1 day, c 7 d 23 h (7 whole days), d 8 days,
# e 30, f 31, g 90, h 91, i 365, j 366 days before; k an hour after; l without a date.
NOON = "2026-11-23T12:00:00Z"
UPDATED = [
    "2026-11-23T01:00:00Z", "2026-11-22T12:00:00+00:00", "2026-11-15T14:00:00+01:00",
    "2026-11-15T12:00:00", "2026-10-24 12:00:00", "2026-10-23T12:00Z", "2026-08-25T12:00Z",
    "2026-08-24T12:00Z", "2025-11-23T12:00Z", "2025-11-22T12:00Z", "2026-11-23T14:00:00+01:00",
    None,
]  # fmt: skip
IDS = "abcdefghijkl"
BANDS = {
    "(none)": "l", "under 1 day": "a", "1 to 7 days": "bc", "8 to 30 days": "de",
    "31 to 90 days": "fg", "91 to 365 days": "hi", "over a year": "j", "after the query": "k",
}  # fmt: skip
QRELS = {query: {f"d{query}": 1.0} for query in IDS}


def documents(values: Any, name: str = "updated_at") -> Documents:
    return Documents(pl.DataFrame({"doc_id": [f"d{query}" for query in IDS], name: values}))


def ages(
    by: str,
    held: Documents,
    asked: Any = NOON,
    run: dict[str, dict[str, float]] | None = None,
    about: dict[str, str] | None = None,
    name: str = "asked_at",
) -> dict[str, str]:
    """The queries of each band, their ids (of one letter) put together."""
    queries = None
    if asked is not None:
        times = asked if isinstance(asked, list) else [asked] * len(IDS)
        queries = Queries(pl.DataFrame({"query_id": list(IDS), name: times}))
    judged = Qrels.from_dict(QRELS)
    ranked = Run.from_dict(QRELS if run is None else run)
    ranked.about.update(about or {})
    scores = [score(ranked, judged, [parse("RR")], Rules())]
    found = slices_of(queries, by, scores, held, judged)
    return {name: "".join(np.array(list(IDS))[mask]) for name, mask in found}


def test_bands_of_age_at_the_time_of_the_query() -> None:
    found = ages("relevant.age", documents(UPDATED))
    assert found == BANDS
    assert list(found) == list(BANDS)  # youngest first, what cannot be last


def test_times_in_every_form() -> None:
    parsed = [None if each is None else datetime.fromisoformat(each) for each in UPDATED]
    times = [None if t is None else t if t.tzinfo else t.replace(tzinfo=UTC) for t in parsed]
    seconds = [None if t is None else round(t.timestamp()) for t in times]
    noon = datetime(2026, 11, 23, 12, tzinfo=UTC)
    for values in (
        times,
        seconds,
        [None if s is None else s * 1000 for s in seconds],
        [None if s is None else s * 1_000_000 for s in seconds],
        [None if s is None else s * 10**9 for s in seconds],
        [None if s is None else str(s) for s in seconds],
    ):
        assert ages("relevant.age", documents(values)) == BANDS
    held = documents(UPDATED, "publishedAt")
    for asked in (noon, noon.replace(tzinfo=None), round(noon.timestamp()), NOON):
        assert ages("relevant.age", held, asked, name="searched_at") == BANDS


def test_where_only_dates_are_known_dates_are_compared() -> None:
    # A document of 14:00 on the day of the query is of that day, not after it.
    found = ages("relevant.age", documents(UPDATED), "2026-11-23")
    assert found["under 1 day"] == "ak"
    of_days = documents([date(2026, 11, 23)] * 11 + [date(2026, 11, 24)])
    assert ages("relevant.age", of_days) == {"under 1 day": "abcdefghijk", "after the query": "l"}


def test_each_query_has_its_own_time() -> None:
    asked = ["2026-11-24T12:00:00Z", None, *[NOON] * 10]
    found = ages("relevant.age", documents(UPDATED), asked)
    # a: 1 day and 11 hours; nothing says when b was asked.
    assert found["1 to 7 days"] == "ac"
    assert found["(none)"] == "bl"


def test_without_times_of_queries_those_of_the_run_count() -> None:
    for about in ({"asked_at": NOON}, {"asked": NOON}, {"asked": "2001-01-01", "asked_at": NOON}):
        assert ages("relevant.age", documents(UPDATED), None, about=about) == BANDS
    with pytest.raises(InputError, match="'noon', which is not a time"):
        ages("relevant.age", documents(UPDATED), None, about={"asked": "noon"})


def test_the_age_of_what_was_returned() -> None:
    run = {"a": {"da": 2.0, "dj": 1.0}, "b": {"dl": 1.0}}
    found = ages("returned.age", documents(UPDATED), run=run)
    assert found == {"(none)": "bcdefghijkl", "under 1 day": "a", "over a year": "a"}


def test_a_column_called_age_goes_first() -> None:
    held = Documents(documents(UPDATED).frame.with_columns(age=pl.lit("old")))
    assert ages("relevant.age", held) == {"old": IDS}


def test_what_is_lacking_is_named() -> None:
    with pytest.raises(UsageError, match="each was updated\n  fix: a column updated_at"):
        ages("relevant.age", documents(UPDATED, "size"))
    with pytest.raises(UsageError, match="when each query was asked\n  fix: add a column asked_at"):
        ages("relevant.age", documents(UPDATED), None)
    wrong = documents(["soon", *UPDATED[1:]])
    with pytest.raises(InputError, match="updated_at of document da is 'soon', which is not a ti"):
        ages("relevant.age", wrong)
    with pytest.raises(InputError, match="asked_at of query a is 'today'"):
        ages("relevant.age", documents(UPDATED), "today")
    with pytest.raises(InputError, match="the file has none of the relevant documents"):
        ages("relevant.age", Documents(pl.DataFrame({"doc_id": ["x"], "updated_at": [NOON]})))
    with pytest.raises(UsageError, match="quartiles are of numbers"):
        ages("relevant.age:quartiles", documents(UPDATED))
