"""Trends in the browser: what the histories say, whatever is in them, and marks beside it."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import sleep
from urllib.parse import quote, urlencode

import polars as pl
import pytest
from starlette.testclient import TestClient
from tests.web.conftest import Browser, ClientOf

from karat.formats.own import history
from karat.store.sql import people, runs
from karat.tables.release.history import Answered, Point, Value
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.web.release import trends
from karat.workflows.golden.editions import freeze, standing_in
from karat.workflows.release.stored_trends import load_edition_hashes
from karat.workflows.workspace.annotations import add_annotation, annotations_of
from karat.workflows.workspace.fingerprints import fingerprint
from karat.workflows.workspace.stored_inputs import qrels_of
from karat.workflows.workspace.workspace import Workspace, open_workspace

pytest.importorskip("vl_convert")

EVIL = '"><script>alert(1)</script>'
NOW = 1_800_000_000_000_000  # of the fixture ``clock``


def points(n: int = 14, run: str = "bm25") -> list[Point]:
    """A fall of nDCG in small steps, with other judgments from the third point on."""
    return [
        Point(
            f"2026-03-{day:02}T02:00:00Z", "gate", run, f"{day:07}{'a' * 33}", "pass", "", "1",
            (
                Value("nDCG@10", 0.8 - 0.01 * day, 0.7, 0.9, 30),
                Value("P@5", 0.0, None, None, 30),
                Value("nDCG@10", 0.5, attribute="lang", slice="de"),
            ),
            {"queries": "q", "qrels": "old" if day < 3 else "new", "run": f"r{day}", "corpus": "c"},
        )
        for day in range(1, n + 1)
    ]  # fmt: skip


def address(measure: str = "nDCG@10", run: str = "bm25", **more: str) -> str:
    return f"/trends/history.jsonl?{urlencode({'run': run, 'measure': measure, **more})}"


def put(workspace: Path, *line: Point, name: str = "history.jsonl") -> None:
    (workspace / name).unlink(missing_ok=True)
    history.append(workspace / name, *line)


def name_histories(workspace: Path, *names: str) -> None:
    path = workspace / "karat.toml"
    text = re.sub(r"histories = .*", f"histories = {list(names)}", path.read_text())
    path.write_text(text.replace("'", '"'))


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def texts(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page)))


def test_every_series_is_listed_with_what_is_said_of_it(engineer: Browser, workspace: Path) -> None:
    put(workspace, *points())
    page = engineer.get("/trends")
    assert page.status_code == 200
    assert "3 series: 1 shows DRIFT." in texts(page.text)
    rows = engineer.get("/trends?format=json").json()["series"]
    assert [(row["measure"], row["slice"], row["verdict"]) for row in rows] == [
        ("nDCG@10", None, "DRIFT"),
        ("P@5", None, "no drift found"),
        ("nDCG@10", "lang=de", "no drift found"),
    ]
    first = rows[0]
    assert (first["newest"], first["interval"]) == (pytest.approx(0.66), "0.700 to 0.900")
    assert first["change"] == pytest.approx(-0.01)
    assert first["says"].startswith("DRIFT: −0.1100 since 2026-03-03 (0000003), 11 of 11 steps")
    assert address().replace("&", "&amp;") in page.text


def test_what_is_told_apart_is_explained_where_that_stands(
    engineer: Browser, workspace: Path
) -> None:
    fell = [replace(each, values=(Value("AP", at, at - 0.01, at + 0.01, 30),))
            for each, at in zip(points(4), (0.9, 0.9, 0.9, 0.5), strict=True)]  # fmt: skip
    put(workspace, *fell, *points(3, run="dense"))
    assert "significant" not in texts(engineer.get("/trends").text)
    page = texts(engineer.get(address("AP")).text)
    assert page.count("significant") >= 2  # the column, and what it means
    assert "significant: by both intervals" in page
    assert "significant" not in texts(engineer.get(address(run="dense")).text)


@pytest.mark.deep
def test_good_points_are_shown_beside_a_damaged_line(engineer: Browser, workspace: Path) -> None:
    put(workspace, *points(4))
    path = workspace / "history.jsonl"
    path.write_bytes(path.read_bytes() + b'{"karat_history": 1}\n')
    found = engineer.get("/trends?format=json").json()
    assert {row["points"] for row in found["series"]} == {4}
    for where in ("/trends", address()):
        said = texts(engineer.get(where).text)
        assert "1 line is damaged and skipped: line 5: " in said
        assert "Fix: delete the line, or restore the file" in said
    [home] = [each for each in engineer.get("/?format=json").json()["attention"]
              if each["where"] == "/trends"]  # fmt: skip
    assert home["what"] == "The history history.jsonl has 1 damaged line"


def test_the_list_is_filtered_sorted_and_given_as_csv(engineer: Browser, workspace: Path) -> None:
    put(workspace, *points(28), *points(5, run="dense"))

    def found(query: str) -> list[tuple[str, str]]:
        rows = engineer.get(f"/trends?format=json&{query}").json()["series"]
        return [(row["run"], row["measure"]) for row in rows]

    assert found("verdict=DRIFT") == [("bm25", "nDCG@10")]
    assert found("run=dense&slice=none&sort=measure") == [("dense", "nDCG@10"), ("dense", "P@5")]
    assert found("newest=0&run=dense") == [("dense", "P@5")]
    lines = list(csv.DictReader(io.StringIO(engineer.get("/trends?format=csv&q=dense").text)))
    assert {line["run"] for line in lines} == {"dense"}
    assert len(lines) == 3


def test_one_series_has_its_chart_its_points_and_its_breaks(
    engineer: Browser, workspace: Path
) -> None:
    put(workspace, *points())
    page = engineer.get(address()).text
    assert page.count('role="group" aria-label="nDCG@10 over time') == 2, (
        "one for a wide screen, one for a telephone"
    )
    assert "DRIFT: −0.1100 since 2026-03-03" in texts(page)
    assert "Dashed vertical line: not comparable" in page
    rows = engineer.get(address() + "&format=json").json()["points"]
    assert len(rows) == 14
    assert [row["time"] for row in rows][:2] == ["2026-03-14 02:00", "2026-03-13 02:00"]
    [broke] = [row for row in rows if row["break"]]
    assert (broke["time"], broke["differs"]) == ("2026-03-03 02:00", "break: judgments; code")
    assert broke["change"] is None
    assert (rows[0]["ci_low"], rows[0]["ci_high"], rows[0]["n"]) == (0.7, 0.9, 30)


@pytest.mark.deep
def test_no_value_is_not_0(engineer: Browser, workspace: Path) -> None:
    line = points(4)
    line[2] = replace(line[2], values=(Value("P@5", None, n=0),))
    line[1] = replace(line[1], answered=Answered(30, 12, 0, 0))
    put(workspace, *line)
    rows = engineer.get(address("P@5") + "&format=json").json()["points"][::-1]
    assert [row["value"] for row in rows] == [0.0, 0.0, None, 0.0]
    assert [row["counts"] for row in rows] == [True, False, False, True]
    assert rows[2]["verdict"] == "pass: no value"
    assert rows[1]["verdict"] == "pass: 12 of 30 queries got no answer"
    page = engineer.get(address("P@5")).text
    assert "Dotted vertical line: no value" in page
    assert len(engineer.get(address("P@5") + "&format=json&value=none").json()["points"]) == 1


@pytest.mark.deep
def test_a_point_leads_to_what_it_was_computed_from(
    engineer: Browser, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first view on: what is still being computed is waited for."""
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        freeze(opened, "a/b", now=NOW)
        with opened.store.read() as c:
            kept = runs.runs(c, opened.golden.id)[0]
            grades = fingerprint(qrels_of(standing_in(c, opened, "a/b"), opened))
    line = points(3)
    put(workspace, *line[:2], replace(line[2], hashes={"run": kept.sha256, "qrels": grades}))

    def slowly(opened: Workspace) -> None:
        sleep(0.4)  # as the first time in a process, when modules are loaded too
        load_edition_hashes(opened)

    monkeypatch.setattr(trends.workflow, "load_edition_hashes", slowly)
    rows = engineer.get(address() + "&format=json").json()["points"]
    assert [row["kept_run"] for row in rows] == [kept.id, None, None]
    assert [row["graded"] for row in rows] == ["a/b", None, None]
    page = engineer.get(address()).text
    for where in (f"/runs/{kept.id}", "/golden/shop/editions/a%2Fb"):
        assert f'href="{where}"' in page
        assert engineer.get(where).status_code == 200


