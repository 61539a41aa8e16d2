"""Artifacts: computed once for each key, read once, forgotten when damaged, and never too many."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError
from karat.tables.online.evaluation import OnlineResult, OnlineResults
from karat.workflows.workspace import artifacts
from karat.workflows.workspace.artifacts import (
    HEAD,
    Artifact,
    ArtifactCache,
    ArtifactCorrupted,
    Memory,
    key_of,
)

ROWS = pl.DataFrame({"n": [1, 2]})


@pytest.fixture
def cache(tmp_path: Path) -> ArtifactCache:
    return ArtifactCache(tmp_path / "artifacts")


def read(artifact: Artifact) -> Artifact:
    return artifact


def test_a_key_is_of_all_its_parts() -> None:
    keys = {key_of(), key_of(1), key_of("1"), key_of({"a": 1, "b": 2}), key_of([1], None)}
    assert len(keys) == 5
    assert key_of({"b": 2, "a": 1}) in keys


def test_what_is_stored_is_read_once(cache: ArtifactCache) -> None:
    calls = []

    def counted(artifact: Artifact) -> Artifact:
        calls.append(1)
        return artifact

    assert cache.find("some", "a", counted) is None
    cache.put("some", "a", {"n": 1}, {"rows": ROWS})
    first = cache.find("some", "a", counted)
    assert first is not None  # that there was nothing is not remembered
    assert cache.find("some", "a", counted) is first
    assert len(calls) == 1
    assert first.head == {"n": 1}
    assert pl.read_parquet(first.tables["rows"]).equals(ROWS)
    cache.put("some", "a", {"n": 1}, {"rows": ROWS})  # as another process may
    assert cache.find("some", "a", counted) is first
    cache.forget()
    assert cache.find("some", "a", counted) == first
    cache.drop("some", "a")
    assert cache.find("some", "a", counted) is None


def test_a_process_holds_few_with_tables(
    cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "_MEMORY", 2 * artifacts._HEAVY)
    held = {}
    for name in "abc":
        cache.put("some", name, {}, {"rows": ROWS})
        held[name] = cache.find("some", name, read)
    assert cache.find("some", "b", read) is held["b"]
    assert cache.find("some", "a", read) is not held["a"]


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_what_is_damaged_is_forgotten(cache: ArtifactCache, harm: str) -> None:
    cache.put("some", "a", {}, {"rows": ROWS})
    found = cache.find("some", "a", read)
    assert found is not None
    path = found.tables["rows"]
    path.unlink() if harm == "gone" else path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(ArtifactCorrupted, match="reload"), found.reading():
        pl.read_parquet(path)
    assert cache.find("some", "a", read) is None
    cache.put("some", "a", {}, {"rows": ROWS})
    assert cache.find("some", "a", read) is not None
    assert [each.name for each in path.parent.parent.iterdir()] == ["a"]


DEEP = b"[" * 50_000  # deeper than Python's stack


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"answer": 1}', b"\xff\xfe", DEEP])
def test_a_damaged_answer_is_made_again(
    cache: ArtifactCache, tmp_path: Path, damage: bytes
) -> None:
    cache.answer("some", "a", lambda: {"a": 1})
    cache.forget()
    (tmp_path / "artifacts/some/a" / HEAD).write_bytes(damage)
    assert cache.found("some", "a") is None
    assert cache.answer("some", "a", lambda: {"a": 2}) == {"a": 2}
    cache.forget()
    assert cache.found("some", "a") == {"a": 2}


def test_an_answer_is_there_after_a_restart(cache: ArtifactCache) -> None:
    made: list[int] = []

    def make() -> dict[str, list[int | None]]:
        made.append(1)
        return {"rows": [1, None]}

    for _ in range(2):
        assert cache.answer("some", "a", make) == {"rows": [1, None]}
        cache.forget()
    assert made == [1]
    assert cache.found("some", "b") is None
    assert cache.found("other", "a") is None


def test_where_nothing_can_be_written_this_process_has_answers_all_the_same(
    cache: ArtifactCache, tmp_path: Path
) -> None:
    (tmp_path / "artifacts").write_text("a file where the folder should be", encoding="utf-8")
    assert cache.answer("some", "a", lambda: {"a": 1}) == {"a": 1}
    assert cache.found("some", "a") == {"a": 1}
    cache.forget()
    assert cache.found("some", "a") is None
    with pytest.raises(InputError, match="cannot write the folder"):
        cache.put("some", "a", {}, {"rows": ROWS})


def test_above_the_limit_those_go_that_were_used_longest_ago(tmp_path: Path) -> None:
    pinned: set[str] = set()
    cache = ArtifactCache(tmp_path, lambda: pinned, limit=10_000)
    for day, name in enumerate("abcd"):
        cache.put("some", name, {"text": "x" * 2_000})
        os.utime(tmp_path / "some" / name / HEAD, (day, day))
    pinned.add("b")  # the numbers of a named comparison
    (tmp_path / "some/.a.interrupted").mkdir()
    os.utime(tmp_path / "some/.a.interrupted", (9, 9))
    assert cache.find("some", "a", read) is not None  # used just now
    cache.put("other", "e", {"text": "x" * 5_000})
    left = sorted(path.name for path in tmp_path.glob("*/*"))
    assert left == ["a", "b", "e"]


def test_the_newest_of_a_beginning_is_found(cache: ArtifactCache, tmp_path: Path) -> None:
    for at, key in enumerate(("a-2", "a-1", "b-3")):
        cache.put("some", key, {})
        os.utime(tmp_path / "artifacts/some" / key, (at, at))
    assert cache.newest("some", "a-") == "a-1"
    assert cache.newest("some", "c-") is None


@pytest.fixture
def results() -> Iterator[OnlineResults]:
    row = OnlineResult("CTR", 1, {"arm": ""}, 0.1, 0.05, None, "users", None, None, 3, 2, 1.0, "ok")
    gone = replace(row, value=None, low=None, state="none", reason="no searches")
    return OnlineResults(
        [row, gone], ("arm",), "rules@1", ("2026-11-01", "2026-11-02"), 9, ["h"], ["n"], True
    )


def test_results_come_back_as_they_were(cache: ArtifactCache, results: OnlineResults) -> None:
    for key, each in (("a", results), ("b", replace(results, results=[], period=None))):
        cache.answer("online", key, each.to_dict)
        cache.forget()
        assert OnlineResults.from_dict(cache.found("online", key)) == each


def test_of_several_that_ask_at_once_one_computes() -> None:
    memory, made, start = Memory(2), [], threading.Event()

    def make() -> int:
        start.wait(5)
        made.append(1)
        return len(made)

    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(memory.get, "a", make) for _ in range(8)]
        start.set()
    assert {each.result() for each in found} == {1}
    for key in ("b", "c"):
        memory.get(key, make)
    assert memory.get("a", make) == 4  # the third of two


def test_a_value_that_cannot_be_made_is_tried_again() -> None:
    memory = Memory(2)
    with pytest.raises(ZeroDivisionError):
        memory.get("a", lambda: 1 // 0)
    assert memory.get("a", lambda: 2) == 2
