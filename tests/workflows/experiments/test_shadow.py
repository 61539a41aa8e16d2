"""Shadow traffic of runs and logs: coverage, judgments, slices, and what to judge."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.shadow_traffic import Answer, run_of

import karat
from karat import read_run
from karat.errors import InputError, UsageError
from karat.tables import Qrels, Queries
from karat.workflows.experiments.shadow import compare_shadow, to_judge
from karat.workflows.offline.compare import compare
from karat.workflows.workspace.fingerprints import fingerprint

DOCS = [f"d{at}" for at in range(12)]


def run(path: Path, ids: list[str], shift: int = 0) -> Path:
    answer: Answer = DOCS[shift:] + DOCS[:shift]
    times = range(1000, 1000 + len(ids))
    made = run_of([answer] * len(ids), times, path.stem, ids)
    karat.write_run(made, path)
    return path


IDS = [f"q{at}" for at in range(300)]
QUERIES = Queries(
    pl.DataFrame(
        {
            "query_id": IDS,
            "text": [f"words {at}" if at % 3 else f"what is {at} ?" for at in range(300)],
            "kind": ["head" if at < 100 else "tail" for at in range(300)],
        }
    )
)
QRELS = Qrels(pl.DataFrame({"query_id": IDS[:50], "doc_id": ["d0"] * 50, "grade": [1.0] * 50}))


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [
        run(tmp_path / "old.jsonl", IDS), run(tmp_path / "new.jsonl", IDS, 3),
        run(tmp_path / "again.jsonl", IDS),
    ]  # fmt: skip


def test_three_runs(runs: list[Path]) -> None:
    found = compare_shadow(runs)
    overlap = next(row for row in found.differences if row.what == "overlap@10")
    # d3 … d11 d0 against d0 … d9: d3 … d9 and d0 of 10.
    assert (overlap.value, overlap.noise, overlap.different) == (0.8, 1.0, True)
    assert (found.requests, found.queries, [s.name for s in found.sides]) == (
        300, 300, ["old", "new", "again"],
    )  # fmt: skip
    hashes = [fingerprint(read_run(path)) for path in runs[:2]]
    assert list(found.runs.values()) == hashes
    assert found.hashes["baseline"] is None
    assert found.exit_code == 3  # 300 queries without an error do not show that 1 % fail at most


def test_other_queries_are_missing_not_dropped(tmp_path: Path) -> None:
    old, new = run(tmp_path / "old.jsonl", IDS), run(tmp_path / "new.jsonl", [*IDS[20:], "x"])
    found = compare_shadow([old, new])
    answered = next(check for check in found.checks if check.rule == "min_answered")
    assert answered.value == pytest.approx(280 / 301)
    assert answered.verdict == "cannot_tell"
    assert "20 queries only in old" in found.notes
    assert "1 query only in new" in found.notes


def test_quality_is_that_of_compare(runs: list[Path]) -> None:
    found = compare_shadow(runs[:2], qrels=QRELS, queries=QUERIES, by=["kind", "query_form"])
    same = compare(QRELS, *map(read_run, runs[:2]), "nDCG@10", queries=QUERIES, by=["kind"])
    assert found.quality == same.differences[0]
    assert found.quality is not None
    assert found.quality.difference is not None
    assert found.quality.difference < 0
    assert found.quality_slices[0].attribute == "kind"
    assert found.hashes["judgments"] == fingerprint(QRELS)
    groups = {(group.attribute, group.slice): group.queries for group in found.groups}
    assert groups["kind", "head"] == 100
    assert groups["query_form", "question"] == 100
    none = Qrels(pl.DataFrame({"query_id": ["z"], "doc_id": ["d0"], "grade": [1.0]}))
    unknown = compare_shadow(runs[:2], qrels=none)
    assert unknown.quality is None
    assert any("none of the queries is judged" in note for note in unknown.notes)


def test_slices_need_no_judgments(runs: list[Path]) -> None:
    found = compare_shadow(runs[:2], queries=QUERIES, by=["query_length", "frequency_band"])
    assert {group.attribute for group in found.groups} == {None, "query_length", "frequency_band"}
    with pytest.raises(UsageError, match="needs judgments"):
        compare_shadow(runs[:2], queries=QUERIES, by=["first_relevant"])
    with pytest.raises(UsageError, match="no attribute 'kid'"):
        compare_shadow(runs[:2], queries=QUERIES, by=["kid"])


def test_a_log_finds_the_ids_of_its_queries(tmp_path: Path) -> None:
    head = {"karat_shadow_log": 1, "digest": ""}
    answers = {
        side: {"state": "ok", "doc_ids": docs, "latency_us": 1000}
        for side, docs in (("baseline", DOCS), ("candidate", DOCS[::-1]))
    }
    rows = [
        {"id": str(at), "query": text, "answers": answers}
        for at, text in enumerate(["Words 1", "words 1", "words 2", "unknown"])
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]))
    found = compare_shadow([path], qrels=QRELS, queries=QUERIES, judge_next=100)
    assert {query.query_id for query in found.most_changed} == {"q1", "q2", None}
    assert found.quality is not None
    assert found.quality.n == 2
    assert ("q1", "d0") not in {(pair.query_id, pair.doc_id) for pair in found.judge_next}
    pairs = to_judge(found, QUERIES).frame
    assert set(pairs["query_id"]) == {"q1", "q2"}
    assert set(pairs["chosen_by"]) == {"shadow"}


def test_mistakes(tmp_path: Path, runs: list[Path]) -> None:
    with pytest.raises(InputError, match="one file is a shadow log, and this is not one"):
        compare_shadow(runs[:1])
    with pytest.raises(UsageError, match="got 4 files"):
        compare_shadow([*runs, runs[0]])
    with pytest.raises(UsageError, match="k is 0"):
        compare_shadow(runs, k=0)
    with pytest.raises(InputError):
        compare_shadow([tmp_path / "none.jsonl"])
