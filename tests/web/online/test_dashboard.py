"""The dashboard: what users did, over time and in slices; null is a gap and never 0."""

from __future__ import annotations

import csv
import html
import io
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.web.conftest import Browser, ClientOf, with_deep
from tests.web.online_log import put_users

from karat.online.metrics import registry
from karat.store.sql import queries
from karat.web.online import dashboard
from karat.workflows.online import log_requests
from karat.workflows.workspace.annotations import add_annotation

pytest.importorskip("vl_convert")

EVIL = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def texts(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page)))


def headline(found: dict[str, Any], metric: str) -> dict[str, Any]:
    [row] = [each for each in found["headlines"] if each["metric"] == metric]
    return dict(row)


def test_without_a_log_it_says_the_command(engineer: Browser) -> None:
    for where in ("/online", "/online/queries", "/online/watch", "/online/against", "/online/rows"):
        page = engineer.get(where)
        assert page.status_code == 200
        assert "karat online import LOG…" in page.text, where
        assert engineer.get(f"{where}?format=json").json()["lacking"]["none"] is True


def test_a_program_is_told_that_there_is_no_log(engineer: Browser, workspace: Path) -> None:
    for where in ("/online", "/online/queries", "/online/watch", "/online/against", "/online/rows"):
        answer = engineer.get(f"{where}?format=csv", headers={"accept": "*/*"})
        assert answer.status_code == 400, where
        assert answer.json()["error"]["message"] == "no events were imported yet", where
        page = engineer.get(f"{where}?format=csv")
        assert (page.status_code, "No events were imported yet" in page.text) == (400, True), where
        # Where they would lie on the server is no business of who looks.
        assert str(workspace) not in engineer.get(f"{where}?format=json").text, where


