"""The watch in the browser, and at a glance on the dashboard."""

from __future__ import annotations

import csv
import html
import io
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.event_stores import keep_events
from tests.web.conftest import Browser, ClientOf
from tests.web.online_log import put_users
from tests.workflows.online.weeks import FRIDAY, SUNDAY, broken_on_friday, weeks

from karat.engines.frames.opening import open_engine
from karat.online.rules import DAY, HOUR
from karat.store.events.log import read_event_log
from karat.workflows.online.log_requests import MOST_CUTS
from karat.workflows.online.watch import watch

EVIL = '"><img src=x onerror=alert(1)>'


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karat.web.online.log.WAIT_S", 60.0)
    monkeypatch.setattr("karat.web.online.log.LONGEST_S", 60.0)


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def events(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    types = {"position": pl.Int32, "returned": pl.Int32, "total_hits": pl.Int64}
    return pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)


def put(workspace: Path, rows: Sequence[dict[str, Any]]) -> None:
    keep_events(workspace / "events", events(rows))


@cache
def _broken() -> pl.DataFrame:
    return events(broken_on_friday())


def put_broken(workspace: Path) -> None:
    keep_events(workspace / "events", _broken())


def glance(engineer: Browser, asks: str = "") -> dict[str, Any] | None:
    """What the dashboard says of its last day, once it is computed."""
    until = time.monotonic() + 60
    while True:
        found = engineer.get(f"/online?format=json{asks}").json()["watched"]
        if found is None or found["verdict"] is not None or time.monotonic() > until:
            return dict(found) if found else None
        time.sleep(0.05)


def test_what_moved_its_slice_and_its_queries(engineer: Browser, workspace: Path) -> None:
    put_broken(workspace)
    found = engineer.get("/online/watch?day=2026-11-20&format=json").json()
    assert (found["verdict"], found["said"]) == ("worse", "worse than usual")
    [code] = found["causes"]
    assert code["sentence"].startswith("ZeroResults of kind=code rose from")
    assert "to 90.0 %" in code["sentence"]
    # Of 60 searches for CMS, 54 find nothing: they are what the sentence and the query lead to.
    assert [row["text"] for row in code["queries"]] == ["CMS"]
    for where in (code["where"], code["queries"][0]["where"]):
        rows = engineer.get(f"{where}&format=json").json()
        assert rows["period"] == ["2026-11-20", "2026-11-20"]
        assert len(rows["rows"]) == 54, where
    page = html.unescape(engineer.get("/online/watch?day=2026-11-20").text)
    assert "2026-11-20: worse than usual" in page
    assert code["sentence"] in page
    worst = engineer.get(found["worst"] + "&format=json").json()
    assert worst["queries"][0]["text"] == "CMS"


