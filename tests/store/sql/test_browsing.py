"""What pages list: beginnings of documents, one of them, and which editions hold a query."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from karat.store.sql import browsing, documents, editions, golden_sets, imports, queries
from karat.store.sql.opening import open_store


def test_lists_read_no_more_than_they_show(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'karat.db'}", make=True)
    with store.begin() as c:
        one, other = (
            golden_sets.make(
                c, name, scale=(0, 3), grades={0: "no", 3: "yes"}, salt="s", guideline="g", now=1
            )
            for name in ("one", "other")
        )
        shown = {"doc_id": ["d1", "d2"], "title": ["T", None], "text": ["x" * 500, None]}
        documents.put(c, one, pl.DataFrame(shown), 1)
        asked = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["a", "b"]})
        queries.put(c, one, asked, 1)
        grades = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "grade": [1.0]})
        for name, held in (("first", asked), ("second", asked.head(1))):
            sha256 = name
            editions.freeze(
                c, one, name=name, sha256=sha256, about={}, queries=held, grades=grades, now=2
            )
        for at, file in enumerate(("a.csv", "b.csv")):
            imports.put(c, one, file=file, format="csv", sha256="", report={}, now=at)
    with store.read() as c:
        begun = browsing.beginnings(c, one, ["d1", "d2", "d9"], 3)
        assert begun.rows() == [("d1", "T", "xxx"), ("d2", None, None)]
        assert browsing.documents(c, one, "title").rows() == [("d1", "T"), ("d2", None)]
        assert browsing.documents(c, one, "sha256")["sha256"].n_unique() == 2
        assert browsing.documents(c, one, "text", "url", "sha256", doc_ids=["d2", "d9"])[
            "doc_id"
        ].to_list() == ["d2"]
        found = browsing.one_document(c, one, "d1")
        assert found is not None
        assert len(found["text"]) == 500
        assert browsing.one_document(c, other, "d1") is None
        assert dict(browsing.editions_of_queries(c, one).iter_rows()) == {"q1": 2, "q2": 1}
        assert browsing.editions_of_query(c, one, "q1") == ["first", "second"]
        assert browsing.editions_of_query(c, other, "q1") == []
        assert browsing.imports(c, one)["file"].to_list() == ["b.csv", "a.csv"]
        assert not browsing.documents(c, other, "title").height
    store.dispose()
