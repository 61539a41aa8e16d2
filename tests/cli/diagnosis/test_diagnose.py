"""``karat diagnose``, as somebody types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.choosing import deep_but

from karat.store.sql import pairs
from karat.workflows.workspace.workspace import open_workspace

Typed = Callable[..., Any]  # conftest.py
STAGES = "--stage bm25=bm25.trec --stage dense:retrieve=dense.trec --stage fused=fused.trec"


@pytest.fixture
def folder(tmp_path: Path, typed: Typed) -> Path:
    """Ten queries: document a is relevant; bm25 lacks it for half of them, dense always."""

    def trec(name: str, of: Callable[[int], list[str]]) -> None:
        rows = (
            f"q{n} Q0 {doc} {rank} {10 - rank} {name}"
            for n in range(10)
            for rank, doc in enumerate(of(n), 1)
        )
        (tmp_path / f"{name}.trec").write_text("\n".join(rows) + "\n")

    trec("bm25", lambda n: ["x", "a"] if n % 2 else ["x", "y"])
    trec("dense", lambda _n: ["z", "x"])
    trec("fused", lambda n: ["x", "z", "a"] if n % 2 else ["x", "z", "y"])
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 a 1\n" for n in range(10)))
    (tmp_path / "queries.csv").write_text(
        "query_id,text,kind\n"
        + "".join(f"q{n},text {n},{'odd' if n % 2 else 'even'}\n" for n in range(10))
    )
    return tmp_path


def test_the_contract_of_its_json(folder: Path, typed: Typed) -> None:
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2 --queries queries.csv --by kind"
    found = json.loads(typed(f"{line} --format json").out)
    assert found["pipeline"] == "bm25, dense → fused"
    assert found["stages"][0] == {
        "stage": "bm25",
        "kind": "retrieve",
        "relevant_in": 10,
        "relevant_out": 5,
        "lost": 5,
        "returned": 2.0,
        "ceiling": {"nDCG@2": 0.5},
        "latency_us": None,
        # 1 of 1 lost in 5 of 10 queries: .5 with a deviation of .527, and t(9) = 2.262.
        "lost_share": 0.5,
        "ci_low": pytest.approx(0.5 - 2.262 * 0.527 / 10**0.5, abs=1e-3),
        "ci_high": pytest.approx(0.5 + 2.262 * 0.527 / 10**0.5, abs=1e-3),
    }
    # bm25 misses the documents of one kind of query, and a part has no other stages.
    assert {part: [row["lost"] for row in own] for part, own in found["stages_by"].items()} == {
        "even": [5, 5, 0, 0], "odd": [0, 5, 0, 5],
    }  # fmt: skip
    assert found["stages_by"]["odd"][0]["ceiling"] == {"nDCG@2": 1.0}
    assert [(row["stage"], row["lost"]) for row in found["stages"]] == [
        ("bm25", 5), ("dense", 10), ("fused", 0), ("served", 5),
    ]  # fmt: skip
    assert {row["mode"]: row["queries"] for row in found["modes"]} == {"candidate": 5, "scoring": 5}
    assert set(found["fixes"][0]) == {
        "stage", "change", "measure", "gain", "ci_low", "ci_high", "bound", "n"
    }  # fmt: skip
    perfect = {fix["change"]: fix["gain"] for fix in found["fixes"]}
    assert perfect["perfect fusion"] == pytest.approx(0.5)
    assert perfect["perfect retrieval"] == pytest.approx(0.5)
    first = found["queries"][0]
    assert (first["value"], first["doc_id"], first["loss"]) == (0.0, "a", 1.0)
    assert set(first) == {
        "query_id", "value", "mode", "stage", "evidence", "doc_id", "loss", "text",
        "baseline_value",
    }  # fmt: skip
    assert found["slices"]["even"][0]["mode"] == "candidate"
    assert found["slices"]["odd"][0]["mode"] == "scoring"


def test_the_table_at_80_columns(folder: Path, typed: Typed) -> None:
    done = typed(f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "nDCG@2 of fused is 0.000 over 10 queries. 10 queries fail." in done.out
    assert "pipeline: bm25, dense → fused" in done.out
    assert "Not retrieved" in done.out


def test_a_trace_written_by_ones_own_pipeline(folder: Path, typed: Typed) -> None:
    import karat

    for n in range(10):
        with karat.trace("trace.jsonl", f"q{n}") as t:
            with t.stage("bm25") as s:
                s.ranked([("x", 2.0), ("a", 1.0)])
            with t.stage("top", "rerank") as s:
                s.ranked(["x"])
    (folder / "top.trec").write_text("".join(f"q{n} Q0 x 1 1 top\n" for n in range(10)))
    done = typed("diagnose qrels.txt top.trec --trace trace.jsonl --format json")
    (mode,) = json.loads(done.out)["modes"]
    assert (mode["mode"], mode["share"]) == ("scoring", 1.0)
    one = json.loads(
        typed("diagnose qrels.txt top.trec --trace trace.jsonl --query q3 -f json").out
    )
    assert one["documents"][0]["ranks"] == {"bm25": 2, "top": None, "served": None}
    assert one["documents"][0]["lost_at"] == "top"


def test_a_report_is_one_page_with_the_road_of_each_worst_query(folder: Path, typed: Typed) -> None:
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2 --queries queries.csv --by kind"
    done = typed(f"{line} --report page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count("<details>") == 10
    for words in (
        "<title>Why queries of fused fail</title>", "default-src 'none'; style-src 'sha256-",
        "Pipeline: bm25, dense → fused", "What a fix is worth", "Why queries fail: even",
        'aria-label="returned 5 of 10, lost 5"', "Ranks of the relevant documents of q0",
    ):  # fmt: skip
        assert words in page, words
    assert " ".join(done.out.split("pipeline")[0].split()) in page  # the same summary
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert "standard output" in typed(f"{line} --report -", code=2).err
    assert "--open needs a report" in typed(f"{line} --open", code=2).err


def test_exit_codes(folder: Path, typed: Typed, *, deep: bool) -> None:
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2"
    typed(f"{line} --fail-on candidate=0.6")
    typed(f"{line} --fail-on candidate=0.4", code=1)
    if deep:
        typed(f"{line} --fail-on missing_content")
        typed(f"{line} --fail-on scoring --below 0", code=0)


@pytest.mark.parametrize(
    ("more", "error"),
    deep_but(
        {
            "--fail-on candidates",
            "--stage bm25",
            "--trace qrels.txt",
            "--query q77 --stage a=bm25.trec",
        },
        [
            ("--fail-on candidates", "did you mean candidate?"),
            ("--fail-on candidate=2", "not a share from 0 to 1"),
            ("--stage bm25", "--stage bm25=bm25.trec"),
            ("--stage a:retriever=bm25.trec", "did you mean retrieve?"),
            ("--stage a=bm25.trec --stage a=dense.trec", "the stage a is given twice"),
            ("--trace none.jsonl", "none.jsonl"),
            ("--trace qrels.txt", "not JSON"),
            ("--stage a=bm25.trec --trace qrels.txt", "a trace has its stages"),
            ("--queries queries.csv --by kinds", "did you mean kind?"),
            ("--query q77 --stage a=bm25.trec", "query 'q77' is not diagnosed"),
            ("-m nDGC@10", "did you mean nDCG"),
        ],
    ),
)
def test_mistakes(more: str, error: str, folder: Path, typed: Typed) -> None:
    done = typed(f"diagnose qrels.txt fused.trec {more}", code=2)
    assert error in done.err
    assert "Traceback" not in done.err


def test_an_index_is_asked_for_what_no_stage_has(folder: Path, typed: Typed) -> None:
    import sqlite3

    with sqlite3.connect(folder / "docs.db") as made:
        made.execute("CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, text)")
        made.execute("INSERT INTO docs VALUES ('x', 'x')")
    made.close()
    (folder / "karat.toml").write_text(
        '[engine.fts]\nkind = "sqlite"\nurl = "docs.db"\nindex = "docs"\n'
        'template = "SELECT id FROM docs WHERE docs MATCH {words}"\n'
    )
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2 --engine fts -f json"
    modes = {row["mode"]: row["queries"] for row in json.loads(typed(line).out)["modes"]}
    # a is in no list of five queries; the other five returned it, so that the index has it.
    assert modes == {"candidate": 5, "scoring": 5}
    (folder / "bm25.trec").write_text("".join(f"q{n} Q0 x 1 1 b\n" for n in range(10)))
    (folder / "fused.trec").write_text("".join(f"q{n} Q0 x 1 1 b\n" for n in range(10)))
    modes = {row["mode"]: row["queries"] for row in json.loads(typed(line).out)["modes"]}
    assert modes == {"missing_content": 10}


@pytest.mark.deep  # to a file: test_queries_that_nothing_answers
def test_documents_to_review_go_to_a_file_and_to_the_queue(folder: Path, typed: Typed) -> None:
    import csv

    with (folder / "qrels.txt").open("a") as qrels:
        qrels.write("".join(f"q{n} 0 x 0\n" for n in range(10)))
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2"
    typed(f"{line} --review review.csv")
    with (folder / "review.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # Each query lacks a in its top two, which are x (judged 0) and z (not judged).
    assert [[r[n] for n in ("doc_id", "list", "rank", "grade", "mode")] for r in rows[:3]] == [
        ["a", "missed", "", "1.0", "candidate"],
        ["x", "bad", "1", "0.0", "candidate"],
        ["z", "unjudged", "2", "", "candidate"],
    ]
    odd = [row for row in rows if row["query_id"] == "q1"]
    assert [odd[0][n] for n in ("rank", "mode", "stage")] == ["3", "scoring", "fused"]
    assert odd[1]["reason"] == f"above a: {odd[0]['reason']}"
    assert len(rows) == 30
    typed(f"{line} --below 0 --review none.jsonl")
    assert (folder / "none.jsonl").read_text() == ""
    # With a grade of 2 as the lowest relevant one nothing is missed, but a is served too low.
    typed(f"{line} --rel 2 --below 1.1 --review none.jsonl")
    assert '"missed"' not in (folder / "none.jsonl").read_text()
    typed("init shop")
    typed("golden import queries.csv -w shop")
    made = json.loads(typed("golden queue review.csv -w shop --format json").out)
    assert (made["chosen"], made["added"]) == (30, 30)
    with open_workspace(folder / "shop", now=1) as opened, opened.store.read() as connection:
        queued = pairs.frame(connection, opened.golden.id)
    assert queued["chosen_by"][:2].to_list() == [
        "diagnosis: missed, candidate",
        "diagnosis: bad, candidate",
    ]
    again = typed(f"{line} --workspace shop --queue")
    assert "karat: 30 documents to review, 0 new in the queue" in again.err
    assert "--workspace DIR" in typed(f"{line} --queue", code=2).err
    assert "would mix" in typed(f"{line} --review - -f json", code=2).err


def test_documents_to_review_go_into_the_queue(folder: Path, typed: Typed) -> None:
    typed("init shop")
    typed("golden import queries.csv -w shop")
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2 --workspace shop --queue"
    assert "karat: 30 documents to review, 30 new in the queue" in typed(line).err
    with open_workspace(folder / "shop", now=1) as opened, opened.store.read() as connection:
        queued = pairs.frame(connection, opened.golden.id)
    assert queued["chosen_by"][0] == "diagnosis: missed, candidate"


def test_queries_that_nothing_answers(folder: Path, typed: Typed) -> None:
    """What is served for a query marked no_answer shows that content is missing."""
    (folder / "queries.csv").write_text(
        "query_id,text,kind,no_answer\n"
        "q0,text 0,even,\nq1,text 1,odd,\nn1,why,none,true\nn2,how,none,true\n"
    )
    with (folder / "fused.trec").open("a") as run:
        run.write("n1 Q0 x 1 2 fused\nn1 Q0 y 2 1 fused\n")  # and nothing for n2
    line = f"diagnose qrels.txt fused.trec {STAGES} -m nDCG@2 --queries queries.csv"
    before = json.loads(typed(f"{line} -f json --review review.jsonl").out)
    assert (before["n"], before["failing"], before["value"]) == (10, 11, 0.0)
    row = next(row for row in before["queries"] if row["query_id"] == "n1")
    assert (row["value"], row["mode"], row["loss"]) == (None, "missing_content", 0.0)
    assert row["evidence"] == "it is marked no_answer, and 2 documents are served"
    assert all(stage["relevant_in"] <= 10 for stage in before["stages"])
    reviewed = [json.loads(each) for each in (folder / "review.jsonl").read_text().splitlines()]
    assert [(r["doc_id"], r["list"]) for r in reviewed if r["query_id"] == "n1"] == [
        ("x", "unjudged"),
        ("y", "unjudged"),
    ]
    assert "n1" in typed(f"{line} --below 0 --by kind").out
    assert "n1" in typed(f"{line} --query n1").out