def test_every_comparison_is_in_the_list(engineer: Browser, workspace: Path) -> None:
    put_broken(workspace)
    asks = "/online/watch?day=2026-11-20&by=kind&format="
    answer = engineer.get(f"{asks}csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    said = {(row["metric"], row["slice"]): row["verdict"] for row in rows}
    assert said["ZeroResults", "kind=code"] == "worse"
    assert said["ZeroResults", "kind=name"] == "as usual"
    only = engineer.get(f"{asks}json&verdict=worse&sort=n").json()["changes"]
    assert len(only) == sum(row["verdict"] == "worse" for row in rows)
    assert only[0]["slice"] == "kind=code"


def test_the_last_whole_day_unless_one_is_named(engineer: Browser, workspace: Path) -> None:
    # A week is too short for a verdict, which is not asked for here.
    saturday, noon = (SUNDAY - 8) * DAY, SUNDAY * DAY + 12 * HOUR
    put(workspace, [row for row in broken_on_friday() if saturday <= row["time_us"] < noon])
    assert engineer.get("/online/watch?format=json").json()["day"] == "2026-11-21"


@pytest.mark.deep  # that a window is not complete is in tests/workflows/online/test_watch.py
def test_a_day_that_is_named_and_not_over_is_compared(engineer: Browser, workspace: Path) -> None:
    noon = SUNDAY * DAY + 12 * HOUR
    put(workspace, [row for row in broken_on_friday() if row["time_us"] < noon])
    assert engineer.get("/online/watch?format=json").json()["day"] == "2026-11-21"
    found = engineer.get("/online/watch?day=2026-11-22&format=json").json()
    assert any("2026-11-22 is not complete" in note for note in found["notes"])


def test_the_dashboard_says_what_is_worse(engineer: Browser, workspace: Path) -> None:
    put_broken(workspace)
    found = glance(engineer, "&from=2026-11-17&to=2026-11-20")
    assert found is not None
    assert (found["day"], found["verdict"]) == ("2026-11-20", "worse")
    assert found["sentence"].startswith("ZeroResults of kind=code rose from")
    page = html.unescape(engineer.get("/online?from=2026-11-17&to=2026-11-20").text)
    assert found["sentence"] in page
    assert engineer.get(found["where"]).status_code == 200
    # Who looks at one metric is not told of others.
    assert engineer.get("/online?metrics=CTR&format=json").json()["watched"] is None


@pytest.mark.deep  # one verdict on the dashboard is in the one before it
def test_the_dashboard_says_nothing_of_a_day_that_is_fine(
    engineer: Browser, workspace: Path
) -> None:
    put_broken(workspace)
    found = glance(engineer, "&from=2026-11-17&to=2026-11-19")
    assert found is not None
    assert (found["day"], found["verdict"], found["sentence"]) == ("2026-11-19", "fine", "")


def test_too_few_weeks_are_said_and_no_verdict(engineer: Browser, workspace: Path) -> None:
    put_users(workspace)
    assert glance(engineer) is None
    found = engineer.get("/online/watch?format=json").json()
    assert (found["verdict"], found["changes"]) == ("cannot_tell", None)
    assert "earlier windows like 2027-01-13 are needed" in found["doubts"][0]
    assert engineer.get("/online/watch").status_code == 200


@pytest.mark.deep  # both call karat.workflows.online.watch
def test_the_whole_is_judged_as_the_command_does(engineer: Browser, workspace: Path) -> None:
    # Ten attributes that say nothing: each slice is a test more, and none of them of the whole.
    noise = {f"attribute_noise{n}": f"{n}" for n in range(10)}
    put(workspace, [row | noise for row in broken_on_friday()])
    found = engineer.get("/online/watch?day=2026-11-20&format=json").json()
    with open_engine() as engine:
        log = read_event_log(workspace / "events")
        told = watch(log, engine, now=0, until="2026-11-20")
    whole = {row["metric"]: row for row in found["changes"] if row["slice"] is None}
    for change in told.changes:
        # Sums of users may differ in their last digit, as they are added in parallel.
        own = whole[change.metric]["p_adjusted"]
        assert own == pytest.approx(change.p_adjusted, rel=1e-9)
    assert (
        f"not sliced by {len(noise) + 1 - MOST_CUTS} more attributes: choose one to see it"
        in found["notes"]
    )


@pytest.mark.deep  # the verdict itself is tested in tests/workflows/online/test_watch.py
def test_a_day_that_is_only_better_says_so(engineer: Browser, workspace: Path) -> None:
    # Each day 54 of the 60 searches for CMS are in vain, but on Friday 2.
    worst = {"zeros": {"CMS": 54, "Pump": 2, "Pipe wrench": 1, "Valve": 1}}
    fewer = {"zeros": {"CMS": 2, "Pump": 2, "Pipe wrench": 1, "Valve": 1}}
    days = dict.fromkeys(range(FRIDAY - 34, SUNDAY + 1), worst) | {FRIDAY: fewer}
    put(workspace, weeks(days))
    said = "nothing is worse, something is better"
    found = engineer.get("/online/watch?day=2026-11-20&format=json").json()
    assert (found["verdict"], found["said"]) == ("fine", said)
    seen = glance(engineer, "&from=2026-11-17&to=2026-11-20")
    assert seen is not None
    assert (seen["verdict"], seen["said"]) == ("fine", said)


@pytest.mark.deep  # the doubt itself is in tests/workflows/online/test_watch.py
def test_doubts_stand_on_the_dashboard_too(engineer: Browser, workspace: Path) -> None:
    # On Friday 20 people ask each question, and on every other day 60: 80 searches, and 240.
    put(workspace, weeks({FRIDAY: {"per_query": 20, "zeros": {}}}))
    seen = glance(engineer, "&from=2026-11-17&to=2026-11-20")
    assert seen is not None
    assert "80 searches in 2026-11-20, and 240 to 240 in earlier windows" in seen["doubt"]
    assert seen["doubt"] in html.unescape(
        engineer.get("/online?from=2026-11-17&to=2026-11-20").text
    )


@pytest.mark.deep
def test_attributes_of_names_that_karat_has_are_left_out(
    engineer: Browser, workspace: Path
) -> None:
    names = ["class", "day", "query", "users"]
    own = {f"attribute_{name}": "x" for name in names}
    put(workspace, [row | own for row in broken_on_friday()])
    found = engineer.get("/online/watch?day=2026-11-20&format=json").json()
    assert f"cannot slice by {', '.join(names)}: the name is reserved" in found["notes"]
    assert any(row["slice"] == "kind=code" for row in found["changes"])
    for name in names:
        page = engineer.get(f"/online/watch?day=2026-11-20&by={name}")
        # The form is still there.
        assert (page.status_code, 'name="day"' in page.text) == (400, True), name
        assert 'class="wrong"' in page.text, name


def test_of_a_log_of_one_day_that_is_not_over(engineer: Browser, workspace: Path) -> None:
    day = [
        row for row in broken_on_friday() if FRIDAY * DAY <= row["time_us"] < FRIDAY * DAY + DAY / 2
    ]
    put(workspace, day)
    assert engineer.get("/online/watch?format=json").json()["day"] == "2026-11-20"
    assert "earlier windows" in engineer.get("/online/watch?format=csv").text


@pytest.mark.deep  # as in test_dashboard.py and test_queries.py
def test_names_of_strangers_are_text(engineer: Browser, workspace: Path) -> None:
    rows = broken_on_friday()
    put(workspace, [row | {"query": row.get("query", "") + EVIL, "attribute_kind": EVIL}
                    if row["kind"] == "search" else row for row in rows])  # fmt: skip
    page = engineer.get("/online/watch?day=2026-11-20").text
    assert "<img src=x" not in page
    assert EVIL in html.unescape(page)
    assert glance(engineer, "&from=2026-11-17&to=2026-11-20") is not None
    assert "<img src=x" not in engineer.get("/online?from=2026-11-17&to=2026-11-20").text


@pytest.mark.parametrize(
    ("asks", "said"),
    [("day=yesterday", "'yesterday' is not a date"), ("by=knid", "Did you mean kind?"),
     ("day=2020-01-01", "The period is outside the log")],
)  # fmt: skip
def test_what_cannot_be_is_said(engineer: Browser, workspace: Path, asks: str, said: str) -> None:
    put_broken(workspace)
    assert said in html.unescape(engineer.get(f"/online/watch?{asks}").text)
