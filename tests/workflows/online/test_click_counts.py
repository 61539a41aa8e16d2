"""Clicks of logs as counts, on each engine; the numbers are derived in the comments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.click_traffic import research_form, traffic
from tests.event_stores import keep_events

from karat.errors import InputError, UsageError
from karat.online.clicks.counts import Cells, Pages
from karat.tables.online.events import EventLog
from karat.workflows.online.click_counts import Counted, Counting, count_clicks, count_strata

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 20_700 * DAY + 9 * 3600 * SECOND
BOTH = pytest.mark.parametrize("engine", ["polars", pytest.param("duckdb", marks=pytest.mark.deep)])
"""A build asks DuckDB in the contract of engines."""


def event(user: str, seconds: float, kind: str, **more: Any) -> dict[str, Any]:
    return {"user_id": user, "time_us": START + int(seconds * SECOND), "kind": kind, **more}


PHONE = {"attribute_device": "phone"}
EVENTS = [
    # Shown x, y, z; y was read for 55 seconds, until the next click, which is on no page.
    event("u1", 0, "search", query="Red Shoes", query_id="q1", hits=["x", "y", "z"], **PHONE),
    event("u1", 5, "click", query_id="q1", doc_id="y", position=2),
    event("u1", 60, "click", query_id="q1", doc_id="w", position=9),
    # A click without a query id, the last of its session: its dwell is not known.
    event("u2", 0, "search", query="red shoes", query_id="q2", hits=["y", "x"], **PHONE),
    event("u2", 5, "click", doc_id="y"),
    # A day later: impressions with positions replace the list, v as an image.
    event("u3", DAY / SECOND, "search", query="red shoes", query_id="q3", hits=["y", "x"],
          attribute_device="desk"),
    event("u3", DAY / SECOND + 1, "impression", query_id="q3", doc_id="y", position=1),
    event("u3", DAY / SECOND + 1, "impression", query_id="q3", doc_id="v", position=3,
          attribute_way="image"),
    event("u3", DAY / SECOND + 9, "click", query_id="q3", doc_id="v", position=3),
    # Found nothing; a click without a search; a list that repeats a document, clicked by position.
    event("u4", 0, "search", query="blue", query_id="q4", hits=[], returned=0),
    event("u5", 0, "click", doc_id="y", position=1),
    event("u6", 0, "search", query="blue", query_id="q6", hits=["y", "y", "b"]),
    event("u6", 20, "click", query_id="q6", position=2),
]  # fmt: skip


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    events = pl.DataFrame(EVENTS, infer_schema_length=None)
    return keep_events(tmp_path_factory.mktemp("clicks") / "log", events)


def table(counted: Counted) -> pl.DataFrame:
    """A row for each cell, sorted."""
    cells = counted.counts
    assert isinstance(cells, Cells)
    names = ("shown", "clicked", "satisfied_low", "satisfied_high", "share", "share_clicked")
    rows = pl.concat(
        [cells.pairs[cells.pair.tolist()], cells.places[cells.place.tolist()]], how="horizontal"
    ).with_columns(pl.Series(name, getattr(cells, name)) for name in names)
    return rows.sort("query", "doc_id", "rank", "presentation")


def cell(counted: Counted, query: str, doc: str, rank: int) -> tuple[Any, ...]:
    rows = table(counted).filter(
        pl.col("query") == query, pl.col("doc_id") == doc, pl.col("rank") == rank
    )
    return rows.row(0)[3:]


@BOTH
def test_a_log_by_document_and_rank(log: EventLog, engine: str) -> None:
    counted = count_clicks(log, needs="cells", engine=engine)[None]
    assert (counted.pages, counted.impressions, counted.clicks) == (4, 10, 4)
    assert (counted.first_us, counted.last_us) == (START, START + DAY)
    assert (counted.engine, counted.simulated) == (engine, False)
    # x: at rank 1 of q1 (3 documents), at rank 2 of q2 (2).
    assert cell(counted, "red shoes", "x", 1) == (None, 1, 0, 0, 0, 1 / 3, 0)
    assert cell(counted, "red shoes", "x", 2) == (None, 1, 0, 0, 0, 1 / 2, 0)
    # y: at rank 1 of q2 (clicked, dwell unknown) and of q3 (2 documents seen); 2 of q1 (satisfied).
    assert cell(counted, "red shoes", "y", 1) == (None, 2, 1, 0, 1, 1, 1 / 2)
    assert cell(counted, "red shoes", "y", 2) == (None, 1, 1, 1, 1, 1 / 3, 1 / 3)
    assert cell(counted, "red shoes", "v", 3) == (None, 1, 1, 0, 1, 1 / 2, 1 / 2)
    # The click at position 2 of q6 has no document: it is on the one shown there, not at rank 1.
    assert cell(counted, "blue", "y", 1) == (None, 1, 0, 0, 0, 1 / 3, 0)
    assert cell(counted, "blue", "y", 2) == (None, 1, 1, 0, 1, 1 / 3, 1 / 3)
    assert table(counted).height == 9
    assert counted.queries.rows() == [("blue", "blue", 1), ("red shoes", "red shoes", 3)]
    assert [note for note in counted.notes if "click" in note] == [
        "1 of 5 clicks are on documents that their search did not show in its first 10",
        "1 click without a search in the same session",
    ]
    assert any(note.startswith("1 of 5 searches showed no documents") for note in counted.notes)


@BOTH
def test_a_log_by_page(log: EventLog, engine: str) -> None:
    counted = count_clicks(log, needs="pages", engine=engine)[None]
    pages = counted.counts
    assert isinstance(pages, Pages)
    assert (counted.pages, counted.impressions, counted.clicks) == (4, 10, 4)
    assert [row[1] for row in pages.pairs.rows()] == ["b", "y", "v", "x", "y", "z"]
    # Pairs are numbered in this order; nothing was seen at rank 2 of q3.
    assert sorted(pages.docs.tolist()) == [[1, 1, 0], [3, 4, 5], [4, -1, 2], [4, 3, -1]]
    of_q3 = pages.docs.tolist().index([4, -1, 2])
    assert pages.clicked[of_q3].tolist() == [False, False, True]
    assert pages.count.tolist() == [1, 1, 1, 1]


@BOTH
def test_values_presentation_and_age(log: EventLog, engine: str) -> None:
    counting = Counting(by="device", presentation="way", half_life_us=DAY, engine=engine)
    whole, parts = count_strata(log, "cells", counting)
    assert list(parts) == ["desk", "phone", None]
    # All pages but the last day's count half.
    assert cell(whole, "red shoes", "y", 1) == (None, 1.5, 0.5, 0, 0.5, 0.75, 0.25)
    assert cell(whole, "red shoes", "v", 3) == ("image", 1, 1, 0, 1, 1 / 2, 1 / 2)
    assert isinstance(whole.counts, Cells)
    assert whole.counts.pages == 0.5 + 0.5 + 1 + 0.5
    assert whole.pages == 4
    assert [part.pages for part in parts.values()] == [1, 2, 1]
    assert cell(parts["phone"], "red shoes", "y", 1) == (None, 0.5, 0.5, 0, 0.5, 0.25, 0.25)
    assert parts["desk"].queries.rows() == [("red shoes", "red shoes", 1)]
    assert table(parts["desk"]).height == 2


def test_some_searches_alone(log: EventLog) -> None:
    phones = count_clicks(log, needs="cells", only={"device": "phone"})[None]
    assert phones.pages == 2
    assert "only searches with device=phone are counted" in phones.notes
    second = count_clicks(log, needs="cells", first="2026-09-05")[None]
    assert (second.pages, second.clicks) == (1, 1)
    shallow = count_clicks(log, needs="cells", depth=2)[None]
    assert (shallow.impressions, shallow.clicks) == (7, 3)
    known = count_strata(log, "cells", Counting(present="device"))[0]
    assert known.pages == 3


def test_later_pages_of_results_have_no_ranks(tmp_path: Path) -> None:
    """Their lists begin at another rank than 1, and the log does not say at which."""
    rows = [
        event("u1", 0, "search", query="a", query_id="q1", hits=["x"], page=2),
        event("u2", 0, "search", query="a", query_id="q2", hits=["y"], page=1),
    ]
    log = keep_events(tmp_path / "log", pl.DataFrame(rows))
    assert table(count_clicks(log, needs="cells")[None])["doc_id"].to_list() == ["y"]


def test_pages_are_the_same_in_events_and_in_the_research_form(tmp_path: Path) -> None:
    events = traffic(400)
    log = keep_events(tmp_path / "log", events)
    file = research_form(events, tmp_path / "pages.txt")
    of_log, of_file = (count_clicks(each, needs="cells")[None] for each in (log, file))
    for name in ("pages", "impressions", "clicks"):
        assert getattr(of_log, name) == getattr(of_file, name)
    same = ["query", "doc_id", "rank", "shown", "clicked", "share", "share_clicked"]
    assert_frame_equal(table(of_log).select(same), table(of_file).select(same))
    assert_frame_equal(of_log.queries.drop("text"), of_file.queries.drop("text"))
    assert of_log.queries["text"].to_list() == [f"Query {number}" for number in range(6)]
    by_page, in_file = (count_clicks(each, needs="pages")[None].counts for each in (log, file))
    assert isinstance(by_page, Pages)
    assert isinstance(in_file, Pages)
    sums = [(pages.clicked * pages.count[:, None]).sum(axis=0) for pages in (by_page, in_file)]
    assert np.array_equal(*sums)
    assert len(by_page.count) == len(in_file.count)


def test_cells_of_many_documents_and_of_few(tmp_path: Path) -> None:
    """Counted by number where documents are seen at most ranks, else sorted: 20 of 200 places."""
    path = tmp_path / "pages.txt"
    lists = [",".join(f"d{10 * page + rank}" for rank in range(10)) for page in range(2)]
    path.write_text("".join(f"q\t{docs} : {docs[:2]}\n" for docs in [*lists, lists[0]]))
    found = table(count_clicks(path, needs="cells")[None])
    assert found["shown"].to_list() == [2 if int(doc[1:]) < 10 else 1 for doc in found["doc_id"]]
    assert found["clicked"].sum() == 2  # d0, twice; "d1" is not on the second page
    few = tmp_path / "few.txt"
    few.write_text("q\ta,b : a\nq\tb,a : a\nq\ta,b : b\n")
    assert table(count_clicks(few, needs="cells")[None]).select(
        "doc_id", "rank", "shown", "clicked", "share"
    ).rows() == [("a", 1, 2, 1, 1), ("a", 2, 1, 1, 0.5), ("b", 1, 1, 0, 0.5), ("b", 2, 2, 1, 1)]


def test_batches_are_added_up(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    from karat.engines.frames import opening
    from karat.workflows.online import _click_tables

    whole = count_clicks(log, needs="cells")[None]
    monkeypatch.setattr(opening.open_engine, "__kwdefaults__", {"master": None, "rows_at_once": 6})
    monkeypatch.setattr(_click_tables, "_AT_ONCE", 1)
    assert_frame_equal(table(count_clicks(log, needs="cells")[None]), table(whole))


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"by": "devise"}, "no attribute devise"),
        ({"presentation": "arm"}, "no attribute arm"),
        ({"only": {"devise": "x"}}, "no attribute devise"),
        ({"only": {"device": "watch"}}, "no searches for a text with device=watch"),
        ({"present": "teams"}, "no attribute teams"),
        ({"depth": 0}, "depth must be from 1 to 60"),
        ({"first": "2027-01-01"}, "no events from 2027-01-01"),
        ({"needs": "pages", "presentation": "way"}, "do not support presentation"),
    ],
)
def test_mistakes(log: EventLog, options: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        count_clicks(log, **{"needs": "cells", **options})


def test_a_log_without_documents(tmp_path: Path) -> None:
    rows = [event("u1", 0, "search", query="a", returned=3), event("u1", 5, "click", doc_id="x")]
    log = keep_events(tmp_path / "log", pl.DataFrame(rows, infer_schema_length=None))
    with pytest.raises(InputError, match="which documents its searches showed") as error:
        count_clicks(log, needs="cells")
    assert error.value.file == str(log.folder)


@pytest.mark.parametrize("option", ["by", "half_life_us", "only", "first", "timezone", "engine"])
def test_the_research_form_has_no_events(tmp_path: Path, option: str) -> None:
    path = tmp_path / "pages.txt"
    path.write_text("q\ta : a\n")
    value = {"half_life_us": DAY, "only": {"a": "b"}}.get(option, "duckdb")
    name = "a first day" if option == "first" else option.removesuffix("_us")
    with pytest.raises(UsageError, match=f"{name} needs an event log"):
        count_clicks(path, needs="cells", **{option: value})


def test_notes_of_the_research_form(tmp_path: Path) -> None:
    path = tmp_path / "pages.txt"
    path.write_text("q\ta,b,a : a , x;q\tb\n")
    seen: list[tuple[int, int]] = []
    counted = count_clicks(path, needs="pages", depth=10, progress=lambda *at: seen.append(at))
    assert counted[None].notes == [
        "1 click on documents that their page does not show: not counted",
        "1 page without ':': taken as a page without clicks",
    ]
    assert seen[-1] == (20, 20)
    below = count_clicks(path, needs="pages", depth=1)[None].notes
    assert "2 documents below rank 1, with 1 click: not counted" in below
