"""The demo's folder: every file in its format, the same bytes again, nobody else's files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from karat.demo import golden_set
from karat.demo.build import Demo, build
from karat.errors import UsageError


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_folder_holds_these_files_and_no_others(demo: Demo) -> None:
    assert list(contents(demo.directory)) == [
        "corpus.jsonl",
        "demo.json",
        "qrels/test.tsv",
        "queries.jsonl",
        "runs/bm25.trec",
        "runs/semantic.trec",
    ]


def test_corpus_and_queries_are_json_lines(demo: Demo) -> None:
    corpus = [json.loads(line) for line in demo.corpus.read_text("utf-8").splitlines()]
    assert len(corpus) == demo.document_count
    assert list(corpus[0]) == ["_id", "title", "text", "kind", "module"]
    queries = [json.loads(line) for line in demo.queries.read_text("utf-8").splitlines()]
    assert len(queries) == demo.query_count == 30
    assert list(queries[0]) == ["_id", "text", "need", "class", "origin"]


def test_qrels_hold_every_judgment(demo: Demo) -> None:
    with demo.qrels.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["query-id", "corpus-id", "score"]
    assert [(q, d, int(g)) for q, d, g in rows] == list(golden_set.judgments())
    assert len(rows) == demo.judgment_count
    assert demo.absent_count <= 0.02 * demo.judged_count


def test_runs_are_trec_files_of_known_documents(demo: Demo) -> None:
    known = {json.loads(line)["_id"] for line in demo.corpus.read_text("utf-8").splitlines()}
    for path in demo.runs:
        found: dict[str, list[tuple[int, float]]] = {}
        for line in path.read_text("utf-8").splitlines():
            query_id, q0, doc_id, rank, score, tag = line.split(" ")
            assert (q0, tag) == ("Q0", path.stem)
            assert doc_id in known
            found.setdefault(query_id, []).append((int(rank), float(score)))
        # BM25 knows no word of "deafultdict".
        assert len(found) == (29 if path.stem == "bm25" else 30)
        for rows in found.values():
            assert [rank for rank, _ in rows] == list(range(1, len(rows) + 1))
            assert len(rows) <= 100
            scores = [score for _, score in rows]
            assert scores == sorted(scores, reverse=True)


def test_again_over_a_previous_demo_gives_the_same_bytes(demo: Demo, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "demo"
    (directory / "runs").mkdir(parents=True)
    (directory / "demo.json").write_bytes((demo.directory / "demo.json").read_bytes())
    (directory / "runs" / "bm25.trec").write_text("from an older demo\n", encoding="utf-8")
    (directory / "notes.txt").write_text("mine", encoding="utf-8")
    said: list[str] = []
    again = build(directory, said.append)
    assert contents(directory) == contents(demo.directory) | {"notes.txt": b"mine"}
    assert again.document_count == demo.document_count
    assert len(said) == 4


@pytest.mark.parametrize("mark", [None, "", "[]", '{"made_by": "somebody else"}'])
def test_nobody_elses_files_are_touched(tmp_path: Path, mark: str | None) -> None:
    (tmp_path / "corpus.jsonl").write_text("precious", encoding="utf-8")
    if mark is not None:
        (tmp_path / "demo.json").write_text(mark, encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(UsageError, match="not a karat demo"):
        build(tmp_path, lambda message: None)
    assert contents(tmp_path) == before


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="is a file"):
        build(tmp_path / "demo", lambda message: None)
