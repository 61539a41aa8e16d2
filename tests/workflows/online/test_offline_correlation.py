"""Offline beside online: the join, what is in one world only, planted disagreements."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.engines.frames.opening import open_engine
from karat.errors import InputError, UsageError
from karat.online.rules import DAY, SECOND
from karat.tables.online.events import EventLog
from karat.tables.online.offline_correlation import OfflineCorrelation
from karat.workflows.online.offline_correlation import against

LogOf = Callable[..., EventLog]
QUERIES = [f"Query {i}" for i in range(12)]
# Query i is judged 12 - i of 12: the relevant document stands at place i + 1 of 12.
QRELS = {f"q{i}": {f"d{i}": 1} for i in range(12)}
RUN = {
    f"q{i}": {f"d{i}" if place == i else f"x{place}": float(100 - place) for place in range(12)}
    for i in range(12)
}


def events() -> list[dict[str, Any]]:
    """20 people for each query, i to 0: query i is clicked by 20 - i of them, at position i + 1.

    But query 0, which judges like best, is clicked by nobody and half of its searches are in vain;
    query 9 is searched for by 4; query 11 by nobody; "other" is not judged.
    """
    rows: list[dict[str, Any]] = []
    for i, text in enumerate([*QUERIES[:11], "other"]):
        for n in range(4 if i == 9 else 20):
            user, time = f"{i}-{n}", 20_777 * DAY + (i * 100 + n) * 60 * SECOND
            found = 0 if i == 0 and n % 2 else 10
            rows.append({
                "user_id": user, "time_us": time, "kind": "search", "query_id": user,
                "query": text.upper(), "returned": found, "total_hits": found, "status": "ok",
                "latency_us": (i + 1) * 10_000,
            })  # fmt: skip
            if i and n < 20 - i:
                rows.append({
                    "user_id": user, "time_us": time + SECOND, "kind": "click", "query_id": user,
                    "doc_id": "d", "position": i + 1,
                })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def log(log_of: LogOf) -> EventLog:
    return log_of(events())


def about(**more: Any) -> pl.DataFrame:
    ids = [f"q{i}" for i in range(12)]
    return pl.DataFrame({"query_id": ids, "text": QUERIES, **more})


def compared(log: EventLog, engine: str = "polars", **how: Any) -> OfflineCorrelation:
    usual: dict[str, Any] = {"queries": about(), "measures": ["RR"]}
    with open_engine(engine) as opened:
        return against(log, opened, QRELS, RUN, **(usual | how))


@pytest.mark.parametrize("engine", deep_but(["polars"], ["polars", "duckdb"]))
def test_queries_are_joined_by_what_was_typed(log: EventLog, engine: str) -> None:
    found = compared(log, engine)
    by_id = {row.query_id: row for row in found.queries}
    assert set(by_id) == {f"q{i}" for i in range(11)}
    third = by_id["q3"]
    # RR is 1/4; 17 of 20 clicked, at position 4; each search took 40 ms.
    assert third.offline == {"RR": pytest.approx(1 / 4)}
    assert (third.searches, third.users, third.position) == (20, 20, 4)
    assert third.online["CTR"].value == pytest.approx(17 / 20)
    assert third.online["CTR"].low is not None
    assert (third.p50_ms, third.p95_ms) == (pytest.approx(40), pytest.approx(40))
    # Nobody who saw results of query 0 clicked (10 searches); half of all 20 were in vain.
    assert by_id["q0"].online["CTR"].value == 0
    assert by_id["q0"].online["ZeroResults"].value == pytest.approx(0.5)
    assert (by_id["q0"].position, third.text) == (None, "Query 3")


def test_what_is_in_one_world_only_is_counted_and_in_no_number(log: EventLog) -> None:
    found = compared(log)
    assert (found.judged_only, found.searched_only, found.searched_only_searches) == (1, 1, 20)
    whole = found.slices[0]
    # 10 queries of 20 searches and one of 4; query 11 and "other" are in no number.
    assert (whole.queries, whole.searches) == (11, 204)
    assert whole.offline["RR"] == pytest.approx(sum(1 / (i + 1) for i in range(11)) / 11)
    weights = [4 if i == 9 else 20 for i in range(11)]
    assert whole.weighted["RR"] == pytest.approx(
        sum(w / (i + 1) for i, w in enumerate(weights)) / 204
    )
    clicks = sum(20 - i for i in range(1, 11) if i != 9) + 4
    # 10 searches of query 0 saw nothing, and count for no click-through.
    assert whole.online["CTR"].value == pytest.approx(clicks / 194)
    assert whole.online["ZeroResults"].value == pytest.approx(10 / 204)


def test_how_the_worlds_go_together(log: EventLog) -> None:
    found = compared(log, metrics=["CTR"])
    query, search = found.concord
    assert (found.enough, query.n, query.weighting, search.weighting) == (
        10,
        10,
        "queries",
        "searches",
    )
    # Ranks of judges 1 to 10; of users, query 0 is last and the others one better each.
    # Spearman: 1 - 6·(81 + 9·1) / (10·99) = 1 - 540/990; tau: (36 - 9) / 45.
    assert query.spearman == pytest.approx(1 - 540 / 990)
    assert query.kendall == pytest.approx(27 / 45)
    assert query.spearman_low is not None
    assert query.spearman_low < query.spearman < (query.spearman_high or 0)
    assert search.spearman == pytest.approx(query.spearman)  # all of the ten have 20 searches


def test_the_query_they_disagree_on_is_said_with_its_reason(log: EventLog) -> None:
    found = compared(log, metrics=["CTR"])
    assert [(row.kind, row.query_id) for row in found.discord] == [("judges", "q0")]
    only = found.discord[0]
    assert (only.offline_rank, only.online_rank, only.of, only.searches) == (1, 10, 10, 20)
    assert only.sentence == (
        "judges like it and users do not: “Query 0” has RR 1.000 (rank 1 of 10) and CTR 0.0 % "
        "(rank 10), in 20 searches"
    )
    assert only.reasons == ("50 % of its searches had no results (of all: 5 %)",)


def test_slices(log: EventLog) -> None:
    classes = ["a"] * 4 + ["b"] * 4 + [None] * 4
    found = compared(log, queries=about(**{"class": classes}), metrics=["CTR"])
    assert found.by == "class"
    assert [part.slice for part in found.slices] == [None, "a", "b"]
    first, second = found.slices[1:]
    assert (first.queries, first.searches, second.searches) == (4, 80, 80)
    # a: 19 + 18 + 17 of 70 who saw results (10 of query 0 did not); b: 16 + 15 + 14 + 13 of 80.
    assert first.online["CTR"].value == pytest.approx(54 / 70)
    assert second.online["CTR"].value == pytest.approx(58 / 80)
    assert second.online["CTR"].low is not None
    assert {row.slice for row in found.concord} == {None, "a", "b"}
    kinds = compared(log, queries=about(kind=["x"] * 12), by="kind", metrics=["CTR"])
    assert [part.slice for part in kinds.slices] == [None, "x"]
    with pytest.raises(UsageError, match="did you mean kind"):
        compared(log, queries=about(kind=["x"] * 12), by="kinds")
    json.dumps(found.to_dict(), allow_nan=False)


def test_two_queries_of_one_text_count_once(log: EventLog) -> None:
    twice = pl.concat([about(), pl.DataFrame({"query_id": ["q99"], "text": ["query 3"]})])
    with open_engine() as opened:
        found = against(
            log, opened, QRELS | {"q99": {"d3": 1}}, RUN | {"q99": {"d3": 1.0}},
            queries=twice, measures=["RR"],
        )  # fmt: skip
    assert [row.query_id for row in found.queries if row.text.lower() == "query 3"] == ["q3"]
    assert any("have the text of another" in note for note in found.notes)


def test_what_cannot_be_asked(log: EventLog) -> None:
    with pytest.raises(InputError, match="queries without texts"):
        compared(log, queries=None)
    with pytest.raises(UsageError, match="not a ratio per query"):
        compared(log, metrics=["Latency:p95"])
    with pytest.raises(UsageError, match="no direction"):
        compared(log, metrics=["SearchesPerUser"])
    with pytest.raises(UsageError, match="did you mean"):
        compared(log, measures=["nDCGG@10"])
    with pytest.raises(InputError, match="none of the judged queries was searched for"):
        compared(log, queries=about().with_columns(text=pl.col("text") + " never"))
    with pytest.raises(UsageError, match="expected one run, got 2"), open_engine() as opened:
        against(log, opened, QRELS, {"one": RUN, "two": RUN}, queries=about())
    with pytest.raises(InputError, match="without Conversion: the log has no purchases"):
        compared(log, metrics=["Conversion"])
