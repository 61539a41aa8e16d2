"""The rows behind a figure: as many as it says, chosen by slice, and nobody named."""

from __future__ import annotations

import csv
import html
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import polars as pl
import pytest
from tests.event_stores import keep_events
from tests.web.conftest import Browser, ClientOf, with_deep
from tests.web.online_log import put_users

from karat.engines.frames.opening import open_engine
from karat.store.sql import queries
from karat.tables.online.events import EventLog
from karat.web.online import rows as online_rows
from karat.workflows.online.event_rows import for_eyes, pseudonym
from karat.workflows.online.facts import Table, look


@pytest.fixture
def engineer(client_of: ClientOf, workspace: Path) -> Browser:
    put_users(workspace)
    return client_of("engineer")


@pytest.mark.parametrize(
    ("asks", "total"),
    [
        ("", 192),  # 4 days × 12 users × 4 queries
        ("metric=ZeroResults&counts=yes", 48),
        *with_deep(
            ("metric=CTR&counts=yes", 72),  # (6 + 3 + 9) × 4
            ("metric=CTR", 192),
            ("metric=CTR&counts=no", 72),  # seen and not clicked
            ("metric=CTR&counts=yes&slice=arm%3Da", 60),
            ("metric=ZeroResults&counts=no", 144),
            ("metric=CTR&counts=yes&from=2027-01-12&to=2027-01-12", 18),
            ("slice=query%3Dtall+ladder", 48),
        ),
        ("metric=CTR&counts=yes&slice=arm%3Da&slice=device%3Dphone", 32),  # (3 + 2 + 3) × 4
        ("metric=CTR&counts=yes&from=2027-01-12&to=2027-01-12&slice=hour%3D11", 9),
        ("slice=query%3D", 0),  # every search has a text
        ("table=clicks", 72),
        ("table=sessions", 192),
    ],
)
def test_there_are_as_many_as_the_figure_says(engineer: Browser, asks: str, total: int) -> None:
    found = engineer.get(f"/online/rows?{asks}&format=json").json()
    assert found["total"] == total
    assert len(found["rows"]) == total
    page = engineer.get(f"/online/rows?{asks}")
    assert page.status_code == 200
    assert f"{total:,} in all" in page.text or (total == 0 and "No searches match" in page.text)


def test_a_row_says_what_became_of_it_and_who_is_a_pseudonym(engineer: Browser) -> None:
    asks = "slice=query%3Dred+shoes&from=2027-01-14&to=2027-01-14"
    rows = engineer.get(f"/online/rows?{asks}&format=json").json()["rows"]
    assert [row["when"] for row in rows[:2]] == ["2027-01-14 09:11:00", "2027-01-14 09:10:00"]
    assert [row["became"] for row in rows] == ["abandoned"] * 6 + ["satisfied"] * 6
    assert {row["query"] for row in rows} == {"red shoes"}
    users = {row["user"] for row in rows}
    assert len(users) == 12
    assert all(name.startswith("u-") and len(name) == 8 for name in users)
    both = engineer.get("/online/rows").text + engineer.get("/online/rows?format=json").text
    assert "user 3" not in both
    assert "user_key" not in both
    # The same user is the same everywhere.
    clicks = engineer.get("/online/rows?table=clicks&format=json").json()["rows"]
    assert {row["user"] for row in clicks} < users
    assert {row["dwell_s"] for row in clicks} == {60.0}


@pytest.mark.deep
def test_when_a_session_began_does_not_depend_on_the_days(engineer: Browser) -> None:
    for asks in ("", "from=2027-01-14"):
        for table in ("searches", "clicks"):
            found = engineer.get(f"/online/rows?table={table}&{asks}&format=json").json()["rows"]
            rows = [row for row in found if row["when"].startswith("2027-01-14 09:03")]
            assert [row["session_began"] for row in rows] == ["2027-01-14 09:03:00"]
            assert "session" not in rows[0]


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ("slice=device%3Dphoen", "has “phoen” as its device. Did you mean “phone”?"),
        ("slice=device%3Dcar", "has “car” as its device. There are “desktop”, “phone”."),
        *with_deep(("slice=arm%3Da&slice=device%3DPHONES", "Did you mean “phone”?")),
        ("slice=device%3D", "Every search in these days has a value of device."),
        ("metric=CTR&counts=yes&slice=golden%3Akind%3Dweer", "Did you mean “wear”?"),
    ],
)
def test_a_value_that_no_search_has_is_said(engineer: Browser, asks: str, said: str) -> None:
    site = engineer.site
    with site.workspace.store.begin() as c:
        frame = queries.frame(c, site.workspace.golden.id)
        kinds = pl.Series("kind", ["wear", "garden", "garden", "wear"])
        queries.put(c, site.workspace.golden.id, frame.with_columns(kinds), 1)
    page = engineer.get(f"/online/rows?{asks}")
    assert page.status_code == 200
    assert said in html.unescape(page.text)
    assert "No searches match" not in page.text
    # To a program, no rows are the answer.
    answer = engineer.get(f"/online/rows?{asks}&format=csv")
    assert (answer.status_code, len(answer.text.splitlines())) == (200, 1)


