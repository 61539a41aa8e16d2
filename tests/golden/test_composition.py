from __future__ import annotations

import polars as pl

from karat.golden.composition import composition


def queries(n: int, **columns: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"query_id": [str(i) for i in range(n)], **columns})


def test_counts_and_shares_by_every_attribute() -> None:
    found = composition(
        queries(
            4,
            text=["a", "a b", "c  d", "one two three four five six"],
            weight=[1.0, 1.0, 1.0, 5.0],
            band=["head", "tail", "tail", None],
            kind=["x", "x", "x", "y"],
        )
    )
    assert found.frame.rows() == [
        # attribute, value, queries, share, share of the weight (1 + 1 + 1 + 5 = 8)
        ("band", "tail", 2, 0.5, 0.25),
        ("band", "head", 1, 0.25, 0.125),
        ("band", None, 1, 0.25, 0.625),
        ("words", "1", 1, 0.25, 0.125),
        ("words", "2", 2, 0.5, 0.25),
        ("words", "5 or more", 1, 0.25, 0.625),
        ("kind", "x", 3, 0.75, 0.375),
        ("kind", "y", 1, 0.25, 0.625),
    ]


def test_without_weights_there_is_no_share_of_them() -> None:
    found = composition(queries(2, no_answer=[True, False], code=["u", "v"]))
    assert found.frame["weight"].null_count() == found.frame.height == 4
    assert sorted(found.frame["value"]) == ["false", "true", "u", "v"]


def test_an_attribute_of_many_values_is_left_out() -> None:
    found = composition(queries(30, name=[f"n{i}" for i in range(30)]))
    assert found.frame.is_empty()


def test_what_is_lacking_is_said() -> None:
    few = composition(queries(3, band=["head"] * 3, origin=["synthetic", "log", "log"]))
    assert few.queries == 3
    assert [said.split(":")[0] for said in few.warnings] == [
        "3 queries are too few",
        "1 of 3 queries are synthetic (33%)",
        "No query is from the tail, where search fails most often.",
        "No query is marked no_answer",
    ]
    assert few.warnings[1].endswith("add queries from a log.")
    whole = composition(
        queries(25, band=["tail"] * 25, origin=["log"] * 25, no_answer=[True] + [False] * 24)
    )
    assert whole.warnings == ()


def test_no_queries_at_all() -> None:
    found = composition(queries(0))
    assert found.frame.is_empty()
    assert found.warnings[0].startswith("0 queries are too few")
