"""karat online watch, as typed: exit codes, what is printed, what is posted."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from karat.clients import webhook
from karat.formats.events.ubi import write_events
from karat.online.rules import DAY, MINUTE

LAST = 20_049  # 2024-11-22, a Friday: 728 days before day 20,777


@pytest.fixture
def store(typed, tmp_path: Path) -> None:
    """Five Fridays of 60 searches each for cms and pump, 2 of 60 in vain; on the last, 50 of cms.

    And each day after a Friday one search, so that Fridays are complete.
    """
    rows = []
    for week in range(5):
        day = LAST - 7 * week
        for i in range(120):
            query, n = ("cms", "pump")[i % 2], i // 2
            zeros = 50 if query == "cms" and week == 0 else 2
            found = 0 if n < zeros else 10
            rows.append((f"{week}-{i}", day * DAY + i * 10 * MINUTE, query, found))
        rows.append((f"{week}-x", (day + 1) * DAY, "pump", 10))
    frame = pl.DataFrame(
        [
            {
                "user_id": user, "time_us": time, "kind": "search", "query_id": user,
                "query": query, "returned": found, "total_hits": found, "status": "ok",
            }
            for user, time, query, found in rows
        ]
    )  # fmt: skip
    write_events(tmp_path / "log.ndjson", frame)
    typed("online import log.ndjson --events events")


@pytest.fixture
def posted() -> Iterator[tuple[str, list[tuple[dict[str, object], str | None]]]]:
    """A server that keeps what is posted to it: its address, and bodies with signatures."""
    kept: list[tuple[dict[str, object], str | None]] = []

    class Keep(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.append((json.loads(body), self.headers[webhook.SIGNATURE]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keep)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", kept
    server.shutdown()
    server.server_close()
    thread.join()


HERE = "online watch --events events -m ZeroResults"


def test_exit_codes(typed, store) -> None:
    worse = typed(f"{HERE} --until 2024-11-22", code=1)
    assert worse.out.startswith("2024-11-22: worse than usual\n")
    assert "“cms”" in worse.out
    assert max(map(len, worse.out.splitlines())) <= 80
    # 56 days hold 8 Fridays, of which the log has 4.
    assert "4 earlier Fridays are not in the log" in " ".join(worse.out.split())
    assert typed(f"{HERE} --until 2024-11-22 --margin ZeroResults=0.9").code == 0
    # A week earlier three weeks are there, and nothing moved.
    assert "2024-11-15: as usual" in typed(f"{HERE} --until 2024-11-15").out
    few = typed(f"{HERE} --until 2024-11-08", code=3)
    assert "2024-11-08: cannot tell" in few.out
    assert "3 earlier windows like 2024-11-08 are needed, and 56 days of history have 2" in few.out
    # The clock of the machine is no part of it: --until says when.
    none = typed(f"{HERE} --until 2024-12-06", code=3)
    assert none.out.startswith("2024-12-06: unhealthy: the log cannot be trusted\nno events in")
    assert "did you mean" in typed("online watch --events events -m ZeroResult", code=2).err
    assert "cannot filter by hour" in typed(f"{HERE} --only hour=9", code=2).err
    other = typed(f"{HERE} --until 2024-11-22 --only query=PUMP")
    assert "only searches with query=pump are counted" in " ".join(other.out.split())
    assert "not a duration" in typed(f"{HERE} --window day", code=2).err
    assert "invalid margin" in typed(f"{HERE} --margin 0.1", code=2).err


@pytest.mark.deep  # tests/net and tests/workflows/online/test_watch.py
def test_json(typed, store) -> None:
    found = json.loads(typed(f"{HERE} --until 2024-11-22 -f json", code=1).out)
    assert (found["verdict"], found["exit_code"], found["window"]) == ("worse", 1, "2024-11-22")
    change = found["changes"][0]
    # 52 of 120 in vain, where 4 of 120 are usual.
    assert change["value"] == pytest.approx(52 / 120)
    assert change["expected"] == pytest.approx(4 / 120)
    assert change["queries"][0]["text"] == "cms"
    total = sum(query["adds"] for query in change["queries"]) + change["others"]
    assert total == pytest.approx(change["change"])


def test_notify(typed, store, posted, monkeypatch: pytest.MonkeyPatch) -> None:
    url, kept = posted
    monkeypatch.setenv(webhook.SECRET, "hush")
    typed(f"{HERE} --until 2024-11-15 --notify {url}")
    assert kept == []  # nothing moved: nobody is told
    typed(f"{HERE} --until 2024-11-22 --notify {url}", code=1)
    typed(f"{HERE} --until 2024-12-06 --notify {url}", code=3)
    events = [body["event"] for body, _ in kept]
    assert events == ["online.worse", "online.unhealthy"]
    body, signature = kept[0]
    assert (signature or "").startswith("sha256=")
    assert "ZeroResults rose from 3.3 % to 43.3 %" in str(body["text"])
    content = body["content"]
    assert isinstance(content, dict)
    assert content["verdict"] == "worse"
    assert "invalid webhook URL" in typed(f"{HERE} --notify ftp://x", code=2).err


def test_a_store_without_events_is_one_of_which_nobody_can_tell(typed, tmp_path: Path) -> None:
    (tmp_path / "empty.ndjson").write_text("")
    typed("online import empty.ndjson --events events")
    assert "no events in events" in typed("online watch --events events", code=3).err
    # A folder that holds no store is a mistake of who typed it.
    assert "no events in nowhere" in typed("online watch --events nowhere", code=2).err


@pytest.mark.parametrize("until", ["0001-01-01", "1969-12-31", "9999-12-31"])
def test_a_window_that_no_log_has(typed, store: None, until: str) -> None:
    said = typed(f"online watch --events events --until {until}", code=2).err
    assert f"--until '{until}' is not within the years 1970 to 9998" in said
