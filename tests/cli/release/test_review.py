"""``karat review``, as somebody types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Typed = Callable[..., Any]  # conftest.py
LINE = "review qrels.txt old.trec new.trec -m RR --queries queries.csv --by kind"


@pytest.fixture
def folder(tmp_path: Path, typed: Typed) -> Path:
    """Twenty queries: the old run misses the document of the odd ones; the new run has it second.

    The first even query falls from the first rank to the third.
    """

    def trec(name: str, of: Callable[[int], list[str]]) -> None:
        rows = (
            f"q{n} Q0 {doc} {rank} {10 - rank} {name}"
            for n in range(20)
            for rank, doc in enumerate(of(n), 1)
        )
        (tmp_path / f"{name}.trec").write_text("\n".join(rows) + "\n")

    def old(n: int) -> list[str]:
        return ["x", "y"] if n % 2 else ["a", "x"]

    def new(n: int) -> list[str]:
        return ["x", "y", "a"] if n == 0 else ["x", "a"] if n % 2 else ["a", "x"]

    trec("old", old)
    trec("new", new)
    for name, ranked in (("old", old), ("new", new)):
        stages = [
            {"query_id": f"q{n}", "stage": stage, "kind": kind, "parents": parents,
             "candidates": [{"doc_id": doc, "rank": at} for at, doc in enumerate(ranked(n), 1)]}
            for n in range(20)
            for stage, kind, parents in (("bm25", "retrieve", []), ("top", "rerank", ["bm25"]))
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, stages)) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 a 1\n" for n in range(20)))
    (tmp_path / "queries.csv").write_text(
        "query_id,text,kind\n"
        + "".join(f"q{n},text {n},{'odd' if n % 2 else 'even'}\n" for n in range(20))
    )
    return tmp_path


def test_the_contract_of_its_json(folder: Path, typed: Typed) -> None:
    line = f"{LINE} --trace old.jsonl --trace candidate=new.jsonl --format json"
    found = json.loads(typed(line).out)
    assert {"schema_version", "baseline", "candidate", "measure", "gain", "catches", "worse"} | {
        "slice", "costs", "rollback", "not_measured", "notes",
    } <= set(found)  # fmt: skip
    assert (found["schema_version"], found["baseline"], found["candidate"]) == (1, "old", "new")
    # Ten queries gain 1/2, one loses 2/3: (5 - 2/3) / 20.
    assert found["gain"]["value"] == pytest.approx((5 - 2 / 3) / 20)
    assert found["gain"]["ci_low"] < found["gain"]["value"] < found["gain"]["ci_high"]
    assert found["bad"] == 10
    [caught] = found["catches"]
    odd = {f"q{n}" for n in range(1, 20, 2)}
    assert (caught["mode"], set(caught["queries"]), caught["of"]) == ("candidate", odd, 10)
    [lost] = found["worse"]
    assert (lost["mode"], lost["queries"], lost["of"]) == ("scoring", ["q0"], 1)
    assert (found["slice"]["attribute"], found["slice"]["slice"]) == ("kind", "odd")
    assert found["slice"]["value"] == pytest.approx(0.5)
    # The even queries lose; all of them were at the first rank.
    assert found["rollback"] == {
        "source": "offline", "metric": "RR", "slice": {"kind": "even"},
        "window": "each evaluation", "limit": 1.0, "direction": "below",
        "reason": "no online metric has a usual range; the limit is the baseline's value",
    }  # fmt: skip
    assert found["costs"] is None
    assert "online metrics: no log" in found["not_measured"]
    assert not any("no trace" in text for text in found["not_measured"])


def test_without_a_trace_it_says_so(folder: Path, typed: Typed) -> None:
    printed = " ".join(typed(LINE).out.split())
    assert "10 queries are bad with old (below 0.5); 10 turn good (q1," in printed
    assert "no trace says why" in printed
    assert "why old fails 10 queries: no trace (--trace baseline=FILE)" in printed
    assert "why new fails 1 query: no trace (--trace candidate=FILE)" in printed


def test_markdown_and_page(folder: Path, typed: Typed) -> None:
    markdown = typed(f"{LINE} --trace old.jsonl --format md --report review.html").out
    assert "| Not retrieved | 10 | 10 |" in markdown
    assert "## Rollback signal" in markdown
    page = (folder / "review.html").read_text()
    assert "Review of new against old" in page
    assert "Not retrieved" in page
    assert "<script" not in page


def test_mistakes(folder: Path, typed: Typed) -> None:
    for line, what in (
        (f"{LINE} --trace old.jsonl --trace new.jsonl", "the baseline has two traces"),
        (f"{LINE} --open", "--open needs a report"),
        (f"{LINE} --report -", "a report cannot be written to standard output"),
        (f"{LINE} --trace nothing.jsonl", "nothing.jsonl"),
    ):
        ended = typed(line, code=2)
        assert what in ended.err
