"""The demo's folder: every file in its format, the same bytes again, nobody else's files."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

from karat.demo import _documents, _golden_set, engines
from karat.demo.build import MARK, Demo, as_number, build, read_mark
from karat.errors import UsageError
from karat.formats import read_queries, read_run
from karat.formats.own.engines import read_engines
from karat.tables.engines import Variant
from karat.workflows.engines.tries import try_query


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_corpus_and_queries_are_json_lines(demo: Demo) -> None:
    corpus = [json.loads(line) for line in demo.corpus.read_text("utf-8").splitlines()]
    assert len(corpus) == demo.document_count
    assert list(corpus[0]) == ["_id", "title", "text", "kind", "module"]
    queries = [json.loads(line) for line in demo.queries.read_text("utf-8").splitlines()]
    assert len(queries) == demo.query_count == len(_golden_set.queries())
    fields = ["_id", "text", "need", "class", "frequency", "origin", "no_answer"]
    for query in queries:
        assert list(query) == fields
        assert query["no_answer"] is (query["class"] == "no_answer")


def test_qrels_hold_every_judgment(demo: Demo) -> None:
    with demo.qrels.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["query-id", "corpus-id", "score"]
    assert [(q, d, int(g)) for q, d, g in rows] == [j[:3] for j in _golden_set.judgments()]
    assert len(rows) == demo.judgment_count


def test_who_graded_stands_beside_every_grade(demo: Demo) -> None:
    with demo.judgments.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["query_id", "doc_id", "grade", "grader"]
    every = [*_golden_set.judgments(), *_golden_set.second_judgments()]
    assert rows == [list(map(str, judgment)) for judgment in every]


def test_runs_are_trec_files_of_known_documents(demo: Demo) -> None:
    known = {json.loads(line)["_id"] for line in demo.corpus.read_text("utf-8").splitlines()}
    asked = {query.query_id for query in _golden_set.queries()}
    for path in demo.runs:
        found: dict[str, list[tuple[int, float]]] = {}
        for line in path.read_text("utf-8").splitlines():
            query_id, q0, doc_id, rank, score, tag = line.split(" ")
            assert (q0, tag) == ("Q0", path.stem)
            assert doc_id in known
            found.setdefault(query_id, []).append((int(rank), float(score)))
        # BM25 knows no word of "deafultdict" (q06).
        assert ("q06" in found) is (path.stem != "bm25")
        assert found.keys() <= asked
        for rows in found.values():
            assert [rank for rank, _ in rows] == list(range(1, len(rows) + 1))
            assert len(rows) <= 100
            scores = [score for _, score in rows]
            assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("pages", deep_but(["few"], ["few", "all"]))
def test_again_over_a_previous_demo_gives_the_same_bytes(
    pages: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("few" if pages == "few" else "demo")
    demo = build(tmp_path / "first", lambda message: None)
    directory = tmp_path / "new" / "demo"
    (directory / "runs").mkdir(parents=True)
    (directory / "demo.json").write_bytes((demo.directory / "demo.json").read_bytes())
    (directory / "runs" / "bm25.trec").write_text("from an older demo\n", encoding="utf-8")
    (directory / "notes.txt").write_text("mine", encoding="utf-8")
    said: list[str] = []
    again = build(directory, said.append)
    assert contents(directory) == contents(demo.directory) | {"notes.txt": b"mine"}
    assert again.document_count == demo.document_count
    assert len(said) == 5


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of three documents: a build is done at once."""
    pages = {
        "doc_id": ["json.dumps", "os.path.join", "functools.lru_cache"],
        "title": ["json.dumps(obj)", "os.path.join(path, *paths)", "functools.lru_cache()"],
        "text": ["Serialize obj.", "Join paths.", "Least-recently-used cache decorator."],
        "kind": ["function"] * 3,
        "module": ["json", "os.path", "functools"],
    }
    monkeypatch.setattr(_documents, "collect", lambda: pl.DataFrame(pages))


def letters(texts: list[str]) -> list[list[int]]:
    """How often each letter stands in a text."""
    return [[text.count(letter) for letter in ascii_lowercase] for text in texts]


@pytest.mark.usefixtures("few")
def test_the_folder_holds_these_files_and_no_others(tmp_path: Path) -> None:
    demo = build(tmp_path, lambda message: None)
    assert list(contents(demo.directory)) == [
        "corpus.jsonl",
        "demo.json",
        "demo_semantic.py",
        "engines.db",
        "gate.toml",
        "golden-set.md",
        "judgments.tsv",
        "qrels/test.tsv",
        "queries.jsonl",
        "runs/bm25.trec",
        "runs/hybrid.trec",
        "runs/semantic.trec",
    ]
    assert [path.name for path in demo.runs] == ["bm25.trec", "semantic.trec", "hybrid.trec"]


