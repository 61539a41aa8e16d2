"""Interleaving experiments: the better ranking is found, and equal ones are not."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

import karat
from karat.errors import UsageError
from karat.workflows.experiments.interleaving import analyze_interleaving

START = 1_790_000_000_000_000  # 2026-09-21
DOCS = [f"d{number}" for number in range(12)]
RELEVANT = {doc: 0.7 if number < 4 else 0.1 for number, doc in enumerate(DOCS)}
BETTER = sorted(DOCS, key=lambda doc: -RELEVANT[doc])
WORSE = [*DOCS[4:8], *DOCS[:4], *DOCS[8:]]


def log(a: list[str], b: list[str], *, users: int = 250, fair: bool = True) -> pl.DataFrame:
    """Searches of interleaved rankings, by users who read down and click what is relevant."""
    draws = random.Random(7)
    rows: list[dict[str, Any]] = []
    for user in range(users):
        for at in range(1 + draws.randrange(4)):
            query, time = f"{user}.{at}", START + user * 1_000_000 + at * 7_200_000_000
            made = karat.interleave(a, b, k=8, seed=draws.random().hex() if fair else "q")
            search = {"user_id": f"u{user}", "timestamp": time, "query_id": query}
            rows.append(
                {**search, "action_name": "search", "user_query": f"text {at}", "returned": 8,
                 "teams": made.mark}
            )  # fmt: skip
            for place, doc in enumerate(made.doc_ids):
                if draws.random() < 0.75**place and draws.random() < RELEVANT[doc]:
                    later = {**search, "timestamp": time + (place + 1) * 40_000_000}
                    rows.append(
                        {**later, "action_name": "click", "object_id": doc, "position": place + 1}
                    )
                    if doc == "d0":
                        later = {**later, "timestamp": later["timestamp"] + 1_000_000}  # type: ignore[operator]
                        rows.append({**later, "action_name": "purchase", "object_id": doc})
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.mark.parametrize("credit", ["click", "satisfied"])
def test_the_better_ranking_is_preferred(credit: Any) -> None:
    found = analyze_interleaving(log(WORSE, BETTER), credit=credit)
    assert (found.verdict, found.exit_code) == ("pass", 0)
    assert found.ci_low is not None
    assert found.cs_low is not None
    assert found.cs_low < found.ci_low
    assert found.ci_low > 0.5
    back = analyze_interleaving(log(BETTER, WORSE), credit=credit)
    assert (back.verdict, back.exit_code) == ("fail", 1)
    assert found.wins_a + found.wins_b + found.ties == found.searches


def test_points_by_hand() -> None:
    """Two searches: A's click and two of B's; then a click on a neutral document."""
    rows = [
        ("u1", 0, "search", "1", None, "-ABB", None),
        ("u1", 5, "click", "1", 2, None, "x"),
        ("u1", 50, "click", "1", 3, None, "y"),
        ("u1", 95, "click", "1", 4, None, "z"),
        ("u2", 0, "search", "2", None, "-BAB", None),
        ("u2", 5, "click", "2", 1, None, "w"),
    ]
    names = ["user_id", "timestamp", "action_name", "query_id", "position", "teams", "object_id"]
    frame = pl.DataFrame(rows, names, orient="row").with_columns(
        pl.col("timestamp") * 1_000_000 + START, user_query=pl.lit("q"), returned=pl.lit(4)
    )
    found = analyze_interleaving(frame)
    assert (found.wins_a, found.wins_b, found.ties) == (0, 1, 1)
    assert found.share_b == 0.75
    assert found.decided_b == found.users_b == 1.0  # the other user has a tie
    assert [(each.query, each.wins_a, each.wins_b) for each in found.queries] == [("q", 0, 1)]


@pytest.mark.parametrize(("users", "verdict"), [(3, "cannot_tell"), (40, "pass")])
def test_users_who_all_prefer_the_same(users: int, verdict: str) -> None:
    """There is no spread between them: the exact sequence of users decides."""
    rows = [
        (f"u{n}", at, action, f"{n}", place, teams, doc)
        for n in range(users)
        for teams in (("ABAB", "BABA")[n % 2],)
        for at, action, place, doc in (
            (0, "search", None, None),
            (5, "click", teams.index("B") + 1, "x"),
        )
    ]
    names = ["user_id", "timestamp", "action_name", "query_id", "position", "teams", "object_id"]
    frame = pl.DataFrame(rows, names, orient="row").with_columns(
        pl.col("timestamp") * 1_000_000 + START, user_query=pl.lit("q"), returned=pl.lit(4)
    )
    found = analyze_interleaving(frame)
    assert (found.wins_a, found.wins_b, found.share_b) == (0, users, 1.0)
    assert found.verdict == verdict


def test_purchases() -> None:
    found = analyze_interleaving(log(WORSE, BETTER), credit="purchase")
    clicks = analyze_interleaving(log(WORSE, BETTER))
    assert 0 < found.wins_a + found.wins_b < clicks.wins_a + clicks.wins_b


def test_equal_rankings_are_not_told_apart() -> None:
    other = [*BETTER[:2], BETTER[3], BETTER[2], *BETTER[4:]]
    found = analyze_interleaving(log(BETTER, other))
    assert (found.verdict, found.exit_code) == ("cannot_tell", 3)


def test_a_draft_that_is_not_random() -> None:
    found = analyze_interleaving(log(WORSE, BETTER, fair=False))
    assert (found.verdict, found.health[0].state) == ("unhealthy", "fail")


def test_no_teams() -> None:
    frame = log(WORSE, BETTER, users=5).drop("teams")
    with pytest.raises(UsageError, match="no interleaved searches"):
        analyze_interleaving(frame)
