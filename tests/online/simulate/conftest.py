"""A small golden set with two runs, and what people did with it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.online.simulate.behaviours import Habits
from karat.online.simulate.people import Simulated, simulate
from karat.online.simulate.population import populate
from karat.online.simulate.shelf import Shelf, stock
from karat.tables import Qrels, Queries, Run

TEXTS = {
    "q1": "copy a file",
    "q2": "read lines of text",
    "q3": "sort list by key",
    "q4": "timeout",
    "q5": "no such thing at all",
}
FIRST_DAY = 20_752  # Monday, 2026-10-26


@pytest.fixture(scope="session")
def shelf() -> Shelf:
    """Five queries; q5 finds nothing in either arm, and q4 asks for itself by one word."""
    queries = Queries(
        pl.DataFrame(
            {
                "query_id": list(TEXTS),
                "text": list(TEXTS.values()),
                "kind": ["task", "task", "task", "word", "none"],
            }
        )
    )
    # Places 0, 3 and 7 of each ranking are graded 3, 2 and 1.
    qrels = {f"q{n}": {f"d{n}-0": 3.0, f"d{n}-3": 2.0, f"d{n}-7": 1.0} for n in range(1, 5)}
    near = {f"q{n}": {f"d{n}-{i}": 100.0 - i for i in range(25)} for n in range(1, 5)}
    # The other arm has them upside down within the first ten.
    far = {f"q{n}": {f"d{n}-{i}": 100.0 - (9 - i) for i in range(10)} for n in range(1, 5)}
    return stock(
        Qrels.from_dict(qrels),
        [Run.from_dict(near, name="near"), Run.from_dict(far, name="far")],
        np.random.default_rng(3),
        queries=queries,
        attributes=["kind"],
    )


@pytest.fixture(scope="session")
def month(shelf: Shelf) -> Simulated:
    """Four weeks of about 8,000 sessions in which everything occurs; every page says when left."""
    rng = np.random.default_rng(11)
    habits = Habits(
        carts=0.3,
        answers=0.4,
        heartbeats=True,
        latency_ms=(50.0, 200.0),
        errors=(0.02, 0.08),
        timeouts=(0.01,),
    )
    people = populate(1_500, 2, rng, hides=1.0)
    return simulate(
        shelf, rng, first_day=FIRST_DAY, days=28, people=people, sessions=300, habits=habits
    )
