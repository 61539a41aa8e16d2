"""Judgments given here are told from those that a file brought."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from karat.store.sql import golden_sets, imports, judgments, queries
from karat.store.sql.judgment_sources import given_in_karat
from karat.store.sql.opening import open_store


def test_what_a_file_brought_was_not_given_here(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'karat.db'}", make=True)
    with store.begin() as c:
        one = golden_sets.make(
            c, "one", scale=(0, 3), grades={0: "no", 3: "yes"}, salt="s", guideline="g", now=1
        )
        queries.put(c, one, pl.DataFrame({"query_id": ["q1"], "text": ["a"]}), 1)
        brought = imports.put(c, one, file="f", format="csv", sha256="", report={}, now=1)
        for doc, import_id in (("d1", None), ("d2", brought)):
            fact = {"query_id": "q1", "doc_id": doc, "grade": 1.0, "rater": "ann"}
            frame = pl.DataFrame([fact | {"source": "human", "time_us": 1}])
            judgments.record(c, one, frame, import_id)
    with store.read() as c:
        there = judgments.current(c, one).frame
        own = there.join(given_in_karat(c, one).to_frame(), on="judgment")
        assert own["doc_id"].to_list() == ["d1"]
        assert given_in_karat(c, one + 1).is_empty()
    store.dispose()
