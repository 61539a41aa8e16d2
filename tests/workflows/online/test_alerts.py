"""Alerts: an incident of a month is one alert, which people handle and webhooks hear of once."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.event_stores import keep_events
from tests.watches import FRIDAY_ENDS, ONSET, SATURDAY_NOON, cause, change, usual, watched
from tests.workflows.online.incident import BEGAN, FRIDAY, SATURDAY_MORNING, incident

from karat.clients import webhook
from karat.engines.frames.opening import open_engine
from karat.errors import UsageError
from karat.online.rules import DAY, HOUR
from karat.store.sql import audit
from karat.tables.online.alerts import Alert
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Explained, Watched
from karat.tables.workspace import WatchConfig
from karat.workflows.online import alerts
from karat.workflows.online.watch import event, watch
from karat.workflows.workspace.annotations import add_annotation, annotations_of
from karat.workflows.workspace.workspace import Workspace, open_workspace

NOW = SATURDAY_NOON


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> EventLog:
    """The incident from Friday at 3 to Saturday at 6, in a log that ends with Saturday."""
    folder = tmp_path_factory.mktemp("month") / "events"
    return keep_events(folder, incident(SATURDAY_MORNING, last=FRIDAY + 1))


@pytest.fixture(scope="module")
def friday(log: EventLog) -> Watched:
    with open_engine() as engine:
        return watch(log, engine, now=0, until="2026-11-20", by=["topic", "device"])


def all_(opened: Workspace, now: int = NOW) -> list[Alert]:
    return alerts.alerts(opened, now=now)


def test_an_incident_is_one_cause_with_its_hour(friday: Watched) -> None:
    [one] = friday.causes
    assert (one.lead.metric, one.lead.slice) == ("ZeroResults", {"topic": "howto"})
    # 7 of 8 hours of the day at 78 %, and one at 5 %.
    assert one.lead.value == pytest.approx(0.69, abs=0.05)
    assert one.lead.expected == pytest.approx(0.05, abs=0.02)
    assert {each.metric for each in one.explains} >= {"ZeroResults", "Abandonment"}
    assert len(one.explains) == len(friday.found("worse")) - 1 >= 5
    assert all(query.startswith("howto") for query in one.queries)
    assert one.onset is not None
    assert one.onset.at in {"2026-11-20 02:00", "2026-11-20 03:00", "2026-11-20 04:00"}
    assert one.onset.ended is None
    assert [hour.start for hour in one.onset.hours[::24]] == [
        "2026-11-18 00:00", "2026-11-19 00:00", "2026-11-20 00:00",
    ]  # fmt: skip


def test_one_alert_from_its_first_window_to_its_end(
    log: EventLog, friday: Watched, shop: Workspace
) -> None:
    assert len(alerts.record(shop, friday, now=NOW)) == 1
    [alert] = all_(shop)
    assert abs(alert.onset_us - BEGAN) <= HOUR
    assert (alert.state, alert.lasts, alert.closed_us) == ("open", True, None)
    assert "rose from" in alert.text
    assert f"explains {len(friday.found('worse')) - 1} more" in alert.text
    assert alerts.record(shop, friday, now=NOW) == [], "seen again"
    with open_engine() as engine:
        # The hours after it are as usual; but they are fewer than those that saw it.
        noon = watch(log, engine, now=0, until="2026-11-21 12:00", window="6h", by=["topic"])
    assert noon.verdict == "fine"
    assert alerts.record(shop, noon, now=NOW) == []
    assert all_(shop)[0].lasts
    alerts.record(shop, replace(noon, hours=24), now=NOW)
    [alert] = all_(shop)
    assert (alert.state, alert.lasts, alert.closed_us) == ("over", False, SATURDAY_NOON)


def test_history_is_not_recorded(log: EventLog, shop: Workspace) -> None:
    # The log ends with Saturday, so Thursday is history, and so is 6 to 12 of Friday.
    past = watched(ends_us=FRIDAY * DAY)
    assert alerts.remember(shop, log, past, now=NOW) is None
    hours = watched(ends_us=FRIDAY * DAY + 12 * HOUR, hours=6)
    assert alerts.remember(shop, log, hours, now=NOW) is None
    assert all_(shop) == []
    assert alerts.remember(shop, log, watched(), now=NOW) == []
    assert len(all_(shop)) == 1


def test_two_processes_open_one_alert(shop: Workspace) -> None:
    root = shop.workspace.root

    def record(_: int) -> list[int]:
        with open_workspace(root, now=NOW) as opened:
            return alerts.record(opened, watched(), now=NOW)

    with ThreadPoolExecutor(4) as threads:
        fresh = list(threads.map(record, range(8)))
    assert sorted(fresh) == [[]] * 7 + [[1]]
    assert len(all_(shop)) == 1


def test_what_people_do_is_audited_and_undone(shop: Workspace) -> None:
    [number] = alerts.record(shop, watched(), now=NOW)

    def act(action: Any, **how: Any) -> str:
        found = alerts.act(shop, number, action, person="eve", now=NOW, **how)
        return found.state

    assert act("acknowledged", note="  on\nit ") == "acknowledged"
    assert act("muted", until="8h") == "muted"
    found = alerts.find(shop, number, now=NOW)
    assert found.until_us == NOW + 8 * HOUR
    assert alerts.find(shop, number, now=NOW + 8 * HOUR).state == "acknowledged"
    assert [(each.person, each.action, each.note) for each in found.actions] == [
        ("eve", "acknowledged", "on it"),
        ("eve", "muted", ""),
    ]
    assert act("resolved") == "resolved"
    assert act("reopened") == "open"
    with shop.store.read() as c:
        noted = audit.frame(c).select("person", "action", "about").rows()
    assert noted[::-1] == [
        ("eve", f"{verb} alert", "alert 1") for verb in ("acknowledge", "mute", "resolve", "reopen")
    ]


@pytest.mark.parametrize(
    ("action", "how", "said"),
    [
        ("muted", {}, "when does the mute end"),
        ("muted", {"until": "soon"}, "neither a duration of up to 366 days nor a time"),
        ("muted", {"until": "2026-11-20T00:00"}, "not within the next 366 days"),
        ("muted", {"until": "2028-01-01"}, "not within the next 366 days"),
        ("reopened", {}, "alert 1 is open"),
        ("acknowledged", {"note": "x" * 1001}, "at most 1,000 characters"),
    ],
)
def test_what_cannot_be_done(shop: Workspace, action: Any, how: Any, said: str) -> None:
    alerts.record(shop, watched(), now=NOW)
    with pytest.raises(UsageError, match=said):
        alerts.act(shop, 1, action, person="eve", now=NOW, **how)
    with pytest.raises(UsageError, match="there is no alert 7"):
        alerts.act(shop, 7, "resolved", person="eve", now=NOW)


def test_a_resolved_alert_is_not_muted(shop: Workspace) -> None:
    alerts.record(shop, watched(), now=NOW)
    alerts.act(shop, 1, "resolved", person="eve", now=NOW)
    with pytest.raises(UsageError, match="resolved, and quiet already"):
        alerts.act(shop, 1, "muted", person="eve", now=NOW, until="8h")
    assert alerts.act(shop, 1, "acknowledged", person="eve", now=NOW).state == "acknowledged"


def test_what_is_over_can_only_be_resolved(shop: Workspace) -> None:
    alerts.record(shop, watched(), now=NOW)
    alerts.record(shop, usual(), now=NOW)
    for action in ("acknowledged", "muted", "reopened"):
        with pytest.raises(UsageError, match="is over"):
            alerts.act(shop, 1, action, person="eve", now=NOW, until="1h")  # type: ignore[arg-type]
    assert alerts.act(shop, 1, "resolved", person="eve", now=NOW).state == "resolved"
    with pytest.raises(UsageError, match="resolved already"):
        alerts.act(shop, 1, "resolved", person="eve", now=NOW)


def test_a_resolved_alert_stays_so_until_it_was_usual_and_comes_back(shop: Workspace) -> None:
    alerts.record(shop, watched(), now=NOW)
    alerts.act(shop, 1, "resolved", person="eve", now=NOW)
    assert alerts.record(shop, watched(ends_us=FRIDAY_ENDS + DAY), now=NOW) == []
    assert all_(shop)[0].state == "resolved"
    alerts.record(shop, usual(FRIDAY_ENDS + 2 * DAY), now=NOW)
    again = watched(ends_us=FRIDAY_ENDS + 3 * DAY, window="2026-11-23")
    assert alerts.record(shop, again, now=NOW) == [1]
    [alert] = all_(shop)
    assert (alert.state, alert.window) == ("open", "2026-11-23")
    assert alert.actions[-1].person == "karat"
    assert alert.actions[-1].note == "it came back: 2026-11-23"
    # Weeks after its end it is another incident.
    alerts.record(shop, usual(FRIDAY_ENDS + 4 * DAY), now=NOW)
    assert alerts.record(shop, watched(ends_us=FRIDAY_ENDS + 30 * DAY), now=NOW) == [2]


def test_muted_alerts_are_not_news(shop: Workspace) -> None:
    alerts.record(shop, watched(), now=NOW)
    alerts.act(shop, 1, "muted", person="eve", now=NOW, until="7d")
    alerts.record(shop, usual(FRIDAY_ENDS + DAY), now=NOW)
    again = watched(ends_us=FRIDAY_ENDS + 2 * DAY)
    assert alerts.record(shop, again, now=NOW) == []
    assert all_(shop)[0].state == "muted"
    assert all_(shop, NOW + 8 * DAY)[0].state == "open"


def test_causes_know_their_alerts(shop: Workspace) -> None:
    other = cause(change("ErrorRate", {"arm": "b"}), Explained("CTR", {"arm": "b"}, 1.0))
    alerts.record(shop, watched([other]), now=NOW)
    explained = cause(change("CTR", {"arm": "b"}))
    assert alerts.ids_of(shop, [cause(), other, explained]) == [None, 1, 1]
    assert [each.id for each in alerts.lasting(shop, now=NOW)] == [1]


def test_of_two_alerts_the_one_that_explains_leads(shop: Workspace) -> None:
    # A watch without slices saw all searches; one with slices sees why.
    whole = cause(change(part={}), Explained("CTR", {}, 1.0))
    alerts.record(shop, watched([whole]), now=NOW)
    other = cause(change("ErrorRate", {"arm": "b"}), Explained("CTR", {"arm": "b"}, 1.0))
    alerts.record(shop, watched([other]), now=NOW)
    howto = cause(change(), Explained("Abandonment", {}, 0.9))
    alerts.record(shop, watched([howto]), now=NOW)
    assert {each.id for each in alerts.current(shop, now=NOW)} == {1, 2, 3}
    alerts.record(shop, watched(ends_us=SATURDAY_NOON), now=NOW)
    assert {each.id for each in alerts.lasting(shop, now=NOW)} == {1, 2, 3}
    assert {each.id for each in alerts.current(shop, now=NOW)} == {2, 3}


# --- notifying ---


def test_releases_of_the_week_before_an_onset_are_in_its_time_zone(shop: Workspace) -> None:
    for time in ("2026-11-13T03:59", "2026-11-13T04:00", "2026-11-20T03:59", "2026-11-20T04:00"):
        text = f"{time} UTC"
        add_annotation(shop, time=time, kind="release", text=text, person="ann", now=NOW)
    add_annotation(shop, time="2026-11-19", kind="corpus", text="new", person="ann", now=NOW)
    # It may have begun between 02:00 and 05:00 in Berlin, which is an hour before 04:00 UTC.
    annotations = annotations_of(shop)
    assert alerts.releases_before(annotations, ONSET, FRIDAY, "Europe/Berlin") == [
        "2026-11-20 04:59 2026-11-20T03:59 UTC", "2026-11-13 05:00 2026-11-13T04:00 UTC",
    ]  # fmt: skip
    [last, *_] = alerts.releases_before(annotations, None, FRIDAY, "Europe/Berlin")
    assert last == "2026-11-20 05:00 2026-11-20T04:00 UTC"  # on that day, at any hour


@pytest.fixture
def posted() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server on this machine, and what was posted to it."""
    came: list[dict[str, Any]] = []

    class Keep(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keep)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", came
    server.shutdown()
    server.server_close()
    thread.join()


