"""Tracing one's own pipeline: what is written, and that the search never notices."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.formats.own.traces import read_trace


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_stages_take_what_none_before_them_took(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with karat.trace(path, "q1") as t:
        with t.stage("words", "rewrite") as s:
            s.parsed("red OR shoes")
        with t.stage("bm25", parameters={"k": 3}) as s:
            s.ranked([("a", 2.5), ("ü", 1.0)])
        with t.stage("dense") as s:
            s.ranked([{"id": "b", "score": 0.5, "parts": {"cosine": 0.5}}])
        with t.stage("fused", "fuse") as s:
            s.ranked({"b": 1.0, "a": 2.0})
        with t.stage("top", "rerank") as s:
            s.ranked(["b", "a"])
    found = read_trace(path)
    assert [(s.name, s.kind, s.parents) for s in found.stages] == [
        ("words", "rewrite", ()),
        ("bm25", "retrieve", ()),
        ("dense", "retrieve", ()),
        ("fused", "fuse", ("bm25", "dense")),
        ("top", "rerank", ("fused",)),
    ]
    assert found.candidates("bm25").rows() == [("q1", "a", 1, 2.5), ("q1", "ü", 2, 1.0)]
    assert found.candidates("fused")["doc_id"].to_list() == ["a", "b"]
    written = {row["stage"]: row for row in rows(path)}
    assert written["words"]["parse"] == "red OR shoes"
    assert written["bm25"]["parameters"] == {"k": 3}
    assert written["dense"]["candidates"][0]["parts"] == {"cosine": 0.5}
    assert written["top"]["latency_us"] >= 0


def test_an_error_of_the_search_is_recorded_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with pytest.raises(TimeoutError), karat.trace(path, "q1") as t, t.stage("bm25"):
        raise TimeoutError("too slow")
    assert rows(path)[0]["error"] == "TimeoutError: too slow"
    assert read_trace(path).frame["state"].to_list() == ["failed"]


@pytest.mark.parametrize("what", [None, 3, [("a",)], [object()], [("a", "b", "c")], [{"x": 1}]])
def test_what_is_no_ranking_does_not_raise(what: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with karat.trace(path, "q1") as t, t.stage("bm25") as s:
        s.ranked(what)
    assert rows(path)[0]["error"].startswith("not traced: ")


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match="a trace was dropped"),
        karat.trace(tmp_path / "no" / "such" / "folder", "q1") as t,
        t.stage("bm25") as s,
    ):
        s.ranked(["a"])


def test_it_is_bounded_and_sampled(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for n in range(400):
        with karat.trace(path, f"q{n}", sample=0.25, most=2) as t, t.stage("bm25") as s:
            s.ranked(["a", "b", "c"])
    found = rows(path)
    # CRC-32 of 400 ids below a quarter of its range: 100 expected, 17 is two standard deviations.
    assert 75 < len(found) < 125
    assert {len(row["candidates"]) for row in found} == {2}


def test_threads_and_tasks_do_not_mix_theirs(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"

    def ask(query: str) -> None:
        with karat.trace(path, query) as t:
            for name in ("one", "two"):
                with t.stage(name, "retrieve") as s:
                    s.ranked([f"{query}-{name}"])

    async def ask_later(query: str) -> None:
        with karat.trace(path, query) as t, t.stage("one") as s:
            await asyncio.sleep(0)
            s.ranked([f"{query}-one"])

    threads = [threading.Thread(target=ask, args=(f"t{n}",)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def all_of_them() -> None:
        await asyncio.gather(*(ask_later(f"a{n}") for n in range(20)))

    asyncio.run(all_of_them())
    found = read_trace(path)
    assert len(found) == 60
    for query, doc in found.candidates("one").select("query_id", "doc_id").iter_rows():
        assert doc == f"{query}-one"


def test_a_repeated_document_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with karat.trace(path, "q1") as t, t.stage("bm25") as s:
        s.ranked(["a", "b", "a"])
    assert [each["doc_id"] for each in rows(path)[0]["candidates"]] == ["a", "b"]
