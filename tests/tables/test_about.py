"""About: as text, in one line, and what changed."""

from __future__ import annotations

import pytest

from karat.errors import InputError
from karat.tables.about import AboutChange, brief, facts, flat, not_recorded, sentence, what_changed


def test_nested_values_become_text() -> None:
    given = {"engine": "prod", "parameters": {"boost": {"title": 3.0}, "fields": ["a", "b"]}}
    assert flat(given | {"dirty": False, "index": None}, "x") == {
        "engine": "prod",
        "parameters.boost.title": "3.0",
        "parameters.fields": '["a", "b"]',
        "dirty": "false",
    }
    with pytest.raises(InputError, match="keys are text"):
        flat({"": "x"}, "x")


def test_known_keys_come_first_and_the_tag_is_left_out() -> None:
    about = {"tag": "bm25", "zone": "a", "commit": "c", "engine": "e"}
    assert list(facts(about)) == ["engine", "commit", "zone"]


def test_in_one_line() -> None:
    about = {"engine": "prod", "engine_version": "8.1", "index": "docs", "commit": "0" * 40}
    about |= {"asked_at": "2026-11-23T10:00:00Z", "name": "nightly", "retries": "0", "zone": "a"}
    said = f"engine prod 8.1, index docs, commit {'0' * 12}, asked 2026-11-23T10:00:00Z, 1 more"
    assert brief(about) == said
    assert brief({"tag": "bm25"}) == ""
    assert brief({"fusion": "sum", "fused": "a, b"}) == "fused a, b, fusion sum"


def test_what_changed_names_both_sides_but_not_the_time() -> None:
    old = {"engine": "prod", "index": "docs-1", "asked_at": "1", "name": "a", "k": "3"}
    new = {"engine": "prod", "index": "docs-2", "asked_at": "2", "name": "b", "commit": "c"}
    found = what_changed(old, [("b", new), ("same", old)])
    assert found == [
        AboutChange("b", "index", "docs-1", "docs-2"),
        AboutChange("b", "commit", None, "c"),
        AboutChange("b", "k", "3", None),
    ]
    assert [sentence(each) for each in found] == [
        "index docs-1 → docs-2",
        "commit not recorded → c",
        "k 3 → not recorded",
    ]
    assert not what_changed({}, [("b", {"tag": "x"})])


def test_how_a_run_was_asked_comes_last() -> None:
    old = {
        "concurrency": "1",
        "queries": "a",
        "warmup": "0",
        "zone": "x",
        "index": "1",
        "depth": "9",
    }
    new = {key: f"{value}!" for key, value in old.items()}
    keys = [change.key for change in what_changed(old, [("b", new)])]
    assert keys == ["index", "zone", "concurrency", "depth", "queries", "warmup"]


def test_a_run_about_which_nothing_is_recorded_is_named_in_a_sentence() -> None:
    old, none = {"engine": "prod"}, {"tag": "x", "name": "b", "asked_at": "1"}
    assert not what_changed(old, [("b", none)])
    assert not what_changed(none, [("a", old)])
    said = ["nothing is recorded about b, so what changed is unknown"]
    assert not_recorded([("a", old), ("b", none)]) == said
    assert not_recorded([("b", none), ("a", old)]) == said
    assert not not_recorded([("a", old), ("c", old)])
    assert not not_recorded([("b", none), ("c", none)])