@pytest.mark.usefixtures("few")
def test_a_users_own_function_takes_the_semantic_systems_place(tmp_path: Path) -> None:
    said: list[str] = []
    made = build(tmp_path, said.append, embed=letters)
    assert [path.name for path in made.runs] == ["bm25.trec", "letters.trec", "hybrid.trec"]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        *("bm25.trec", "hybrid.trec", "letters.trec"),
    ]
    rows = [line.split(" ") for line in made.runs[1].read_text("utf-8").splitlines()]
    assert {row[-1] for row in rows} == {"letters"}
    # Every query with a letter is near all three documents, and q03 is the name of one.
    assert len(rows) == 3 * made.query_count
    assert next(row[2] for row in rows if row[0] == "q03") == "os.path.join"
    assert f"{__name__}:letters embeds documents 1 to 3 of 3" in said
    assert "Hybrid search fuses bm25 and letters" in said


@pytest.mark.usefixtures("few")
def test_another_system_leaves_no_run_of_the_one_before(tmp_path: Path) -> None:
    mark = {"made_by": "karat demo"}  # as an older demo wrote it
    (tmp_path / "demo.json").write_text(json.dumps(mark), encoding="utf-8")
    (tmp_path / "runs").mkdir()
    for name in ("semantic", "mine"):
        (tmp_path / "runs" / f"{name}.trec").write_text("", encoding="utf-8")

    def runs() -> set[str]:
        return {path.stem for path in (tmp_path / "runs").iterdir()}

    build(tmp_path, lambda message: None, embed=letters)
    assert runs() == {"bm25", "letters", "hybrid", "mine"}
    build(tmp_path, lambda message: None)
    assert runs() == {"bm25", "semantic", "hybrid", "mine"}


@pytest.mark.usefixtures("few")
def test_a_mark_leads_to_no_file_outside(tmp_path: Path) -> None:
    directory, outside = tmp_path / "demo", tmp_path / "precious.trec"
    (directory / "runs").mkdir(parents=True)
    outside.write_text("precious", encoding="utf-8")
    mark = {"made_by": "karat demo", "runs": ["../../precious", str(outside.with_suffix("")), 7]}
    (directory / "demo.json").write_text(json.dumps(mark), encoding="utf-8")
    build(directory, lambda message: None)
    assert outside.read_text("utf-8") == "precious"


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "embed",
    ["letters", lambda texts: 1 / 0, lambda texts: texts, lambda texts: [[0.0]] * len(texts)],
)
def test_a_function_that_fails_leaves_the_folder_as_it_was(tmp_path: Path, embed: Any) -> None:
    build(tmp_path, lambda message: None)
    before = contents(tmp_path)
    with pytest.raises(UsageError):
        build(tmp_path, lambda message: None, embed=embed)
    assert contents(tmp_path) == before


def test_scores_lose_no_digit() -> None:
    assert as_number(0.25) == "0.250000"
    assert as_number(17.123456) == "17.123456"
    assert float(as_number(1 / 61 + 1 / 62)) == 1 / 61 + 1 / 62


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


@pytest.mark.parametrize("mark", [b"", b"{", b"[" * 50_000, b"\xff", b'{"made_by": "me"}'])
def test_a_mark_that_is_damaged_is_none(mark: bytes, tmp_path: Path) -> None:
    (tmp_path / MARK).write_bytes(mark)
    assert read_mark(tmp_path) is None


def test_the_demo_declares_engines_that_answer_as_its_runs(
    demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, Path(engines.MODULE).stem, raising=False)  # of another demo
    (tmp_path / "karat.toml").write_text("[workspace]\n")
    for name in (engines.FILE, engines.MODULE):
        (tmp_path / name).symlink_to(demo.directory / name)
    engines.declare(tmp_path)
    engines.declare(tmp_path)  # once
    declared = read_engines(tmp_path)
    assert list(declared) == ["bm25", "semantic"]
    found = try_query(tmp_path, [Variant(name) for name in declared], "sort a list", opened=None)
    assert found.answered
    words, meaning = found.variants
    assert len(words.hits) == len(meaning.hits) == 10
    assert words.hits[0].title
    # The vectors in the file are those that ranked the run, to the last digit.
    search = engines.semantic(demo.directory / engines.FILE)
    query = next(iter(read_queries(demo.queries).frame.iter_rows(named=True)))
    run = read_run(demo.runs[1]).to_dict()[query["query_id"]]
    assert dict(search(query["text"])) == run
