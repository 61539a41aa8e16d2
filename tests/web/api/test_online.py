"""What users did by the API: the numbers of the command line, and the rows of the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient
from tests.event_stores import keep_events
from tests.web.api.conftest import Printed, ProgramOf, error_of, rows_of
from tests.web.conftest import with_deep
from tests.web.online_log import compute_once, put_users
from tests.workflows.online.weeks import broken_on_friday

from karat.clients.karat_server import Client
from karat.store.sql import queries
from karat.web.framework.state import AppState


@pytest.fixture(autouse=True)
def _once(monkeypatch: pytest.MonkeyPatch) -> None:
    compute_once(monkeypatch)


@pytest.mark.deep  # the client below asks for it
def test_evaluate_is_what_the_command_prints(
    program: TestClient, printed: Printed, workspace: Path
) -> None:
    put_users(workspace)
    asked = {"metric": ["CTR", "zeroresults"], "by": ["arm", "day,arm"]}
    answer = program.get("/api/online/evaluate", params=asked)
    assert answer.status_code == 200
    words = ("-m", "CTR", "-m", "ZeroResults", "--by", "arm", "--by", "day,arm")
    told = printed("online", "evaluate", *words, "--format", "json")
    found = answer.json()
    for own, other in zip(found["results"], told["results"], strict=True):
        # Sums of users may differ in their last digit, as they are added in parallel.
        assert own == {
            name: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            for name, value in other.items()
        }
    assert (found["by"], found["rules"], found["events"]) == (
        told["by"],
        told["rules"],
        told["events"],
    )
    # Arm a: 15 of 18 searches with results each day; see tests/web/online_log.py.
    by_arm = {row["slice"].get("arm"): row["value"] for row in found["results"]
              if row["metric"] == "CTR" and list(row["slice"]) == ["arm"]}  # fmt: skip
    assert by_arm == {"a": pytest.approx(15 / 18), "b": pytest.approx(3 / 18)}


@pytest.mark.deep  # both call karat.workflows.online.watch; the client below asks for a watch
def test_watch_is_what_the_command_prints(
    program: TestClient, printed: Printed, workspace: Path
) -> None:
    types = {"position": pl.Int32, "returned": pl.Int32, "total_hits": pl.Int64}
    rows = pl.DataFrame(broken_on_friday(), schema_overrides=types, infer_schema_length=None)
    keep_events(workspace / "events", rows)
    asked = {"metric": ["ZeroResults", "CTR"], "by": ["kind"], "until": "2026-11-20"}
    answer = program.get("/api/online/watch", params=asked)
    assert answer.status_code == 200
    words = ("-m", "ZeroResults", "-m", "CTR", "--by", "kind", "--until", "2026-11-20")
    told = printed("online", "watch", *words, "--format", "json")
    found = answer.json()
    assert (found["verdict"], found["exit_code"]) == ("worse", 1)
    for own, other in zip(found["changes"], told["changes"], strict=True):
        # Sums of users may differ in their last digit, as they are added in parallel.
        assert own["value"] == pytest.approx(other["value"], rel=1e-12)
        assert [row["text"] for row in own["queries"]] == [row["text"] for row in other["queries"]]
        assert {own[name] == other[name] for name in ("metric", "slice", "verdict", "n")} == {True}
    # By the clock, which stands in January 2027, the log has ended long ago.
    assert program.get("/api/online/watch").json()["verdict"] == "unhealthy"


@pytest.mark.parametrize(
    "asks", ["window=5h", "by=day",
             *with_deep("history=1h", "until=yesterday", "metric=ClickPosition", "margin=lots")]
)  # fmt: skip
def test_a_watch_that_cannot_be_is_an_error(
    program: TestClient, workspace: Path, asks: str
) -> None:
    put_users(workspace)
    assert error_of(program.get(f"/api/online/watch?{asks}"))[:2] == (400, "usage")


def test_errors_do_not_say_where_the_log_lies(program: TestClient, workspace: Path) -> None:
    log = put_users(workspace)
    for file in log.files:
        Path(file.path).write_bytes(b"PAR1 and no more")
    for path in ("evaluate", "queries", "watch?until=2027-01-14", "rows"):
        answer = program.get(f"/api/online/{path}")
        assert error_of(answer)[:2] == (400, "input"), path
        assert str(workspace) not in answer.text, path


@pytest.mark.deep
def test_pages_beyond_the_last_and_a_log_without_failures_are_empty(
    program: TestClient, workspace: Path
) -> None:
    keep_events(workspace / "events", pl.DataFrame([
        {"user_id": "u", "time_us": 1_799_600_000_000_000, "kind": "search", "query": "a",
         "query_id": "s", "returned": 3, "total_hits": 3, "status": "ok"},
        {"user_id": "u", "time_us": 1_799_600_009_000_000, "kind": "click", "query_id": "s",
         "doc_id": "d", "returned": None, "total_hits": None, "status": None, "query": None},
    ]))  # fmt: skip
    assert rows_of(program, "/api/online/queries", reason="zero results") == []
    assert program.get("/api/online/rows?page=1000000000").json()["items"] == []


@pytest.mark.deep  # the page has them, too
def test_days_and_slices_of_the_golden_set(program: TestClient, workspace: Path) -> None:
    put_users(workspace)
    site: AppState = program.app.state.site  # type: ignore[attr-defined]
    with site.workspace.store.begin() as c:
        frame = queries.frame(c, site.workspace.golden.id)
        kinds = pl.Series("kind", ["wear", "garden", "garden", "wear"])
        queries.put(c, site.workspace.golden.id, frame.with_columns(kinds), 1)
    asked = {"metric": "ZeroResults", "by": "golden:kind", "from": "2027-01-12"}
    found = program.get("/api/online/evaluate", params=asked).json()
    assert found["period"] == ["2027-01-12", "2027-01-14"]
    values = {tuple(row["slice"].items()): (row["value"], row["n"]) for row in found["results"]}
    # Three days × 12 users × four queries, of which the hat is one of two that one wears.
    assert values == {
        (): (0.25, 144), (("class", "garden"),): (0.0, 72), (("class", "wear"),): (0.5, 72)
    }  # fmt: skip


def test_status_and_the_catalogue(program: TestClient, printed: Printed, workspace: Path) -> None:
    put_users(workspace)
    found = program.get("/api/online/status").json()
    told = printed("online", "status", "--format", "json")
    assert found == {name: value for name, value in told.items() if name != "folder"}
    assert found["kinds"] == {"click": 72, "hide": 72, "search": 192}
    listed = rows_of(program, "/api/online/metrics")
    assert listed == printed("online", "metrics", "--format", "json", within=False)
    one = program.get("/api/online/metrics/ctr@7").json()
    assert one["name"] == "CTR@7"
    lost = program.get("/api/online/metrics/ctrr")
    assert error_of(lost)[:2] == (404, "not_found")


@pytest.mark.deep  # the client below asks for it
def test_worst_queries_are_a_list(program: TestClient, workspace: Path) -> None:
    put_users(workspace)
    rows = rows_of(program, "/api/online/queries")
    assert [(row["text"], row["failed"]) for row in rows[:2]] == [
        ("wool hat", 48), ("garden hose", 36)
    ]  # fmt: skip
    assert rows[0]["by_failure"][0] == {"failure": "zero results", "count": 48}
    asked = {"reason": "nobody clicks", "sort": "-searches", "by": "arm", "slice": "b"}
    found = rows_of(program, "/api/online/queries", **asked)
    assert {row["slice"] for row in found} == {"b"}
    assert {row["reason"] for row in found} == {"nobody clicks"}
    wrong = program.get("/api/online/queries", params={"raison": "x"})
    assert error_of(wrong)[:2] == (400, "usage")


@pytest.mark.deep  # the client below asks for it
def test_against_is_what_the_page_shows(program: TestClient, workspace: Path) -> None:
    put_users(workspace)
    found = program.get("/api/online/against", params={"run": "old"}).json()
    page = program.get("/online/against?run=old&format=json")
    assert page.status_code == 200
    assert [row["query_id"] for row in found["queries"]] == [
        row["query_id"] for row in page.json()["queries"]
    ]
    assert (found["judged_only"], found["searched_only"]) == (0, 0)
    assert error_of(program.get("/api/online/against", params={"run": "odl"}))[1] == "usage"


@pytest.mark.deep  # test_rows.py has the page
def test_rows_go_on_page_by_page_and_name_nobody(program: TestClient, workspace: Path) -> None:
    put_users(workspace)
    asked: dict[str, Any] = {"metric": "CTR", "counts": "yes", "slice": ["arm=a", "device=phone"]}
    # In arm a and with a phone: users 0, 2, 4 click on shoes, 0 and 2 on hoses, all on ladders.
    found = program.get("/api/online/rows", params={**asked, "per": 20}).json()
    assert (found["found"], len(found["items"])) == (32, 20)
    assert found["next"] is not None
    more = program.get(found["next"]).json()
    assert (len(more["items"]), more["next"]) == (12, None)
    both = found["items"] + more["items"]
    assert len({(row["user"], row["session_began"], row["intent"]) for row in both}) == 32
    assert both == sorted(both, key=lambda row: -row["time_us"])
    assert {row["arm"] for row in both} == {"a"}
    assert not {"user_id", "user_key", "user_bucket"} & both[0].keys()
    wrong = program.get("/api/online/rows", params={"arm": "a"})
    words = "unknown parameter 'arm'"
    assert error_of(wrong) == (400, "usage", words)


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        *with_deep(("evaluate?by=dya", ["day"]), ("evaluate?by=day,devise", ["device"])),
        ("evaluate?metric=CTRR", ["CTR"]),
        ("evaluate?metrics=CTR", ["metric"]),
        ("against?run=old&metrics=CTR", ["metric"]),
        ("queries?by=devise", ["device"]),
        ("rows?slice=devise%3Dphone", ["device"]),
        ("rows?slise=device%3Dphone", ["slice"]),
    ],
)
def test_an_error_names_the_nearest_choice(
    program: TestClient, workspace: Path, asked: str, nearest: list[str]
) -> None:
    put_users(workspace)
    answer = program.get(f"/api/online/{asked}")
    assert error_of(answer)[:2] == (400, "usage")
    assert answer.json()["error"]["nearest"][: len(nearest)] == nearest


def test_without_events_it_says_so(program: TestClient, workspace: Path) -> None:
    for path in ("status", "evaluate", "queries", "watch", "rows", "against?run=old"):
        answer = program.get(f"/api/online/{path}")
        assert error_of(answer)[:2] == (400, "input"), path
        assert str(workspace) not in answer.text, path


def test_raters_see_nothing_of_it(program_of: ProgramOf) -> None:
    for path in ("status", "evaluate", "queries", "watch", "rows", "against?run=old", "metrics"):
        assert error_of(program_of("rater").get(f"/api/online/{path}"))[0] == 403, path


def test_the_client_asks_for_the_same(served: str, program: TestClient, workspace: Path) -> None:
    put_users(workspace)
    secret = program.headers["authorization"].removeprefix("Bearer ")
    with Client(served, secret) as client:
        assert client.online_status()["rows"] == 336
        assert {"CTR", "SAT"} <= {row["name"] for row in client.online_metrics()}
        assert client.online_metric("ctr")["name"] == "CTR"
        found = client.online_evaluate("CTR", by="arm", first="2027-01-12", last="2027-01-13")
        assert [row["n"] for row in found["results"]] == [72, 36, 36]
        assert client.online_watch(until="2027-01-14", by="arm")["verdict"] == "cannot_tell"
        worst = client.online_queries(reason="zero results")
        assert worst["text"].to_list() == ["wool hat"]
        assert len(client.online_against("old", measure="P@5")["queries"]) == 4
        rows = client.online_rows("CTR", counts="yes", slices="arm=b")
        assert rows.height == 12
        assert rows["query"].unique().to_list() == ["tall ladder"]