LogEnds = Callable[[int], EventLog]


@pytest.fixture
def ends(log: EventLog) -> LogEnds:
    return lambda at: replace(log, last_us=at)


def test_news_are_posted_once_in_words(
    shop: Workspace, ends: LogEnds, posted: tuple[str, list[dict[str, Any]]]
) -> None:
    url, came = posted
    remember = alerts.remember
    log = ends(FRIDAY_ENDS - 1)
    assert remember(shop, log, watched(), now=NOW, notify=url) == [webhook.Delivery(True, 200, 1)]
    assert remember(shop, log, watched(), now=NOW, notify=url) == []
    [body] = came
    sentence = "ZeroResults of topic=howto rose from 5.0 % to 78.0 % since 2026-11-20 03:00"
    assert body["text"] == f"2026-11-20: {sentence}, explains 1 more"
    assert body["lines"] == [f"{sentence}, explains 1 more; ZeroResults; queries: “Reset PIN”"]
    assert (body["event"], body["alerts"]) == ("online.worse", [1])
    assert body["content"]["causes"][0]["lead"]["metric"] == "ZeroResults"


def test_slack_gets_a_message_from_the_address_of_the_workspace(
    shop: Workspace, ends: LogEnds, posted: tuple[str, list[dict[str, Any]]],
    tmp_path: Path,
) -> None:  # fmt: skip
    url, came = posted
    config = replace(shop.workspace, watch=WatchConfig(notify=url, form="slack"))
    opened = replace(shop, workspace=config)
    assert alerts.remember(opened, ends(FRIDAY_ENDS), watched(), now=NOW) is not None
    [body] = came
    assert set(body) == {"text", "blocks"}
    assert body["text"].startswith("2026-11-20: ZeroResults of topic=howto rose")
    assert [block["type"] for block in body["blocks"]] == ["section", "context"]
    assert "queries: “Reset PIN”" in body["blocks"][0]["text"]["text"]


def test_without_a_workspace_all_causes_are_in_the_event() -> None:
    posted = event(watched(), time="2026-11-21T03:00:00Z")
    assert posted is not None
    assert posted["alerts"] == []
    assert len(posted["lines"]) == 1
    assert event(usual(), time="2026-11-21T03:00:00Z") is None
