"""Pages of alerts: named on home and on the dashboard, shown with their chart, and handled."""

from __future__ import annotations

import html
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from tests.event_stores import keep_events
from tests.net.visible import visible
from tests.watches import FRIDAY_ENDS, HOWTO, SATURDAY_NOON, cause, change, usual, watched
from tests.web.conftest import Browser, ClientOf, Clock
from tests.workflows.online.incident import incident

from karat.online.rules import HOUR
from karat.tables.online.watch import Explained
from karat.tables.workspace import WatchConfig
from karat.web.framework.state import AppState
from karat.web.online import rounds
from karat.workflows.online import alerts
from karat.workflows.workspace.annotations import add_annotation

SENTENCE = "ZeroResults of topic=howto rose from 5.0 % to 78.0 % since 2026-11-20 03:00"
EVIL = '"><img src=x onerror=alert(1)>'


@pytest.fixture
def clock() -> Clock:
    return Clock(SATURDAY_NOON)


@pytest.fixture
def site(app: FastAPI) -> AppState:
    found: AppState = app.state.site
    return found


@pytest.fixture
def engineer(client_of: ClientOf) -> Browser:
    return client_of("engineer")


@pytest.fixture
def alert(site: AppState) -> int:
    [number] = alerts.record(site.workspace, watched(), now=site.clock())
    return number


def home(engineer: Browser) -> list[tuple[str, str]]:
    found = engineer.get("/?format=json").json()["attention"]
    return [(each["what"], each["where"]) for each in found if "alerts" in each["where"]]


def test_home_names_an_alert_until_it_is_muted_resolved_or_over(
    engineer: Browser, site: AppState, alert: int, clock: Clock
) -> None:
    named = [(f"{SENTENCE}, explains 1 more", f"/online/alerts/{alert}")]
    assert home(engineer) == named
    where = f"/online/alerts/{alert}"
    engineer.fill(where, do="acknowledged")
    assert home(engineer) == [(f"{named[0][0]} (acknowledged by egon)", where)]
    engineer.fill(where, do="muted", until="8h")
    assert home(engineer) == []
    clock.pass_by(8 * 3600)
    assert len(home(engineer)) == 1
    engineer.fill(where, do="resolved")
    assert home(engineer) == []
    engineer.fill(where, do="reopened")
    assert home(engineer) == named
    alerts.record(site.workspace, usual(), now=clock())
    assert home(engineer) == []


def test_an_alert_shows_what_since_when_and_for_whom(
    engineer: Browser, site: AppState, alert: int
) -> None:
    workspace, now = site.workspace, site.clock()
    for time, text in (("2026-11-20T02:30", "synonyms 12"), ("2026-11-20T09:00", "later")):
        add_annotation(workspace, time=time, kind="release", text=text, person="olga", now=now)
    page = engineer.get(f"/online/alerts/{alert}")
    said = visible(page.text)
    assert f"{SENTENCE}, explains 1 more." in said
    for fact in (
        "2.0 to 8.0 %",
        "2026-11-20 03:00 (95 %: 2026-11-20 02:00 to 2026-11-20 04:00)",
        "97 % of the change over all searches",
        "2026-11-20 02:30 synonyms 12",
        "ZeroResults (97 %)",
        "Reset PIN",
    ):
        assert fact in said, fact
    # The hours of two days, each of which leads to its rows, with the onset and both releases.
    assert page.text.count("counts=yes") > 48
    assert ">onset</text>" in page.text
    found = engineer.get(f"/online/alerts/{alert}?format=json").json()
    assert [mark["text"] for mark in found["cause"]["marks"]] == ["synonyms 12", "later"]
    assert found["cause"]["queries"][0]["where"] == (
        "/online/rows?metric=ZeroResults&from=2026-11-20&to=2026-11-20"
        "&slice=topic%3Dhowto&slice=query%3Dreset+pin&counts=yes"
    )
    assert found["alert"]["id"] == alert
    said = "Released before: 2026-11-20 02:30 synonyms 12 (times in UTC)."
    assert said in visible(engineer.get("/").text)
    assert "later" not in found["cause"]["releases"][0]  # it was released after the onset