@pytest.mark.deep
def test_values_that_each_have_searches_but_not_at_once(engineer: Browser) -> None:
    asks = "slice=hour%3D12&slice=query%3Dred+shoes&slice=device%3Dphone"
    nobody = "from=2027-01-11&to=2027-01-11&slice=device%3Dphone"
    for each in (asks, nobody):
        page = engineer.get(f"/online/rows?{each}").text
        assert "No searches match in these days." in page
        assert "as its" not in page


def test_all_slices_are_kept_by_the_list(engineer: Browser) -> None:
    asks = "metric=CTR&slice=device%3Dphone&slice=query%3Dred+shoes&counts=yes"
    page = engineer.get(f"/online/rows?{asks}").text
    assert "12 in all" in page  # users 0, 2 and 4 on each of four days
    links = [html.unescape(each) for each in re.findall(r'href="(\?[^"]*)"', page)]
    both = {("slice", "device=phone"), ("slice", "query=red shoes")}
    assert {"sort", "format"} <= {name for each in links for name, _ in parse_qsl(each[1:])}
    for each in links:
        assert both <= set(parse_qsl(each[1:])), each
    [whole] = [each for each in links if "format=csv" in each]
    assert len(list(csv.DictReader(io.StringIO(engineer.get(f"/online/rows{whole}").text)))) == 12
    form = page.partition('<form class="filters" method="get" role="search"')[2]
    form = form.partition("</form>")[0]
    for _, value in both:
        assert f'<input type="hidden" name="slice" value="{value}">' in form


def test_when_a_session_began_is_short_in_the_table(engineer: Browser) -> None:
    found = engineer.get("/online/rows?format=json").json()["rows"]
    assert {(row["since"], row["session_began"][11:]) for row in found} == {
        (row["when"][11:], row["when"][11:]) for row in found
    }  # each search is a session
    page = engineer.get("/online/rows?slice=hour%3D9").text
    assert '<td role="cell" data-head="Session start" class="text"><bdi>09:11:00</bdi>' in page
    assert "session_began" not in engineer.get("/online/rows?table=sessions").text
    frame = pl.DataFrame(
        {"when": ["2027-01-11 00:03:00"], "session_began": ["2027-01-10 23:59:00"]}
    )
    assert frame.select(online_rows._since()).item() == "2027-01-10"


@pytest.mark.parametrize("counts", ["yes", "no"])
def test_why_a_metric_is_unknown_stands_instead_of_its_rows(engineer: Browser, counts: str) -> None:
    asks = f"metric=Conversion&counts={counts}"
    page = engineer.get(f"/online/rows?{asks}")
    assert page.status_code == 200
    assert "Conversion is not available: the log has no purchases." in page.text
    assert "No searches match" not in page.text
    assert 'id="rows"' not in page.text
    answer = engineer.get(f"/online/rows?{asks}&format=csv")
    assert answer.status_code == 400
    assert "the log has no purchases" in answer.text
    assert "192 in all" in engineer.get("/online/rows?metric=Conversion").text


def test_a_long_value_is_cut_where_it_is_shown(engineer: Browser) -> None:
    text = "x" * 5_000
    page = engineer.get(f"/online/rows?slice=query%3D{text}").text
    assert f'<bdi title="{text}">query: {"x" * 199}…</bdi>' in page


def test_a_nothing_found_says_so(engineer: Browser) -> None:
    asks = "metric=ZeroResults&counts=yes&format=json"
    rows = engineer.get(f"/online/rows?{asks}").json()["rows"]
    assert {row["became"] for row in rows} == {"no results; abandoned, no results"}


def test_more_than_a_page_holds_is_said(engineer: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_rows, "MOST_ROWS", 30)
    found = engineer.get("/online/rows?format=json").json()
    assert (found["total"], len(found["rows"])) == (192, 30)
    page = engineer.get("/online/rows").text
    assert "192 searches; the newest 30 are shown." in page
    assert "The newest 30 of 192" in page
    assert "30 in all" not in page
    some = engineer.get(f"/online/rows?user={found['rows'][0]['user']}").text
    assert re.search(r"[\d]+ of the newest 30 \(192 in all\)", some)
    assert "Page 1 of 2" in page  # 25 on each


