"""Slices by documents: what the relevant or the returned ones are like."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from karat.diagnosis.slices import slices_of
from karat.errors import InputError
from karat.measures import parse
from karat.measures.scores import Rules, score
from karat.tables import Documents, Qrels, Run
from karat.workflows.offline.evaluate import evaluate
from karat.workflows.offline.inputs import documents_for

Pairs = dict[str, dict[str, float]]
DOCUMENTS = Documents(
    pl.DataFrame(
        {
            "doc_id": ["d1", "d2", "d3", "d4"],
            "title": ["t"] * 4,
            "lang": ["en", "de", "en", ""],
            "year": [date(2020, 1, 1), date(2021, 1, 1), date(2020, 5, 5), None],
            "tags": [["x", "y"], ["x"], [], None],
        }
    )
)
JUDGED = {
    "a": {"d1": 1.0, "d2": 2.0},
    "b": {"d3": 1.0, "d2": 0.0, "d4": 1.0},
    "c": {"d4": 1.0},
    "d": {"elsewhere": 1.0},
}


def members(
    by: str,
    qrels: Pairs,
    *runs: Pairs,
    documents: Documents = DOCUMENTS,
    measure: str = "RR",
    **rules: Any,
) -> dict[str, str]:
    """The queries of each slice, their ids (of one letter) put together."""
    judged = Qrels.from_dict(qrels)
    scores = [score(Run.from_dict(run), judged, [parse(measure)], Rules(**rules)) for run in runs]
    found = slices_of(None, by, scores, documents, judged)
    assert len({name for name, _ in found}) == len(found)
    ids = np.array(scores[0].evidence.query_ids)
    return {name: "".join(ids[mask]) for name, mask in found}


def test_by_the_relevant_documents() -> None:
    found = members("relevant.lang", JUDGED, {"a": {"d9": 1.0}})
    assert found == {"de": "a", "en": "ab", "(none)": "cd"}
    assert list(found) == ["(none)", "de", "en"]
    years = members("relevant.year", JUDGED, {"a": {"d9": 1.0}})
    assert years == {"2020": "ab", "2021": "a", "(none)": "cd"}
    tags = members("relevant.tags", JUDGED, {"a": {"d9": 1.0}})
    assert tags == {"x": "a", "y": "a", "(none)": "bcd"}


def test_which_documents_are_relevant_is_said_by_the_lowest_grade_that_counts() -> None:
    run = {"a": {"d9": 1.0}}
    assert "en" in members("relevant.lang", JUDGED, run, rel=2.0)  # RR asks for 1
    assert members("relevant.lang", JUDGED, run, measure="RR(rel=2)", rel=2.0) == {"de": "a"}


def test_by_the_first_ten_of_any_run() -> None:
    one = {"a": {"d1": 1.0}, "b": {"d3": 1.0} | {f"x{i}": 2.0 for i in range(10)}}
    two = {"a": {"d2": 1.0}, "c": {"d2": 1.0} | {f"x{i}": 2.0 for i in range(9)}}
    # d3 is the eleventh for b, d2 the tenth for c; d got no answer.
    found = members("returned.lang", JUDGED, one, two)
    assert found == {"de": "ac", "en": "a", "(none)": "bd"}
    cut = members("returned.lang", JUDGED, one, two, depth=9)
    assert cut == {"de": "a", "en": "a", "(none)": "bcd"}


def test_queries_of_the_run_that_nobody_judged_are_not_there() -> None:
    run = {"a": {"d1": 1.0}, "zz": {"d2": 1.0}}
    found = members("returned.lang", JUDGED, run)
    assert found == {"en": "a", "(none)": "bcd"}


def test_bands_of_documents_are_those_of_the_file() -> None:
    documents = Documents(pl.DataFrame({"doc_id": [f"d{i}" for i in range(16)], "size": range(16)}))
    qrels = {"a": {"d0": 1.0, "d15": 1.0}}
    found = members("relevant.size", qrels, qrels, documents=documents)
    assert found == {"0 to 3": "a", "12 to 15": "a"}


def test_collapsed_runs_are_sliced_by_their_parents() -> None:
    documents = pl.DataFrame(
        {"doc_id": ["p", "p1", "p2"], "parent_id": [None, "p", "p"], "lang": ["en", "de", "fr"]}
    )
    rows = evaluate(
        {"a": {"p": 1}},
        {"a": {"p1": 2.0, "p2": 1.0}},
        "RR",
        documents=documents,
        collapse="parent_id",
        by="returned.lang",
    ).slices
    assert [(row.slice, row.value) for row in rows] == [("en", 1.0)]


def test_other_documents_are_told() -> None:
    with pytest.raises(
        InputError, match=r"the file has none of the relevant documents.* first is e1\n"
    ):
        members("relevant.lang", {"a": {"e2": 1.0, "e1": 1.0}}, {"a": {"x": 1.0}})


def test_documents_of_a_beir_folder(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "lang": "en"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\td\t1\n")
    for folder in (tmp_path, str(tmp_path)):
        rows = evaluate(folder, {"a": {"d": 1.0}}, "RR", by="relevant.lang").slices
        assert [row.slice for row in rows] == ["en"]
    assert documents_for(["lang"], None, tmp_path) is None
    assert documents_for(["kind, relevant.lang"], None, tmp_path) is not None
    assert documents_for(["relevant.lang"], None, tmp_path / "qrels") is None
    assert documents_for([], DOCUMENTS, None) is None
    assert documents_for(["lang"], DOCUMENTS, None) is DOCUMENTS
