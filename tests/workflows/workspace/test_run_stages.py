"""Which stored runs are proposed as the stages of another."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.tables.workspace import RunRow
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.workspace.run_stages import proposed, stages_of
from karat.workflows.workspace.stored_runs import file_of, store_runs, stored_by_name, trace_of
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
Lists = dict[str, list[str]]
QUERIES = [f"q{n}" for n in range(40)]


def _run(name: str, lists: Lists) -> Run:
    return Run.from_dict(
        {query: {doc: 1 / n for n, doc in enumerate(docs, 1)} for query, docs in lists.items()},
        name,
    )


def _fused(first: Lists, second: Lists, depth: int, weight: float = 1.0) -> Lists:
    out = {}
    for query in QUERIES:
        score: dict[str, float] = {}
        for part, docs in ((weight, first[query]), (1.0, second[query])):
            for rank, doc in enumerate(docs, 1):
                score[doc] = score.get(doc, 0) + part / (60 + rank)
        out[query] = sorted(score, key=lambda doc: (-score[doc], doc))[:depth]
    return out


@pytest.fixture
def found(shop: Workspace, tick: Tick) -> Callable[..., list[str]]:
    """Two retrievers and a variant of one; stores further runs, and proposes stages of one."""
    draw = random.Random(1)
    queries = pl.DataFrame({"query_id": QUERIES, "text": QUERIES})
    import_exchange(shop, Exchange("csv", queries=queries), file="q.csv", sha256="0", now=tick())
    words = {q: draw.sample([f"{q}d{n}" for n in range(60)], 30) for q in QUERIES}
    meaning = {q: draw.sample([f"{q}d{n}" for n in range(60)], 30) for q in QUERIES}
    other = {q: [*docs[1:], f"{q}x"] for q, docs in words.items()}  # all but one are the same
    lists = {"words": words, "meaning": meaning, "other": other}

    def stages(name: str, **more: Callable[[dict[str, Lists]], Lists]) -> list[str]:
        for each, make in more.items():
            lists[each] = make(lists)
        for each, docs in lists.items():
            store_runs(shop, [_run(each, docs)], now=tick())
        return proposed(shop, stored_by_name(shop)[name])

    return stages


def hybrid(lists: dict[str, Lists]) -> Lists:
    return _fused(lists["words"], lists["meaning"], 30)


def union(lists: dict[str, Lists]) -> Lists:
    return _fused(lists["words"], lists["meaning"], 60)


def heavier(lists: dict[str, Lists]) -> Lists:
    return _fused(lists["words"], lists["meaning"], 30, 1.3)


def reranked(lists: dict[str, Lists]) -> Lists:
    return {query: docs[::-1] for query, docs in lists["words"].items()}


@pytest.mark.parametrize("make", [hybrid, union])
def test_retrievers_are_proposed_for_their_fusion_and_nothing_for_them(
    found: Callable[..., list[str]], make: Callable[[dict[str, Lists]], Lists]
) -> None:
    assert found("fused", fused=make) == ["words", "meaning", "fused"]
    assert found("words") == []
    assert found("meaning") == []


@pytest.mark.parametrize("make", [hybrid, union])
def test_another_fusion_is_not_a_stage(
    found: Callable[..., list[str]], make: Callable[[dict[str, Lists]], Lists]
) -> None:
    assert found("second", fused=make, second=heavier) == ["words", "meaning", "second"]


def test_a_reranker_takes_the_earlier_run_of_the_same_documents(
    found: Callable[..., list[str]],
) -> None:
    assert found("top", fused=hybrid, top=reranked) == ["words", "top"]
    assert found("words") == []


def test_a_reranker_of_the_first_documents_of_a_longer_run(found: Callable[..., list[str]]) -> None:
    def short(lists: dict[str, Lists]) -> Lists:
        return {query: docs[10::-1] for query, docs in lists["meaning"].items()}

    assert found("top", top=short) == ["meaning", "top"]


def test_a_trace_needs_no_stages_and_a_lost_file_is_not_a_stage(
    found: Callable[..., list[str]], shop: Workspace
) -> None:
    found("fused", fused=hybrid)
    row: RunRow = stored_by_name(shop)["fused"]
    assert stages_of(shop, row) == ["words", "meaning", "fused"]
    assert stages_of(shop, stored_by_name(shop)["words"]) == ["words"]  # deeper than it serves
    trace_of(file_of(shop, row)).write_bytes(b"")
    assert stages_of(shop, row) == []


def test_without_queries_nothing_is_proposed(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    store_runs(shop, [_run(name, {"q1": ["a", "b"]}) for name in ("a", "b")], now=tick())
    assert proposed(shop, stored_by_name(shop)["b"]) == []
    assert stages_of(shop, stored_by_name(shop)["b"]) is None