def test_rows_are_filtered_and_sorted_on_the_server(engineer: Browser) -> None:
    found = engineer.get("/online/rows?q=LADDER&arm=b&sort=when&format=json").json()["rows"]
    assert len(found) == 4 * 6
    assert found[0]["when"] == "2027-01-10 11:06:00"
    answer = engineer.get("/online/rows?metric=CTR&counts=yes&format=csv")
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == 72


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ("slice=devic%3Dx", "device"),
        ("slice=arm%3Da&slice=arm%3Db", "two slices by arm"),
        ("metric=zeroresult", "ZeroResults"),
        ("slice=hour%3Dnoon", "is not a valid hour"),
        *with_deep(
            ("slice=arm", "slice=arm=b"),
            ("slice=hour%3D300", "from 00 to 23"),
            ("table=serches", "searches"),
            ("slice=hour%3D24", "is not a valid hour"),
            ("slice=hour%3D-1", "is not a valid hour"),
            ("slice=dya%3D2027-01-12", "day"),
        ),
        ("table=foo", "searches, clicks, sessions"),
    ],
)
def test_what_cannot_be_meant_is_said(engineer: Browser, asks: str, said: str) -> None:
    answer = engineer.get(f"/online/rows?{asks}")
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)


SECOND = 1_000_000
BEGIN = 1_800_000_000 * SECOND


def event(kind: str, at: int, **more: Any) -> dict[str, Any]:
    return {"user_id": "ada", "kind": kind, "time_us": BEGIN + at * SECOND, **more}


SEARCHES = [
    event("search", 0, query="rope", query_id="s1"),
    event("search", 60, query="blue rope", query_id="s2"),
]


def seen(folder: Path, table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    types = {"position": pl.Int32, "value": pl.Float64}
    types = {name: kind for name, kind in types.items() if any(name in row for row in rows)}
    frame = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    log: EventLog = keep_events(folder / "events", frame)
    with open_engine() as engine:
        found, _ = look(log, engine, table, {})
    return for_eyes(found, log, table, "salt")


def test_a_log_of_searches_alone_knows_of_nothing_else(tmp_path: Path) -> None:
    found = seen(tmp_path, "searches", SEARCHES)
    assert found.height == 2
    unknown = ("clicks", "clicked", "paul_5", "sat", "quick_back", "carts", "purchases", "revenue",
               "answered", "abandoned", "error", "timeout")  # fmt: skip
    assert {name: found[name].null_count() for name in unknown} == dict.fromkeys(unknown, 2)
    assert found["reformulated"].to_list() == [0, 1]  # it has their texts
    sessions = seen(tmp_path / "more", "sessions", SEARCHES)
    assert sessions.select("searches", "tasks", "success").rows() == [(2, 1, None)]


def test_what_the_log_says_may_be_0(tmp_path: Path) -> None:
    click = event("click", 5, doc_id="d", position=1, query_id="s1")
    sold = event("purchase", 9, doc_id="d", value=3.0, query_id="s1")
    found = seen(tmp_path, "searches", [*SEARCHES, click, sold])
    # The newest first: nothing came of it, as far as the log goes.
    assert found["clicks"].to_list() == [0, 1]
    assert found["carts"].null_count() == 2
    assert found["purchases"].null_count() == 2  # one may still come, for a day


def test_a_dwell_that_nothing_tells_is_none(tmp_path: Path) -> None:
    clicks = [
        event("click", 5, doc_id="d", position=1, query_id="s1"),  # until the next search
        event("click", 70, doc_id="e", position=1, query_id="s2"),
    ]
    found = seen(tmp_path, "clicks", [*SEARCHES, *clicks])
    assert found.select("doc_id", "dwell_us", "dwell_s", "became").rows() == [
        ("e", None, None, None),
        ("d", 55 * SECOND, 55.0, "satisfied"),
    ]


def test_a_heartbeat_tells_that_it_was_read_for_as_long(tmp_path: Path) -> None:
    rows = [
        *SEARCHES,
        event("click", 70, doc_id="e", position=1, query_id="s2"),
        event("heartbeat", 80, doc_id="e"),
    ]
    found = seen(tmp_path, "clicks", rows)
    assert found.select("dwell_s", "became").rows() == [(10.0, "dwell cut off")]


def test_a_session_has_a_beginning_and_no_number(tmp_path: Path) -> None:
    found = seen(tmp_path, "searches", SEARCHES)
    assert set(found["session_began"]) == {found["when"].min()}
    assert not {"session", "session_us", "user_key", "user_bucket"} & set(found.columns)


@pytest.mark.parametrize(("one", "other", "same"), [
    ((7, "salt"), (7, "salt"), True),
    ((7, "salt"), (7, "other"), False),
    ((7, "salt"), (8, "salt"), False),
])  # fmt: skip
def test_no_pseudonym_is_the_same_in_another_workspace(
    one: tuple[int, str], other: tuple[int, str], *, same: bool
) -> None:
    assert (pseudonym(*one) == pseudonym(*other)) == same