@pytest.mark.deep
def test_a_page_that_could_not_wait_for_a_column_says_so(
    engineer: Browser, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        freeze(opened, "slow", now=NOW)
    put(workspace, *points(3))
    known = Event()

    def slowly(opened: Workspace) -> None:
        known.wait(20)
        load_edition_hashes(opened)

    monkeypatch.setattr(trends.workflow, "load_edition_hashes", slowly)
    monkeypatch.setattr(trends, "_WAIT_S", 0.01)
    assert trends.EDITIONS_WAIT in texts(engineer.get(address()).text)
    known.set()
    monkeypatch.setattr(trends, "_WAIT_S", 20)
    assert trends.EDITIONS_WAIT not in texts(engineer.get(address()).text)


def test_what_is_wrong_with_a_history_is_said_and_the_others_are_shown(
    workspace: Path, site_settings: Settings, clock: Callable[[], int]
) -> None:
    name_histories(workspace, "history.jsonl", "broken.jsonl", "empty.jsonl", "ci/none.jsonl")
    put(workspace, *points())
    lines = (workspace / "history.jsonl").read_bytes().splitlines(keepends=True)
    (workspace / "broken.jsonl").write_bytes(lines[0] + b"{}\n" + lines[1])
    (workspace / "empty.jsonl").touch()
    with TestClient(create_app(site_settings, clock), base_url="http://127.0.0.1") as client:
        site = client.app.state.site  # type: ignore[attr-defined]
        with site.workspace.store.begin() as c:
            person = people.add(c, "egon", "engineer", None, clock())
        secret = site.accounts.start_session(person, "b")
        client.cookies.set(site.cookie, secret, domain="127.0.0.1")
        said = texts(client.get("/trends").text)
        damage = "1 line is damaged and skipped: line 2: the line is not a point of a history."
        assert f"broken.jsonl: {damage}" in said
        assert "empty.jsonl: it has no points yet." in said
        assert "ci/none.jsonl: the file does not exist yet." in said
        assert "6 series" in said  # three of two points beside the damaged line
        broken = client.get("/trends/broken.jsonl")
        assert broken.status_code == 200
        assert f"broken.jsonl: {damage}" in texts(broken.text)
        for place in ("1", "history.jsonl"):
            assert "nDCG@10 of bm25" in texts(client.get(f"/trends/{place}").text)


def test_without_any_history_the_page_says_how_to_begin(engineer: Browser) -> None:
    page = engineer.get("/trends")
    assert page.status_code == 200
    assert "karat evaluate … --history history.jsonl creates it" in texts(page.text)


@pytest.mark.parametrize(
    "where",
    [
        "/trends/other.jsonl",
        "/trends/..%2Fkarat.toml",
        "/trends/%2Fetc%2Fpasswd",
        "/trends/2",
        address("AP"),
        address(run="other"),
        address(slice="lang=fr"),
    ],
)
def test_what_is_not_there_is_not_found(engineer: Browser, workspace: Path, where: str) -> None:
    put(workspace, *points(2))
    assert engineer.get(where).status_code == 404


@pytest.mark.parametrize("last", ["0", "501", "x"])
def test_a_length_that_no_chart_has_is_refused(
    engineer: Browser, workspace: Path, last: str
) -> None:
    put(workspace, *points(2))
    assert engineer.get(address(last=last)).status_code == 400


@pytest.mark.deep  # the templates escape: test_dashboard.py and test_judge.py
def test_what_strangers_wrote_stays_text(engineer: Browser, workspace: Path) -> None:
    evil = points(3, run=EVIL)
    evil[1] = replace(evil[1], commit=EVIL, rules=EVIL)
    named = Value("nDCG@10", 0.5, attribute="<img src=x onerror=alert(1)>", slice=EVIL)
    put(workspace, *evil, replace(evil[0], time="2026-04-01T00:00:00Z", values=(named,)))
    engineer.fill("/trends/marks", kind="other", text=f"{EVIL}", time="2026-03-02")
    part = f"<img src=x onerror=alert(1)>={EVIL}"
    for where in (
        "/trends",
        address(run=EVIL),
        address(run=EVIL, slice=part),
        f"/trends/{quote(EVIL, safe='')}",
        f"/trends?run={quote(EVIL)}&q={quote(EVIL)}",
    ):
        page = engineer.get(where).text
        assert "alert(1)" in page
        assert "<script>alert" not in page
        assert "<img" not in page
    assert f"nDCG@10, {part}" in texts(engineer.get(address(run=EVIL, slice=part)).text)


def test_an_engineer_adds_a_mark_and_takes_it_away(engineer: Browser, workspace: Path) -> None:
    put(workspace, *points())
    fill = engineer.fill
    said = {"kind": "release", "text": "Release 4", "time": "2026-03-05T10:00"}
    done = fill("/trends/marks", **said, back=address())
    assert (done.status_code, done.headers["location"]) == (303, f"{address()}#marks")
    page = engineer.get(address()).text
    assert "Release 4" in page
    assert "Numbered vertical line: an annotation" in page
    assert "annotation 1 on 2026-03-05: Release 4" in html.unescape(page)
    assert "2026-03-05 10:00" in texts(engineer.get("/trends").text)
    made = engineer.get("/trends?format=json").json()["marks"][0]["id"]
    assert fill(f"/trends/marks/{made}/remove", back="/trends").status_code == 303
    assert "No annotations yet." in engineer.get("/trends").text
    assert fill(f"/trends/marks/{made}/remove").status_code == 400


@pytest.mark.deep
def test_a_mark_before_all_that_is_shown_is_listed_only(engineer: Browser, workspace: Path) -> None:
    put(workspace, *points())
    engineer.fill("/trends/marks", kind="corpus", text="Imported", time="2025-01-01")
    page = engineer.get(address()).text
    assert "Imported" in page
    assert "Numbered vertical line" not in page


def test_anothers_mark_is_an_owners_to_take_away(client_of: ClientOf, workspace: Path) -> None:
    engineer, owner = client_of("engineer"), client_of("owner")
    opened = engineer.site.workspace
    made = add_annotation(opened, time="", kind="other", text="x", person="olga", now=NOW)
    assert "/remove" not in engineer.get("/trends").text
    assert engineer.fill(f"/trends/marks/{made}/remove").status_code == 400
    assert annotations_of(opened).height == 1
    own = add_annotation(opened, time="", kind="other", text="y", person="egon", now=NOW)
    assert owner.fill(f"/trends/marks/{own}/remove").status_code == 303
    audit = texts(owner.get("/audit").text)
    assert "remove mark" in audit
    assert "made by egon" in audit


def test_raters_and_forged_forms_are_refused(client_of: ClientOf) -> None:
    rater, engineer = client_of("rater"), client_of("engineer")
    for where in ("/trends", "/trends/1"):
        assert rater.get(where).status_code == 403
    assert rater.fill("/trends/marks", kind="other", text="x").status_code == 403
    assert engineer.post("/trends/marks", data={"kind": "other", "text": "x"}).status_code == 403
    assert not annotations_of(engineer.site.workspace).height


@pytest.mark.parametrize("back", ["https://evil.example", "//evil.example", "/trendsx", "/audit"])
def test_a_form_leads_back_to_trends_and_nowhere_else(engineer: Browser, back: str) -> None:
    done = engineer.fill("/trends/marks", kind="other", text="x", back=back)
    assert done.headers["location"] == "/trends#marks"


@pytest.mark.deep  # a large history
def test_many_points_are_drawn_in_part_and_listed_in_full(
    engineer: Browser, workspace: Path
) -> None:
    days = pl.datetime_range(pl.datetime(2020, 1, 1), pl.datetime(2022, 9, 26), "1d", eager=True)
    one = points(1)[0]
    put(workspace, *(replace(one, time=f"{day:%Y-%m-%dT%H:%M:%SZ}") for day in days))
    page = engineer.get(address()).text
    assert f"{len(days):,} points" in page
    assert "100 points from 2022-06-19 to 2022-09-26" in page
    assert "500 points from" in engineer.get(address(last="500")).text
    lines = engineer.get(address() + "&format=csv").text.splitlines()
    assert len(lines) == len(days) + 1
