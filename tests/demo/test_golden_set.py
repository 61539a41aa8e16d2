"""The golden set: whole, in range, and about documents that exist."""

from __future__ import annotations

from collections import Counter

import polars as pl

from karat.demo import golden_set
from karat.tables.qrels import Qrels


def test_thirty_queries_with_a_need_each() -> None:
    queries = golden_set.queries()
    assert [query.query_id for query in queries] == [f"q{n:02}" for n in range(1, 31)]
    assert len({query.text for query in queries}) == 30
    assert all(query.need.endswith(".") and query.origin == "written" for query in queries)
    kinds = Counter(query.kind for query in queries)
    assert kinds == {"exact_name": 5, "misspelt": 4, "ambiguous": 4, "task": 17}


def test_grades_are_0_to_3_and_given_once() -> None:
    judgments = golden_set.judgments()
    assert {judgment.grade for judgment in judgments} == {0, 1, 2, 3}
    pairs = [(judgment.query_id, judgment.doc_id) for judgment in judgments]
    assert len(set(pairs)) == len(pairs) == 624  # as golden/README.md says


def test_every_query_has_a_good_answer_and_a_bad_one() -> None:
    judgments = golden_set.judgments()
    for query in golden_set.queries():
        grades = [judgment.grade for judgment in judgments if judgment.query_id == query.query_id]
        assert max(grades) >= 2, query
        assert min(grades) == 0, query


def test_the_judged_documents_are_in_this_python(library: pl.DataFrame) -> None:
    # All are in Python 3.11, 3.12 and 3.13 on Linux; elsewhere a few may be lacking (os.fwalk).
    judged = {judgment.doc_id for judgment in golden_set.judgments()}
    assert len(judged - set(library["doc_id"])) <= 0.02 * len(judged)


def test_the_judgments_are_qrels() -> None:
    rows: dict[str, dict[str, float]] = {}
    for judgment in golden_set.judgments():
        rows.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.grade
    assert Qrels.from_dict(rows).frame.height == 624