def test_what_people_do_stands_in_the_history(
    engineer: Browser, client_of: ClientOf, alert: int
) -> None:
    where = f"/online/alerts/{alert}"
    answer: Any = client_of("owner").fill(where, do="muted", until="7d", note="index rebuild")
    assert answer.status_code == 303
    said = visible(engineer.get(where).text)
    assert "muted until 2026-11-28 12:00 UTC by olga" in said
    assert "Muted until 2026-11-28 12:00 UTC by olga: index rebuild" in said
    refused: Any = engineer.fill(where, do="muted", until="soon", note="typed")
    assert refused.status_code == 400
    assert "neither a duration of up to 366 days nor a time" in refused.text
    assert 'value="typed"' in refused.text
    assert engineer.get("/online/alerts/99").status_code == 404
    missing: Any = engineer.fill("/online/alerts/99", do="resolved")
    assert missing.status_code == 404
    rater: Any = client_of("rater").fill(where, do="resolved")
    assert rater.status_code == 403


def test_the_list_has_all_and_says_how_alerts_come(engineer: Browser, site: AppState) -> None:
    assert "A watch opens one" in visible(engineer.get("/online/alerts").text)
    other = cause(change("ErrorRate", {"arm": EVIL}), Explained("CTR", {}, 0.4))
    alerts.record(site.workspace, watched([cause(), other]), now=site.clock())
    over = usual(SATURDAY_NOON, 24)
    alerts.record(site.workspace, over, now=site.clock())
    found = engineer.get("/online/alerts?format=json").json()
    assert (found["lasting"], len(found["alerts"])) == (1, 2)
    assert [row["state"] for row in found["alerts"]] == ["open", "over"]
    only = engineer.get("/online/alerts?state=over&format=json").json()["alerts"]
    assert [row["metric"] for row in only] == ["ZeroResults"]
    for page in ("/online/alerts", "/online/alerts/2", "/"):
        text = engineer.get(page).text
        assert "<img src=x" not in text
        assert EVIL in html.unescape(text)


def test_a_watch_on_the_page_opens_its_alert(engineer: Browser, workspace: Path) -> None:
    keep_events(workspace / "events", incident())
    found = engineer.get("/online/watch?window=1d&day=2026-11-20&format=json").json()
    assert (found["label"], found["verdict"]) == ("2026-11-20", "worse")
    [one] = found["causes"]
    assert one["sentence"].startswith("ZeroResults of topic=howto rose from")
    assert "since 2026-11-20 03:00, explains" in one["sentence"]
    assert one["alert"] == 1
    assert [what for what, _ in home(engineer)] == [one["sentence"]]
    text = engineer.get("/online/watch?window=1d&day=2026-11-20").text
    assert 'href="/online/alerts/1"' in text
    dashboard = engineer.get("/online?format=json").json()["watched"]
    assert (dashboard["sentence"], dashboard["where"]) == (one["sentence"], "/online/alerts/1")


@pytest.mark.deep  # hours: tests/workflows/online/test_watch.py; the form: above
def test_hours_on_the_page(engineer: Browser, workspace: Path) -> None:
    keep_events(workspace / "events", incident())
    asks = "/online/watch?window=6h&{}&format=json"
    found = engineer.get(asks.format("until=2026-11-20+12:00")).json()
    assert (found["label"], found["hour"]) == ("2026-11-20 06:00-12:00", "12")
    assert found == engineer.get(asks.format("day=2026-11-20&hour=12")).json()
    newest = engineer.get("/online/watch?window=6h&format=json").json()
    assert newest["label"] == "2026-11-20 18:00-24:00"
    refused = engineer.get("/online/watch?window=5h")
    assert (refused.status_code, "5 hours do not divide a day" in refused.text) == (400, True)


def test_the_server_watches_each_new_window(
    site: AppState, workspace: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    watches = rounds.Watches()
    clock.now = FRIDAY_ENDS
    with caplog.at_level(logging.INFO, "karat.web"):
        rounds.one_round(site, watches)  # no events: nothing to do
        assert alerts.alerts(site.workspace, now=clock()) == []
        keep_events(workspace / "events", incident())
        rounds.one_round(site, replace(watches, next_us=FRIDAY_ENDS + 1))  # not an hour yet
        assert alerts.alerts(site.workspace, now=clock()) == []
        rounds.one_round(site, watches)
    [found] = alerts.alerts(site.workspace, now=clock())
    assert (found.slice, found.window) == (HOWTO, "2026-11-20")
    assert "watch: 2026-11-20: worse than usual" in caplog.text
    clock.pass_by(3600)
    caplog.clear()
    rounds.one_round(site, watches)  # the same window
    assert caplog.text == ""
    assert watches.next_us == FRIDAY_ENDS + HOUR


def test_watching_can_be_turned_off(site: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(rounds, "one_round", lambda *given: called.append(given))
    object.__setattr__(site.workspace.workspace, "watch", WatchConfig(every_us=0))
    with rounds.watch_goes_on(site):
        pass
    assert called == []
