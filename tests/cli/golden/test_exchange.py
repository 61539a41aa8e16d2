"""``karat golden import`` and ``export``, as somebody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.formats import read_run

Typed = Callable[..., Any]  # conftest.py

HEAD = "query_id,query,doc_id,grade,rater\n"


@pytest.fixture
def said(typed: Typed, tmp_path: Path) -> Path:
    """A workspace, and a sheet of two judgments by ann that is in it."""
    typed("init shop")
    file = tmp_path / "said.csv"
    file.write_text(f"{HEAD}q1,door,d1,2,ann\nq1,door,d2,1,ann\n", encoding="utf-8")
    assert "1 new query, 2 new judgments" in typed("golden import said.csv -w shop").out
    return file


def test_an_import_as_json_says_what_eyes_are_told(
    typed: Typed, said: Path, tmp_path: Path
) -> None:
    said.write_text(f"{HEAD}q1,door,d1,3,ann\nq1,door,d3,1,ben\n", encoding="utf-8")
    (tmp_path / "other.csv").write_text(f"{HEAD}q2,wall,d1,0,ann\n", encoding="utf-8")
    done = typed("golden import said.csv other.csv -w shop --json")
    first, second = json.loads(done.out)
    assert first == {
        "file": "said.csv",
        "format": "csv",
        "queries": 0,
        "documents": 0,
        "judgments": 1,
        "corrected": 1,
        "changed": 0,
        "runs": [],
        "kept": ["2 judgments of 1 query and 2 documents, by 2 raters", "1 query with text"],
        "assumed": [],
        "lost": [],
    }
    assert (second["file"], second["queries"]) == ("other.csv", 1)
    assert done.err == ""
    said.write_text(f"{HEAD}q1,door,d1,0,ann\n", encoding="utf-8")
    told = typed("golden import said.csv -w shop")
    assert told.out == "said.csv (csv): 1 corrected judgment\n"
    assert "  kept: 1 judgment of 1 query" in told.err


def test_what_came_in_before_a_file_that_did_not_is_said_in_json(
    typed: Typed, said: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.csv").write_text(f"{HEAD}q1,door,d1,99,ann\n", encoding="utf-8")
    done = typed("golden import said.csv bad.csv -w shop --json", code=2)
    assert [row["file"] for row in json.loads(done.out)] == ["said.csv"]
    assert "bad.csv, line 2: grade 99 for document 'd1'" in done.err
    assert typed("golden import bad.csv -w shop --json", code=2).out == ""


def test_runs_that_are_kept_go_out_by_name(typed: Typed, said: Path, tmp_path: Path) -> None:
    (tmp_path / "bm25.trec").write_text("q1 Q0 d2 1 2.5 x\nq1 Q0 d1 2 1 x\n", encoding="utf-8")
    (tmp_path / "same.trec").write_text("q1 Q0 d2 1 2.5 x\nq1 Q0 d1 2 1 x\n", encoding="utf-8")
    pooled = typed("golden pool bm25.trec same.trec -w shop")
    assert "run 'same' is the same as 'bm25': it is stored once" in " ".join(pooled.out.split())
    done = typed("golden export out.trec --run bm25 -w shop")
    assert done.err == "  kept: run 'bm25': 2 rows of 1 query\n"
    assert read_run(tmp_path / "out.trec").to_dict() == {"q1": {"d2": 2.5, "d1": 1}}
    assert typed("golden export same.out.trec --run same -w shop").err.startswith(
        "  kept: run 'same'"
    )
    told = typed("golden export s.json --format quepid-snapshot --run bm25 --json -w shop")
    assert json.loads(told.out)["kept"] == ["1 run"]
    assert "door" in (tmp_path / "s.json").read_text(encoding="utf-8")
    for line, says in (
        ("golden export s.json --format quepid-snapshot", "name some; the workspace has bm25"),
        ("golden export x.trec --run bm52", "did you mean bm25?"),
        ("golden export x --format beir --run bm25", "quepid-snapshot-csv"),
        ("golden export - --format csv --json", "leave out --json"),
        ("golden export x.nope --run bm25", "cannot tell the format"),
    ):
        assert says in typed(f"{line} -w shop", code=2).err


def test_a_file_that_is_missing_keeps_all_others_out(
    typed: Typed, said: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"{HEAD}q1,door,{name},1,ann\n", encoding="utf-8")
    done = typed("golden import a.csv nofile.csv b.csv -w shop", code=2)
    assert (done.out, "nofile.csv: there is no such file" in done.err) == ("", True)
    assert "1 new judgment" in typed("golden import a.csv -w shop").out


def test_a_file_is_replaced_by_force(typed: Typed, said: Path) -> None:
    before = said.read_bytes()
    assert "fix: --force" in typed("golden export said.csv --format csv -w shop", code=2).err
    assert said.read_bytes() == before
    typed("golden export said.csv --format csv --force -w shop")
    assert said.read_bytes() != before
    assert "is empty" in typed("golden import said.csv -w shop --rater=", code=2).err


def test_the_name_of_an_export_asks_for_its_format(
    typed: Typed, said: Path, tmp_path: Path
) -> None:
    assert said.exists()
    for name, first in (
        ("judged.csv", "query_id,query,doc_id,grade"),
        ("judged.qrels", "q1 0 d1 2"),
        ("judged.TREC", "q1 0 d1 2"),
        ("judged.json", '{"karat_golden_set": 1'),
    ):
        typed(f"golden export {name} -w shop")
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(first)
    typed("golden export judged.tsv.gz -w shop")
    assert (tmp_path / "judged.tsv.gz").is_file()
    typed("golden export folder -w shop")
    assert (tmp_path / "folder/qrels/test.tsv").is_file()
    typed("golden export folder -w shop --force")
    for name, fix in (("q.jsonl", "--format quepid-book"), ("v.2", "--format beir"), ("-", "trec")):
        assert fix in typed("golden export -w shop", name, code=2).err
        assert not (tmp_path / name).exists()


def test_a_model_among_raters_is_no_person(typed: Typed, said: Path, tmp_path: Path) -> None:
    said.write_text(f"{HEAD}q1,door,d1,3,gpt-5\n", encoding="utf-8")
    refused = typed("golden import said.csv -w shop", code=2)
    assert "the rater 'gpt-5' reads like a model" in refused.err
    assert "'gpt-5=llm' for a model" in refused.err
    assert "1 new judgment" in typed("golden import said.csv -w shop --source gpt-5=llm").out
    assert "unknown source" in typed("golden import said.csv -w shop --source lm", code=2).err
    done = typed("golden source ann llm -w shop")
    assert done.err == "karat: corrected the source of 2 judgments of ann: llm\n"
    assert "already" in typed("golden source ann llm -w shop", code=2).err
