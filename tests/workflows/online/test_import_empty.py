"""Searches whose hits are empty where nothing was found: never dropped from zero results unsaid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.choosing import deep_but

import karat
from karat.errors import InputError
from karat.store.events.log import read_manifest
from karat.tables.online.events import EmptyHits, Imported
from karat.workflows.online._import_empty import Ask, question
from karat.workflows.online.import_events import import_events

NOW = 1_795_305_600_000_000  # 2026-11-22T00:00:00Z
EMPTY = "[hits]\nempty = {}\n"


def shop(blank: int, others: int, clicked: int, clicked_blank: int = 0) -> list[dict[str, Any]]:
    """Searches of as many users, ten seconds apart; the first of either kind are clicked."""
    rows: list[dict[str, Any]] = []
    for number in range(blank + others):
        there = number >= blank
        at = f"2026-11-20T{10 + number // 360}:{number // 6 % 60:02}:{number % 6}0Z"
        search = {"time": at, "user_id": f"u{number}", "query_id": f"s{number}"}
        rows.append({**search, "query": "pie", "hits": ["d1", "d2"] if there else None})
        if (number - blank < clicked) if there else number < clicked_blank:
            click = {"doc_id": "d1", "action": "click"}
            rows.append({**search, **click, "time": at.replace("0Z", "5Z")})
    return rows


def as_cells(rows: list[dict[str, Any]], nothing: str = "") -> str:
    """The rows as CSV, lists with bars between; null hits of a search as ``nothing``."""
    names = ("time", "user_id", "query_id", "query", "hits", "action", "doc_id")

    def cell(row: dict[str, Any], name: str) -> str:
        value = row.get(name)
        if isinstance(value, list):
            return "|".join(value)
        return nothing if name == "hits" and "query" in row and value is None else value or ""

    lines = [names, *(tuple(cell(row, name) for name in names) for row in rows)]
    return "".join(",".join(line) + "\n" for line in lines)


def write(folder: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    """A log in one of the forms in which nothing is said of nothing."""
    path = folder / "log"
    if form in ("cells", "quoted", "blank"):
        path.write_text(as_cells(rows, {"cells": "", "quoted": '""', "blank": "  "}[form]))
    elif form in ("parquet", "text in parquet"):
        frame = pl.DataFrame(rows, infer_schema_length=None)
        if form != "parquet":
            text = pl.col("hits").list.join(",")
            search = pl.col("query").is_not_null()
            frame = frame.with_columns(hits=pl.when(search).then(text.fill_null("")))
        frame.write_parquet(path)
    else:
        if form == "absent":
            rows = [{k: v for k, v in row.items() if v is not None} for row in rows]
        elif form == "text":
            rows = [{**row, "hits": row["hits"] or ""} if "hits" in row else row for row in rows]
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


FORMS = ["cells", "quoted", "blank", "parquet", "text in parquet", "null", "text", "absent"]


def imported(
    folder: Path, log: Path, mapping: str = "", ask: Ask | None = None, **more: Any
) -> Imported:
    """Import a log, by a mapping if it says anything."""
    path = None
    if mapping:
        path = folder / "m.toml"
        path.write_text(mapping)
    return import_events(folder / "store", [log], now=NOW, mapping=path, ask=ask, **more)


def zero(folder: Path) -> tuple[float | None, int | None, list[str]]:
    """ZeroResults of the store, what it is over, and what is said of the log's health."""
    found = karat.evaluate_online(folder / "store", "ZeroResults")
    return found.results[0].value, found.results[0].n, list(found.health)


@pytest.mark.parametrize("form", deep_but(["cells", "null"], FORMS))
def test_empty_hits_are_said_in_every_form(form: str, tmp_path: Path) -> None:
    # Of 12 others 6 are clicked: that none of 8 is, were they alike, has the chance (1/2)^8 < .05.
    found = imported(tmp_path, write(tmp_path, form, shop(8, 12, 6)))
    assert found.empty_hits == EmptyHits(["hits"], 8, 20, 0, 6, "unknown", "default")
    [said] = found.warnings
    assert said.startswith(
        "8 of 20 searches have an empty 'hits'; none of them were clicked, of the others 50 %: "
        "they very likely found nothing, but count as unknown"
    )
    assert "[hits] empty = 0" in said
    manifest = read_manifest(tmp_path / "store")
    assert manifest is not None
    assert said in manifest.imports[0].assumed
    value, n, health = zero(tmp_path)
    assert (value, n) == (0.0, 12)
    assert any(
        "number of results is unknown for 8 of 20 searches (40 %)" in each for each in health
    )


