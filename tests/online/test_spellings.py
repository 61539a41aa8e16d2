"""How queries were typed: spellings that are one, and which stands for them."""

from __future__ import annotations

import polars as pl

from karat.online.reformulation import most_frequent


def test_spellings_of_one_text_count_together_and_the_most_frequent_stands_for_them() -> None:
    pairs = pl.DataFrame({
        "query_key": ["cms"] * 4, "key": ["pump", "cms 2", "pump", "pump"],
        "text": ["Pump", "CMS 2", "pump", "Pump"], "count": [1, 3, 2, 2],
    })  # fmt: skip
    # "Pump" 3 and "pump" 2 are one, and spelt as most often.
    assert most_frequent(pairs) == {"cms": [("Pump", 5), ("CMS 2", 3)]}


def test_of_equals_the_first_by_its_text() -> None:
    pairs = pl.DataFrame({
        "query_key": ["b", "a", "a"], "key": ["x", "z", "y"], "text": ["X", "Z", "Y"],
        "count": [1, 2, 2],
    })  # fmt: skip
    assert most_frequent(pairs) == {"a": [("Y", 2), ("Z", 2)], "b": [("X", 1)]}
