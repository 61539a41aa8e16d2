"""Simulated users of the shop's search, whose order does not follow relevance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.event_stores import keep_events

from karat.tables.online.events import EventLog

TEXTS = ("red shoes", "garden hose", "tall ladder", "wool hat")
RELEVANCE = {"d1": 0.3, "d2": 0.05, "d3": 0.02, "d4": 0.5, "d5": 0.9}
"""Chance of a click where it is looked at, for each query."""
EXAMINATION = (1.0, 0.4, 0.25, 0.2, 0.15)
"""By rank. Shown first, d1 is clicked 30 % of the time; shown last, d5 13 %."""
DAY = 86_400_000_000


def put_clicks(workspace: Path, *, swaps: bool = True, texts: tuple[str, ...] = TEXTS) -> EventLog:
    """Put eight days of searches into the event store of a workspace, 96 a day.

    Args:
        workspace: Its folder.
        swaps: Whether every third search shows the documents in another order; else none does.
        texts: The queries.
    """
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for at in range(768):  # from 2027-01-03 on
        docs = list(RELEVANCE)
        if swaps and at % 3 == 0:
            docs = [docs[i] for i in rng.permutation(len(docs))]
        time = 1_798_934_400_000_000 + (at // 96) * DAY + (at % 96) * 600_000_000
        own = {"user_id": f"user {at}", "query_id": f"s{at}"}
        query = texts[at % len(texts)]
        rows.append(own | {"kind": "search", "time_us": time, "query": query, "hits": docs})
        for rank, doc in enumerate(docs, 1):
            if rng.random() < EXAMINATION[rank - 1] * RELEVANCE[doc]:
                click = {"kind": "click", "doc_id": doc, "position": rank}
                rows.append(own | click | {"time_us": time + rank * 1_000_000})
    frame = pl.DataFrame(rows, schema_overrides={"position": pl.Int32}, infer_schema_length=None)
    return keep_events(workspace / "events", frame)