@pytest.mark.parametrize("form", deep_but(["cells", "null"], FORMS))
def test_a_mapping_says_that_empty_is_nothing(form: str, tmp_path: Path) -> None:
    found = imported(tmp_path, write(tmp_path, form, shop(8, 12, 6)), EMPTY.format(0))
    assert found.warnings == []
    assert found.empty_hits == EmptyHits(["hits"], 8, 20, 0, 6, "nothing", "mapping")
    assert any("8 of 20" in each and "as the mapping says" in each for each in found.assumed)
    value, n, health = zero(tmp_path)
    assert (value, n) == (0.4, 20)
    assert not any("does not say whether" in each for each in health)


def test_an_empty_list_was_always_nothing(tmp_path: Path) -> None:
    rows = [row if row.get("hits") or "query" not in row else {**row, "hits": []}
            for row in shop(8, 12, 6)]  # fmt: skip
    log = tmp_path / "log"
    log.write_text("\n".join(map(json.dumps, rows)) + "\n")
    found = imported(tmp_path, log)
    assert (found.empty_hits, found.warnings) == (None, [])
    assert zero(tmp_path)[:2] == (0.4, 20)


def test_a_mapping_says_that_empty_is_unknown(tmp_path: Path) -> None:
    log = write(tmp_path, "cells", shop(8, 12, 6))
    found = imported(tmp_path, log, EMPTY.format('"unknown"'))
    assert found.warnings == []
    assert any("unknown, as the mapping says" in each for each in found.assumed)
    assert zero(tmp_path)[:2] == (0.0, 12)


def test_what_was_clicked_did_not_find_nothing(tmp_path: Path) -> None:
    log = write(tmp_path, "cells", shop(8, 12, 6, clicked_blank=2))
    found = imported(tmp_path, log, ask=never)
    assert found.empty_hits == EmptyHits(["hits"], 8, 20, 2, 6, "unknown", "default")
    assert "2 of them were clicked" in found.warnings[0]
    assert "so an empty cell does not always mean zero results" in found.warnings[0]


def test_a_mapping_that_clicks_contradict_is_a_warning(tmp_path: Path) -> None:
    log = write(tmp_path, "cells", shop(8, 12, 6, clicked_blank=2))
    found = imported(tmp_path, log, EMPTY.format(0))
    assert "as the mapping says; but 2 were clicked" in found.warnings[0]


def test_without_clicks_nothing_is_likely(tmp_path: Path) -> None:
    found = imported(tmp_path, write(tmp_path, "cells", shop(2, 2, 0)))
    assert (
        "the log has no click on any search: whether they found anything is not logged"
        in found.warnings[0]
    )
    # One of two others is clicked; that none of two is has the chance 1/4.
    other = tmp_path / "other"
    other.mkdir()
    found = imported(other, write(other, "cells", shop(2, 2, 1)))
    assert "very likely" not in found.warnings[0]


def test_clicks_without_a_query_id_are_of_the_search_before(tmp_path: Path) -> None:
    rows = [{**row, "query_id": None} for row in shop(8, 12, 6, clicked_blank=1)]
    found = imported(tmp_path, write(tmp_path, "null", rows))
    assert found.empty_hits == EmptyHits(["hits"], 8, 20, 1, 6, "unknown", "default")


@pytest.mark.parametrize(("answer", "value", "n"), [(True, 0.4, 20), (False, 0.0, 12)])
def test_an_answer_holds_for_later_imports(
    answer: bool, value: float, n: int, tmp_path: Path
) -> None:
    asked: list[str] = []

    def ask(empty: EmptyHits) -> bool:
        asked.append(question(empty))
        return answer

    log = write(tmp_path, "cells", shop(8, 12, 6))
    found = imported(tmp_path, log, ask=ask)
    assert asked == [
        (
            "8 of 20 searches have an empty 'hits'; none of them were clicked, of the others 50 %. "
            "Does empty mean that nothing was found?"
        )
    ]
    assert found.warnings == []
    assert any("as you answered" in each for each in found.assumed)
    assert zero(tmp_path)[:2] == (value, n)
    # An import without such searches between does not forget it; nor is anybody asked again.
    log.write_text(as_cells(shop(0, 2, 0)).replace("2026-11-20", "2026-11-19"))
    imported(tmp_path, log, ask=never)
    log.write_text(as_cells(shop(5, 0, 0)).replace("2026-11-20", "2026-11-21"))
    found = imported(tmp_path, log, ask=never)
    assert found.empty_hits is not None
    assert (found.empty_hits.searches, found.empty_hits.by) == (5, "earlier")
    assert zero(tmp_path)[1] == n + 2 + (5 if answer else 0)


