"""karat clicks judge, karat clicks agree, and evaluating by clicks, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Typed
from tests.misleading_clicks import write_pages


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_pages(tmp_path / "pages.txt", pages=2_000, queries=10, swaps=0.5)
    return tmp_path / "pages.txt"


def test_a_file_of_grades_is_judged_evaluated_and_compared(typed: Typed, log: Path) -> None:
    done = typed("clicks judge pages.txt -o grades.parquet")
    assert "get a grade by PBM; written to grades.parquet" in done.out
    assert "Raw click rates overrate" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    found = json.loads(typed("clicks judge pages.txt -o g.csv --cut 0.2,0.5 -f json").out)
    assert found["origin"]["cuts"] == [0.2, 0.5]
    assert found["file"] == "g.csv"
    run = {f"q{i}": {"d1": 2.0, "d2": 1.0} for i in range(10)}
    Path("run.json").write_text(json.dumps(run), encoding="utf-8")
    other = {f"q{i}": {"d2": 2.0, "d1": 1.0} for i in range(10)}
    Path("other.json").write_text(json.dumps(other), encoding="utf-8")
    line = "evaluate grades.parquet run.json -m nDCG@2"
    plain = typed(line)
    assert "judgments of clicks (by PBM, cut at 0.1, 0.3, 0.6)" in plain.out
    assert json.loads(typed(f"{line} --judgments clicks -f json").out)["judgments"] == "clicks"
    assert "judgments of clicks" not in typed(f"{line} -f trec").out
    typed(f"{line} --judgments human", code=2)
    typed("evaluate g.csv run.json -m nDCG@2")
    compared = typed("compare grades.parquet run.json other.json -m nDCG@2 -f json")
    assert json.loads(compared.out)["settings"]["judgments"] == "clicks"


def test_exit_codes(typed: Typed, tmp_path: Path, log: Path) -> None:
    write_pages(tmp_path / "same.txt", pages=500, queries=5, swaps=0.0)
    done = typed("clicks judge same.txt -o g.parquet", code=3)
    assert done.err.startswith("karat: positions are not identified: documents at ranks 2-10")
    typed("clicks judge same.txt --model naive -o g.parquet")
    typed("clicks judge pages.txt --cut 0.1,x -o g.parquet", code=2)
    typed("clicks judge pages.txt --half-life 30d -o g.parquet", code=2)  # no times in this form
    assert "-o FILE, or karat init" in typed("clicks judge pages.txt", code=2).err
    assert "not written (preview)" in typed("clicks judge pages.txt --preview").out
    typed("clicks agree --clicks g.parquet", code=2)
    typed("clicks agree --clicks g.parquet --qrels x -w .", code=2)


def test_a_workspace(typed: Typed, log: Path) -> None:
    typed("init shop")
    queries = "query_id,text\n" + "".join(f"{i},q{i}\n" for i in range(5))
    Path("queries.csv").write_text(queries, encoding="utf-8")
    judged = "query_id,doc_id,grade,rater\n"
    judged += "".join(f"{i},d{doc},{doc % 4},ann\n" for i in range(5) for doc in range(10))
    Path("judged.csv").write_text(judged, encoding="utf-8")
    for name in ("queries.csv", "judged.csv"):
        typed(f"golden import {name} -w shop")
    assert "not written (preview)" in typed("clicks judge pages.txt -w shop --preview").out
    typed("clicks agree -w shop", code=2)
    write_pages(Path("other.txt"), pages=500, queries=5, swaps=0.5)
    other = Path("other.txt").read_text(encoding="utf-8").replace("q", "unknown ")
    Path("other.txt").write_text(other, encoding="utf-8")
    error = typed("clicks judge other.txt -w shop", code=2).err
    assert "none of its 5 queries is in the golden set" in error
    done = typed("clicks judge pages.txt -w shop --notes")
    assert "5 queries of the log (50 pairs) are not in the golden set: left out" in done.out
    agreed = typed("clicks agree -w shop --queue --notes")
    assert "clicks (PBM) agree with people: κ" in agreed.out
    assert "queued for one more rater" in agreed.out
    found = json.loads(typed("clicks agree -w shop -f json").out)
    assert found["all"]["kappa"]["pairs"] == 50
    assert "# " not in typed("clicks agree -w shop -f md").out
    run = {f"{i}": {"d1": 2.0, "d2": 1.0} for i in range(5)}
    Path("run.json").write_text(json.dumps(run), encoding="utf-8")
    values = {}
    for source in ("", "--judgments human", "--judgments clicks"):
        found = json.loads(typed(f"evaluate shop run.json -m nDCG@2 {source} -f json").out)
        values[source] = found["judgments"], found["results"][0]["value"]
    assert values[""] == values["--judgments human"]
    assert values["--judgments clicks"][0] == "clicks"
    assert values["--judgments clicks"][1] != values[""][1]
    done = typed("evaluate shop run.json --judgments llm", code=2)
    assert "has no judgments of llm" in done.err
