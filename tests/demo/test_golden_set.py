"""The golden set: whole, in range, and about documents that exist."""

from __future__ import annotations

from collections import Counter

import polars as pl

from karat.demo import _golden_set
from karat.tables.qrels import Qrels


def test_eighty_eight_queries_with_a_need_each() -> None:
    queries = _golden_set.queries()
    assert [query.query_id for query in queries] == [f"q{n:02}" for n in range(1, 89)]
    assert len({query.text for query in queries}) == 88
    assert all(query.need.endswith(".") and query.origin == "written" for query in queries)
    kinds = Counter(query.kind for query in queries)
    assert set(kinds) == {"exact_name", "misspelt", "ambiguous", "task", "no_answer"}
    assert min(kinds.values()) >= 8
    assert {query.frequency for query in queries} == {"head", "torso", "tail"}


def test_queries_without_an_answer_are_marked() -> None:
    for query in _golden_set.queries():
        assert query.no_answer == (query.kind == "no_answer"), query


def test_grades_are_0_to_3_and_given_once() -> None:
    judgments = _golden_set.judgments()
    assert {judgment.grade for judgment in judgments} == {0, 1, 2, 3}
    pairs = [(judgment.query_id, judgment.doc_id) for judgment in judgments]
    assert len(set(pairs)) == len(pairs)
    assert {query_id for query_id, _ in pairs} <= {
        query.query_id for query in _golden_set.queries()
    }


def test_every_query_has_a_good_answer_and_a_bad_one() -> None:
    grades: dict[str, list[int]] = {}
    for judgment in _golden_set.judgments():
        grades.setdefault(judgment.query_id, []).append(judgment.grade)
    for query in _golden_set.queries():
        best, worst = max(grades[query.query_id]), min(grades[query.query_id])
        assert best < 2 if query.no_answer else best >= 2, query
        assert worst == 0, query


def test_the_page_says_what_the_data_hold() -> None:
    page = "\n".join(_golden_set.lines("README.md"))
    judgments, second = _golden_set.judgments(), _golden_set.second_judgments()
    assert f"{len(_golden_set.queries())} queries" in page
    assert f"{len(judgments):,} grades" in page
    graders = Counter(judgment.grader for judgment in judgments)
    assert [graders[name] for name in "abcde"] == [624, 288, 301, 292, 296]
    first = {(j.query_id, j.doc_id): j.grade for j in judgments}
    pairs = Counter((first[j.query_id, j.doc_id], j.grade) for j in second)
    assert len(second) == len({(j.query_id, j.doc_id) for j in second}) == 200
    assert {j.grader for j in second} == {"f"}
    for grade in range(4):
        row = " | ".join(str(pairs[grade, other]) for other in range(4))
        assert f"| {grade} | {row} |" in page


def test_the_judged_documents_are_in_this_python(library: pl.DataFrame) -> None:
    # All are in Python 3.11, 3.12 and 3.13 on Linux; elsewhere a few may be lacking (os.fwalk).
    judged = {judgment.doc_id for judgment in _golden_set.judgments()}
    assert len(judged - set(library["doc_id"])) <= 0.02 * len(judged)


def test_the_judgments_are_qrels() -> None:
    rows: dict[str, dict[str, float]] = {}
    for judgment in _golden_set.judgments():
        rows.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.grade
    assert Qrels.from_dict(rows).frame.height == len(_golden_set.judgments())