def never(_empty: EmptyHits) -> bool:
    """Nobody is to be asked."""
    raise AssertionError("asked")


def test_a_check_asks_nobody(tmp_path: Path) -> None:
    log = write(tmp_path, "cells", shop(8, 12, 6))
    found = imported(tmp_path, log, ask=never, check=True)
    assert "into an empty event store" not in found.warnings[0]
    assert "[hits] empty = 0" in found.warnings[0]


SAYS: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = [
    ("a number of hits", lambda row: {**row, "total_hits": 7}),
    ("a number returned", lambda row: {**row, "returned": 3}),
    ("an error", lambda row: {**row, "status": "error"}),
    ("a timeout", lambda row: {**row, "status": "timeout"}),
]


@pytest.mark.parametrize(("_what", "add"), deep_but(["a number of hits", "an error"], SAYS))
def test_what_says_how_it_ended_is_not_empty(
    _what: str, add: Callable[[dict[str, Any]], dict[str, Any]], tmp_path: Path
) -> None:
    rows = [add(row) if "query" in row and not row["hits"] else row for row in shop(8, 12, 6)]
    found = imported(tmp_path, write(tmp_path, "null", rows), EMPTY.format(0))
    assert found.empty_hits is None
    assert zero(tmp_path)[0] == 0.0


def test_empty_counts_are_said_as_empty_hits_are(tmp_path: Path) -> None:
    cells = as_cells(shop(8, 12, 6)).replace("hits", "result_count").replace("d1|d2", "2")
    log = tmp_path / "log.csv"
    log.write_text(cells)
    found = imported(tmp_path, log)
    assert found.warnings[0].startswith("8 of 20 searches have an empty 'result_count'")
    assert zero(tmp_path)[:2] == (0.0, 12)


def test_a_page_that_logs_what_was_typed_is_not_asked_what_was_found(tmp_path: Path) -> None:
    # UBI: records of queries, and events of the page, some of them of queries without a record.
    queries = [
        {"query_id": f"q{n}", "client_id": "c", "user_query": "pie",
         "timestamp": f"2026-11-20T10:{n:02}:00Z", "query_response_hit_ids": ["d1"] * (n % 2)}
        for n in range(10)
    ]  # fmt: skip
    events = [
        {"action_name": "search", "query_id": f"q{n}", "client_id": "c", "user_query": "pie",
         "timestamp": f"2026-11-20T10:{n:02}:01Z"}
        for n in range(12)
    ]  # fmt: skip
    for name, rows in (("queries", queries), ("events", events)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)) + "\n")
    files = [tmp_path / "queries", tmp_path / "events"]
    found = import_events(tmp_path / "store", files, now=NOW)
    assert (found.empty_hits, found.warnings) == (None, [])
    both = tmp_path / "both"
    both.mkdir()
    (both / "log").write_text("".join(file.read_text() for file in files))
    # In one file with them, two events that tell of a search have no record, and no hits.
    found = imported(both, both / "log")
    assert found.empty_hits is not None
    assert (found.empty_hits.searches, found.empty_hits.of) == (2, 12)


def test_hits_that_cannot_be_read_are_counted_and_not_empty(tmp_path: Path) -> None:
    rows = shop(0, 3, 1)
    rows[0]["hits"] = {"d1": 1}
    rows[2]["hits"] = [{"id": "d1"}]
    found = imported(tmp_path, write(tmp_path, "null", rows), EMPTY.format(0))
    assert "hits are not a list of ids, left out: 2" in found.assumed
    assert found.empty_hits is None


@pytest.mark.parametrize("value", ["1", "true", '"none"', "0.5"])
def test_what_empty_cannot_be(value: str, tmp_path: Path) -> None:
    log = write(tmp_path, "cells", shop(1, 1, 0))
    with pytest.raises(InputError, match=r"\[hits\] empty is .*\n  fix: empty = 0"):
        imported(tmp_path, log, EMPTY.format(value))