def test_a_slice_that_no_search_has_is_said(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    page = engineer.get("/online?metrics=CTR&by=device&only=phoen")
    assert page.status_code == 200
    assert "has “phoen” as its device. Did you mean “phone”?" in texts(page.text)
    assert "by=device&amp;only=phone" in page.text
    right = engineer.get("/online?metrics=CTR&by=device&only=phone&format=json").json()
    assert right["wrong"] is None


@pytest.mark.deep
@pytest.mark.usefixtures("anew")
def test_a_slice_of_too_many_is_said(
    engineer: Browser, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_users(workspace)
    for module in (log_requests, dashboard):
        monkeypatch.setattr(module, "MOST_SLICES", 1)
    page = engineer.get("/online?by=device&only=phone").text
    assert "“phone” is not one of them" in texts(page)


def test_a_damaged_store_says_what_is_wrong(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    (workspace / "events/manifest.json").write_text("{", encoding="utf-8")
    page = engineer.get("/online")
    assert page.status_code == 200
    assert "manifest" in page.text
    assert "karat online import LOG…" not in page.text


def test_each_metric_with_its_interval_n_and_users(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    found = engineer.get("/online?format=json").json()
    assert found["period"] == ["2027-01-10", "2027-01-14"]
    cell = headline(found, "CTR")["cell"]
    # 4 days × 12 users × 3 queries with results; of these (6 + 3 + 9) × 4 were clicked on.
    assert (cell["value"], cell["n"], cell["users"]) == (72 / 144, 144, 12)
    # Users clicked on 12, 8, 4 and 0 of their 12 searches with results, three users each: the
    # shares have variance 3 × (1/4 + 1/36 + 1/36 + 1/4) / 11, their mean a standard error of
    # √(0.15152 / 12) = 0.11237, and t(11) is 2.20099 at 97.5 %.
    assert cell["low"] == pytest.approx(0.5 - 2.20099 * 0.112367, abs=1e-5)
    assert cell["high"] == pytest.approx(0.5 + 2.20099 * 0.112367, abs=1e-5)
    assert (cell["said"], cell["interval"]) == ("50.0 %", "25.3 to 74.7")
    zero = headline(found, "ZeroResults")["cell"]
    assert (zero["value"], zero["n"], zero["low"]) == (48 / 192, 192, None)
    assert zero["reason"]  # why there is no interval
    # Every reading was seen to end, so that nothing is left open.
    sat = headline(found, "SAT")["cell"]
    assert (sat["least"], sat["most"]) == (0.5, 0.5)
    page = engineer.get("/online").text
    for said in ("50.0 %", "25.3 to 74.7", "144", "less than a week"):
        assert said in page


def test_health_stands_before_any_number(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    page = engineer.get("/online").text
    assert page.index("5 days are less than a week") < page.index("50.0 %")


def test_what_the_log_cannot_say_is_not_a_zero(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    found = engineer.get("/online?metrics=CTR,Conversion&format=json").json()
    assert ["Conversion", "the log has no purchases"] in found["unknown"]
    assert [row["metric"] for row in found["headlines"]] == ["CTR"]
    said = texts(engineer.get("/online?metrics=CTR,Conversion").text)
    assert "Not available: Conversion (the log has no purchases)." in said


def test_a_day_without_searches_is_a_gap(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    found = engineer.get("/online?metrics=CTR&format=json").json()
    days = {row["day"]: row["value"] for row in found["figures"] if row["day"]}
    assert days == dict.fromkeys([f"2027-01-{day}" for day in (10, 12, 13, 14)], 0.5)
    [chart] = found["charts"]
    assert chart["gaps"] == ["1 day without a value (2027-01-11): nothing to count"]
    sliced = engineer.get("/online?metrics=CTR&by=arm&format=json").json()
    [chart] = sliced["charts"]
    assert chart["gaps"] == ["a, b: 1 day without a value (2027-01-11): nothing to count"]
    page = engineer.get("/online?metrics=CTR").text
    # The day says so where it is pointed at, and the line is cut there: two pieces in each of two
    # drawings (for a wide and for a narrow screen), one of them a point alone.
    assert page.count("2027-01-11: nothing to count") == 2
    assert "1 day without a value (2027-01-11): nothing to count" in texts(page)


@pytest.mark.deep  # in Chromium in test_dashboard_browser.py
def test_arms_are_lines_of_their_own(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    found = engineer.get("/online?by=arm&metrics=CTR,SAT&format=json").json()
    slices = headline(found, "CTR")["slices"]
    # Arm a, users 0 to 5: 6 + 3 + 6 of 18 each day; arm b: 3 of 18.
    assert slices["a"]["value"] == pytest.approx(15 / 18)
    assert slices["b"]["value"] == pytest.approx(3 / 18)
    assert [value for value, _, _ in found["values"]] == ["a", "b"]
    chart = next(each for each in found["charts"] if each["metric"] == "CTR")
    assert "a: lowest 83.3 %" in chart["described"]
    assert "b: lowest 16.7 %" in chart["described"]
    assert "slice=arm%3Da" in slices["a"]["where"]
    page = engineer.get("/online?by=arm&metrics=CTR,SAT").text
    assert "var(--line-1)" in page
    assert "var(--line-2)" in page


def test_one_slice_can_be_shown_alone(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    found = engineer.get("/online?by=device&only=phone&metrics=CTR&format=json").json()
    # Of the users with a phone 0, 2, 4 | 0, 2 | 0, 2, 4, 6, 8 click, of 6 who see each.
    assert headline(found, "CTR")["cell"]["value"] == pytest.approx((3 + 2 + 5) / 18)
    assert headline(found, "CTR")["slices"] == {}


@pytest.mark.deep  # test_queries.py has slices by the golden set
def test_queries_of_the_golden_set_are_slices(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    site = engineer.site
    with site.workspace.store.begin() as c:
        frame = queries.frame(c, site.workspace.golden.id)
        kinds = ["wear", "garden", "garden", "wear"]
        queries.put(c, site.workspace.golden.id, frame.with_columns(pl.Series("kind", kinds)), 1)
    found = engineer.get("/online?by=golden:kind&metrics=ZeroResults&format=json").json()
    slices = headline(found, "ZeroResults")["slices"]
    # "wear" are red shoes and the wool hat, which alone finds nothing.
    assert {name: cell["value"] for name, cell in slices.items()} == {"wear": 0.5, "garden": 0.0}
    assert "slice=golden%3Akind%3Dwear" in slices["wear"]["where"]
    rows = engineer.get(f"{slices['wear']['where']}&format=json").json()
    assert (rows["total"], rows["rows"][0]["query"]) == (48, "wool hat")


def test_three_days_are_shown_by_the_hour(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    found = engineer.get("/online?from=2027-01-12&to=2027-01-13&metrics=CTR&format=json").json()
    assert found["hourly"] is True
    hours = {
        (row["day"], row["hour"]): row["value"] for row in found["figures"] if row["hour"] == "11"
    }
    # At eleven everybody looks for a ladder, and 9 of 12 click.
    assert hours == {("2027-01-12", "11"): 0.75, ("2027-01-13", "11"): 0.75}
    # Nobody found anything at twelve, so that there is nothing to click on.
    # (48 hours but for 9, 10 and 11 o'clock of both days)
    gaps = found["charts"][0]["gaps"]
    assert gaps == [
        (
            "42 hours without a value (2027-01-12, 00:00 to 08:00; 2027-01-12, 12:00 to "
            "2027-01-13, 08:00; 2027-01-13, 12:00 to 23:00): nothing to count"
        )
    ]


def test_marks_stand_in_the_charts(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    opened, evil = engineer.site.workspace, f"Release {EVIL}"
    add_annotation(opened, time="2027-01-13T10:00", kind="release", text=evil, person="egon", now=1)
    add_annotation(
        opened, time="2026-01-13T10:00", kind="release", text="Before", person="egon", now=1
    )
    found = engineer.get("/online?metrics=CTR&format=json").json()
    assert [(each["number"], each["text"]) for each in found["marks"]] == [(1, evil)]
    page = engineer.get("/online?metrics=CTR").text
    assert "<img src=x" not in page
    assert "annotation 1: Release" in html.unescape(page)


def test_every_number_leads_to_its_rows(engineer: Browser, workspace: Path, *, deep: bool) -> None:
    put_users(workspace)
    metrics = ("CTR", "SuccessPerSession", "ZeroResults", "Dwell")[: 4 if deep else 2]
    found = engineer.get(f"/online?by=arm&metrics={','.join(metrics)}&format=json").json()
    leads = [
        (headline(found, name)["cell"], 48 if name == "ZeroResults" else 72) for name in metrics
    ]
    for cell, total in (*leads, (headline(found, "CTR")["slices"]["a"], 60)):
        rows = engineer.get(f"{cell['where']}&format=json").json()
        assert rows["total"] == total, cell["where"]
    page = engineer.get("/online?metrics=CTR").text
    step = re.search(r'href="(/online/rows\?metric=CTR&amp;from=2027-01-13[^"]*)"', page)
    assert step is not None
    rows = engineer.get(f"{html.unescape(step[1])}&format=json").json()
    assert rows["period"] == ["2027-01-13", "2027-01-13"]
    # Of that day's 36 searches with results those that were clicked on, and they alone.
    assert (rows["counts"], rows["total"]) == ("yes", 18)
    page = engineer.get("/online?metrics=CTR&by=arm&only=b&from=2027-01-13&to=2027-01-13").text
    step = re.search(r'href="(/online/rows\?metric=CTR&amp;[^"]*hour%3D11[^"]*)"', page)
    assert step is not None
    assert engineer.get(f"{html.unescape(step[1])}&format=json").json()["total"] == 3


@pytest.mark.deep  # in Chromium in test_dashboard_browser.py
def test_what_is_simulated_says_so(engineer: Browser, workspace: Path) -> None:
    put_users(workspace, simulated=True)
    run = "/online/against?run=old"
    for where in ("/online", "/online/queries", "/online/watch", run, "/online/rows"):
        assert ">simulated</span>" in engineer.get(where).text, where


def test_names_of_strangers_are_text(engineer: Browser, workspace: Path) -> None:
    put_users(workspace, shop=EVIL)
    page = engineer.get("/online?by=shop&metrics=CTR").text
    assert "<img src=x" not in page
    assert EVIL in html.unescape(page)


def test_the_list_is_the_csv(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    answer = engineer.get("/online?metrics=CTR&by=arm&format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    # All; 4 days; 2 arms; 2 arms × 4 days.
    assert len(rows) == 1 + 4 + 2 + 8
    assert rows[0]["value"] == "0.5"


def test_metrics_that_are_picked_stand_in_the_address(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    answer = engineer.get("/online?pick=CTR&pick=ctr@3&by=arm", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/online?metrics=CTR%2CCTR%403&by=arm"
    found = engineer.get(f"{answer.headers['location']}&format=json").json()
    assert [row["metric"] for row in found["headlines"]] == ["CTR", "CTR@3"]


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ("by=devic", "device"),
        *with_deep(("metrics=ctrr", "CTR"), ("from=yesterday", "2026-11-01")),
        ("from=2027-01-14&to=2027-01-10", "give the earlier day first"),
        ("from=2025-01-01&to=2025-01-02", "from 2027-01-10 to 2027-01-14"),
    ],
)
def test_what_cannot_be_meant_is_said(
    engineer: Browser, workspace: Path, asks: str, said: str
) -> None:
    put_users(workspace)
    answer = engineer.get(f"/online?{asks}")
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)


@pytest.mark.parametrize(
    ("where", "asks", "kept_in"),
    [
        ("/online", "from=2026-12-20&to=2026-12-10&by=device&metrics=CTR", ["CTR", "device"]),
        *with_deep(
            (
                "/online",
                "from=2027-01-10&to=2027-01-12&metrics=ctrr,SAT&by=device",
                ["SAT", "device"],
            ),
            ("/online/queries", "from=2026-12-20&to=2026-12-10&by=device", ["device"]),
        ),
        (
            "/online/rows",
            "from=2026-12-20&to=2026-12-10&metric=SAT&slice=arm%3Da",
            ["SAT", "arm=a"],
        ),
        *with_deep(
            ("/online/rows", "from=2027-01-10&to=2027-01-12&slice=hour%3Dnoon&metric=SAT", ["SAT"]),
            ("/online/rows", "from=2027-01-10&slice=nope%3Da&metric=SAT", ["SAT"]),
            ("/online/against", "from=2026-12-20&to=2026-12-10&run=old", ["old"]),
        ),
        ("/online/against", "measure=ndgc&run=old&metric=SAT", ["old", "SAT"]),
        ("/online/watch", "day=2026-12-20&by=device", ["device"]),
    ],
)
def test_a_refused_form_is_shown_again_with_what_was_typed(
    engineer: Browser, workspace: Path, where: str, asks: str, kept_in: list[str]
) -> None:
    put_users(workspace)
    answer = engineer.get(f"{where}?{asks}")
    assert answer.status_code == 400
    assert 'class="wrong" role="alert"' in answer.text
    assert re.search(r'<a href="/online" aria-current="true">Online', answer.text), "the menu"
    form = answer.text[answer.text.index('<form class="filters"') :]
    for name, day in re.findall(r"(from|to|day)=(2\d{3}-\d\d-\d\d)", asks):
        assert f'name="{name}" value="{day}"' in form
    for said in kept_in:
        chosen = rf'<option[^>]*selected>{said}<|value="{said}"( selected| checked|>)'
        assert re.search(chosen, form), said
    # A program is told as ever.
    answer = engineer.get(f"{where}?{asks}&format=json", headers={"accept": "*/*"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "usage")


@pytest.mark.usefixtures("anew")
def test_numbers_that_are_computed_show_how_far_they_are_and_can_be_cancelled(
    engineer: Browser, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_users(workspace)
    gate, calls, real = threading.Event(), [], log_requests.evaluate_log

    def slow(*args: Any, progress: Any, **how: Any) -> Any:
        calls.append(1)
        progress(1, 4)
        assert gate.wait(60)
        return real(*args, progress=progress, **how)

    monkeypatch.setattr(log_requests, "evaluate_log", slow)
    monkeypatch.setattr("karat.web.online.log.WAIT_S", 0.05)
    where = "/online?metrics=CTR"
    while "25%" not in (page := engineer.get(where).text):
        assert "are being computed" in page
    assert "reading events" in page
    cancel = re.search(r'action="(/jobs/online-\w+/cancel)".*?name="back" value="(.*?)"', page)
    assert cancel is not None
    answer = engineer.fill(cancel[1], back=html.unescape(cancel[2]))
    assert answer.headers["location"] == where
    gate.set()
    while "The computation was cancelled." not in (page := engineer.get(where).text):
        assert "data-waits" in page
    assert "data-waits" not in page
    assert "refresh" not in page
    assert engineer.get(f"{where}&format=json").status_code == 503
    assert len(calls) == 1


@pytest.mark.usefixtures("anew")
def test_a_page_whose_numbers_take_long_says_so_and_has_them_later(
    engineer: Browser, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = put_users(workspace)
    gate, calls, real = threading.Event(), [], log_requests.evaluate_log

    def slow(*args: Any, **how: Any) -> Any:
        calls.append(1)
        gate.wait(30)
        return real(*args, **how)

    monkeypatch.setattr(log_requests, "evaluate_log", slow)
    monkeypatch.setattr("karat.web.online.log.WAIT_S", 0.05)
    monkeypatch.setattr("karat.web.online.log.LONGEST_S", 0.05)
    page = engineer.get("/online?metrics=CTR")
    assert page.status_code == 200
    assert "are being computed" in page.text
    assert "data-waits" in page.text
    assert '<noscript><meta http-equiv="refresh"' in page.text
    answer = engineer.get("/online?metrics=CTR&format=json")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    gate.set()
    monkeypatch.setattr("karat.web.online.log.WAIT_S", 30.0)
    assert "50.0 %" in engineer.get("/online?metrics=CTR").text
    assert len(calls) == 1  # whoever asked, it was computed once
    engineer.site.workspace.artifacts.forget()  # as a restart does
    assert "50.0 %" in engineer.get("/online?metrics=CTR").text
    assert len(calls) == 1
    assert len(list((workspace / "artifacts").glob("online-*/*"))) == 1
    shutil.rmtree(log.folder)
    put_users(workspace, more="x")  # the log is another, and so are its numbers
    assert "50.0 %" in engineer.get("/online?metrics=CTR").text
    assert len(calls) == 2


@pytest.mark.deep
def test_every_metric_of_the_catalogue_is_drawn(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    names = [metric.name for metric in registry.all_metrics()]
    found = engineer.get("/online", params={"metrics": ",".join(names), "format": "json"}).json()
    told = {row["metric"] for row in found["headlines"]} | {name for name, _ in found["unknown"]}
    assert told | {"ClickPosition"} == set(names)
    assert found["positions"] == [["1", 1.0, 72]]


@pytest.mark.deep  # lists are sorted by framework/lists.py
def test_figures_are_sorted_by_their_numbers(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    where = "/online?metrics=CTR,ZeroResults,Latency(p95)&by=device&format=json"
    for sort, by in (("said", "value"), ("interval", "low"), ("bounds", "least")):
        rows = engineer.get(f"{where}&sort={sort}").json()["figures"]
        values = [row[by] for row in rows if row[by] is not None]
        assert values == sorted(values)
    page = engineer.get("/online?metrics=CTR&by=device&sort=-said").text
    assert 'href="?metrics=CTR&amp;by=device&amp;sort=said#figures"' in page


@pytest.mark.deep  # reports and workflows have them
def test_bounds_that_leave_nothing_open_are_not_said(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)  # every reading was seen to end
    page = texts(engineer.get("/online?metrics=SAT&by=arm").text)
    assert "within" not in page.partition("By day")[0]


def test_clicks_by_position_alone_have_no_empty_parts(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    page = engineer.get("/online?metrics=ClickPosition").text
    assert "Clicks by position" in page
    for empty in ('id="headlines"', 'class="cards headlines"', 'id="over-time"'):
        assert empty not in page
    assert 'class="bar"' not in page.partition("<main")[2]


@pytest.mark.deep
def test_long_names_of_slices_are_cut(engineer: Browser, workspace: Path) -> None:
    long = "x" * 250
    put_users(workspace, shop=long)
    page = engineer.get("/online?by=shop&metrics=CTR").text
    assert long not in re.sub(r'="[^"]*"', "", page)  # nowhere but in what stands behind
    assert f'title="{long}"' in page
    assert engineer.get("/online?by=shop&metrics=CTR&format=csv").text.count(long) == 5
