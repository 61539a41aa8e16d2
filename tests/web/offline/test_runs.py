"""Runs in the browser: brought, refused, measured, and what strangers wrote stays text."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.web.conftest import NOW, Browser, ClientOf, Clock, with_deep

from karat.errors import InputError
from karat.store.sql import audit, queries
from karat.store.sql import runs as stored
from karat.tables import Run
from karat.tables.workspace import RunRow
from karat.web.app import PAGES, create_app
from karat.web.framework.jobs import JobQueue
from karat.web.framework.middleware import FORM
from karat.web.framework.settings import Settings
from karat.web.offline import runs
from karat.web.offline import stored_comparisons as stored_views
from karat.workflows.judging.in_place import rate
from karat.workflows.workspace import stored_evaluations
from karat.workflows.workspace.stored_evaluations import Rules, kept
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace

WAITING = (stored_views, runs)
EVIL = "<script>alert(1)</script>"
RUN = "q1 Q0 d2 1 3.0 t\nq1 Q0 d1 2 2.0 t\nq2 Q0 d3 1 2.0 t\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    for module in WAITING:
        monkeypatch.setattr(module, "WAIT_S", 60.0)


def brought(
    browser: Browser, data: str | bytes = RUN, called: str = "mine.trec", **fields: str
) -> object:
    files = {"file": (called, data if isinstance(data, bytes) else data.encode())}
    held = {"csrf": browser.csrf, **fields}
    return browser.post("/runs", data=held, files=files, follow_redirects=False)


def test_a_run_is_uploaded_measured_and_listed(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    answer = brought(egon)
    assert answer.status_code == 303  # type: ignore[attr-defined]
    where = answer.headers["location"]  # type: ignore[attr-defined]
    page = egon.get(where)
    assert page.status_code == 200
    assert "mine" in page.text
    shown = egon.get(f"{where}?format=json").json()
    assert shown["run"]["name"] == "mine"
    assert shown["kept_by"] == "egon"
    measures = [row["measure"] for row in shown["results"]["results"]]
    assert measures[0] == "nDCG@10"
    assert shown["outcomes"] == {"missing": 2}
    listed = egon.get("/runs?format=json").json()["runs"]
    first = listed[0]
    assert (first["name"], first["queries"], first["results"], first["by"]) == (
        "mine",
        2,
        3,
        "egon",
    )
    assert first["nDCG@10"] == shown["results"]["results"][0]["value"]
    with egon.site.workspace.store.read() as c:
        assert audit.frame(c).row(0, named=True)["action"] == "keep run"


def test_what_a_run_records_is_shown_and_what_changed_since_another(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    row = '{"query_id": "q1", "doc_id": "d2", "score": 3.0}\n'
    # "names" and "source" are keys of karat's own beside what is recorded.
    about = {"engine": EVIL, "names": "x", "source": "y"}
    head = json.dumps({"about": about}) + "\n"
    where = brought(egon, head + row, "recorded.jsonl").headers["location"]  # type: ignore[attr-defined]
    page = egon.get(where)
    assert EVIL not in page.text
    assert f"engine {EVIL}, names x, source y" in unescape(page.text)
    assert "names x" not in egon.get("/runs/1").text
    fields = {"baseline": 1, "candidate": [int(where.rpartition("/")[2])], "measure": ["P@2"]}
    made = egon.fill("/comparisons/new", **fields)
    page = egon.get(f"{made.headers['location']}?view=notes")  # type: ignore[attr-defined]
    assert EVIL not in page.text
    assert "nothing is recorded about" in unescape(page.text)  # the other run came without


@pytest.mark.deep  # workflows/workspace; what is said once: test_comparisons.py
def test_its_name_may_be_said_and_it_is_kept_once(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    first = brought(egon, called="../../x y.trec", name="new search")
    again = brought(egon, called="other.trec")
    where, plain = (each.headers["location"] for each in (again, first))  # type: ignore[attr-defined]
    assert where == plain, "an address that is shared says nothing of what was done"
    held = next(each for each in egon.cookies.jar if each.name.endswith("_said"))
    assert (held.path, held.has_nonstandard_attr("HttpOnly")) == (plain, True)
    kept_already = "This content is already stored as 'new search': 'other' is another name of it."
    # Nobody else is told so, nor of another run, even with the cookie.
    owner = client_of("owner")
    owner.cookies.set(held.name, held.value or "", domain="127.0.0.1")
    assert kept_already not in unescape(owner.get(where).text)
    assert "notice" not in egon.get(f"{where}?format=json").text.replace('"notice": ""', "")
    assert kept_already in unescape(egon.get(where).text)
    assert kept_already not in unescape(egon.get(where).text), "it is said once"
    same = brought(egon, called="other.trec").headers["location"]  # type: ignore[attr-defined]
    assert "already stored as 'other': nothing changed." in unescape(egon.get(same).text)
    for address in ("/runs/1", f"{plain}?said=kept+already", f"{plain}?said=%ff", plain):
        page = egon.get(address)
        assert page.status_code == 200
        assert 'class="notice"' not in page.text
    shown = egon.get("/runs?format=json").json()["runs"][0]
    assert (shown["name"], shown["also"], shown["by"]) == ("new search", "other", "egon")
    # A name that means another run by now is none of its names.
    other = brought(egon, "q1 Q0 d4 1 3.0 t\n", name="other")
    assert egon.get(f"{plain}?format=json").json()["also"] == []
    assert [row["also"] for row in egon.get("/runs?format=json").json()["runs"][:2]] == [None] * 2
    back = brought(egon, name="other").headers["location"]  # type: ignore[attr-defined]
    number = other.headers["location"].rsplit("/")[-1]  # type: ignore[attr-defined]
    assert f"'other' again names it instead of run {number}." in unescape(egon.get(back).text)


def test_a_file_of_the_workspace_may_be_named_and_no_other(
    client_of: ClientOf, workspace: Path, tmp_path: Path
) -> None:
    egon = client_of("engineer")
    (workspace / "incoming").mkdir()
    for path in ("incoming/found.trec", "found.trec", "incoming/.env", ".env"):
        (workspace / path).write_text(RUN)
    (workspace / "incoming/odd.parquet").write_text("PAR1odd")
    (tmp_path / "secret.trec").write_text(RUN)
    good = {"csrf": egon.csrf, "path": "incoming/found.trec"}
    assert egon.post("/runs", data=good, follow_redirects=False).status_code == 303
    elsewhere = ("../secret.trec", str(tmp_path / "secret.trec"), "/etc/passwd", "", "runs")
    own = ("karat.toml", "karat.db", ".env", "incoming/.env", "found.trec", "guideline.md")
    for path in (*elsewhere, *own, "incoming/odd.parquet"):
        answer = egon.post("/runs", data={"csrf": egon.csrf, "path": path})
        assert answer.status_code == 400, path
        assert "root:" not in answer.text
        assert str(workspace) not in answer.text


@pytest.mark.parametrize("number", ["0", "99", *with_deep("9" * 20, "9" * 5_000, "-1", "x", "²")])
def test_numbers_of_nothing_are_refused(client_of: ClientOf, number: str) -> None:
    egon = client_of("engineer")
    for address in ("/runs/{}", "/runs/{}/queries/q1", "/comparisons/{}"):
        assert egon.get(address.format(number)).status_code in {400, 404}
    assert egon.get(f"/comparisons/{number}/queries/q1").status_code in {400, 404}
    assert egon.get(f"/comparisons/new?candidate={number}").status_code == 200
    assert egon.get(f"/comparisons/new?baseline={number}").status_code in {200, 400}
    assert egon.fill(f"/comparisons/{number}/again").status_code in {400, 404}  # type: ignore[attr-defined]


@pytest.mark.deep
def test_what_fails_late_is_told_and_not_tried_at_every_look(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    egon = client_of("engineer")
    gate, tries = threading.Event(), []

    def compute(*_: object) -> None:
        tries.append(1)
        gate.wait(10)
        raise InputError("the rankings are broken")

    monkeypatch.setattr(stored_evaluations, "compute", compute)
    monkeypatch.setattr(runs, "WAIT_S", 0.01)
    assert "The numbers are being computed" in egon.get("/runs/1").text
    gate.set()
    monkeypatch.setattr(runs, "WAIT_S", 10.0)
    for _ in range(3):
        assert "the rankings are broken" in egon.get("/runs/1").text
    assert len(tries) == 1
    opened = egon.site.opened("shop")
    rate(opened, "egon", "q1", "d5", 3.0, now=NOW)  # now it may be otherwise
    assert "the rankings are broken" in egon.get("/runs/1").text
    assert len(tries) == 2


@pytest.mark.deep  # test_jobs.py has the queue that is full
def test_a_server_with_too_much_to_compute_says_so(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    egon = client_of("engineer")
    monkeypatch.setattr(runs, "COMPUTING", JobQueue(at_once=1, most=0))
    monkeypatch.setattr(runs, "WAIT_S", 0.0)
    gate = threading.Event()
    monkeypatch.setattr(stored_evaluations, "compute", lambda *_: gate.wait(10))
    assert "The numbers are being computed" in egon.get("/runs/1").text
    answer = egon.get("/runs/2")
    gate.set()
    assert answer.status_code == 503
    assert "try again in a minute" in answer.text
    assert answer.headers["retry-after"]


@pytest.mark.deep  # results are kept under what they were computed from
def test_a_query_that_changes_changes_the_numbers(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    before = egon.get("/runs/1?format=json").json()["results"]["results"][0]["value"]
    opened = egon.site.opened("shop")
    weighed = pl.DataFrame({"query_id": ["q1"], "text": ["red shoes"], "weight": [50.0]})
    with opened.store.begin() as c:
        queries.put(c, opened.golden.id, weighed, NOW)
        queries.drop(c, opened.golden.id, ["q2"], NOW)
    after = egon.get("/runs/1?format=json").json()
    assert after["results"]["results"][0]["value"] != before
    assert after["older"] is False


@pytest.mark.deep  # a race
def test_files_that_go_while_they_are_looked_at_are_computed_again(
    client_of: ClientOf, workspace: Path
) -> None:
    egon = client_of("engineer")
    shown = egon.get("/runs/1/queries/q1?format=json").json()
    for path in (workspace / "artifacts/evaluation").glob("*/heads.parquet"):
        path.unlink()
    assert egon.get("/runs/1/queries/q1?format=json").json() == shown
    for path in (workspace / "artifacts/evaluation").glob("*/grades.parquet"):
        path.write_bytes(b"x" * path.stat().st_size)
    assert egon.get("/runs/1/queries/q1?format=json").json() == shown


def test_a_run_is_sliced_by_few_attributes_in_one_order(
    client_of: ClientOf, workspace: Path
) -> None:
    egon = client_of("engineer")
    first = egon.get("/runs/1?by=query_length&by=first_relevant&format=json").json()
    again = egon.get("/runs/1?by=first_relevant&by=query_length&by=query_length&format=json")
    assert again.json()["results"] == first["results"]
    assert len(list((workspace / "artifacts/evaluation").iterdir())) == 1
    many = "&".join(f"by=a{i}" for i in range(9))
    assert 'role="alert"' in egon.get(f"/runs/1?{many}").text
    assert len(list((workspace / "artifacts/evaluation").iterdir())) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"q1 Q0 d1",
        *with_deep(
            b"\x00\xff\xfe", b'{"q1": [', b"q1 Q0 d1 1 nan t\n", b"PAR1broken", b"\x1f\x8bx"
        ),
    ],
)
def test_what_is_no_run_is_refused_by_its_own_name(client_of: ClientOf, data: bytes) -> None:
    egon = client_of("engineer")
    answer = brought(egon, data, "odd.txt")
    assert answer.status_code == 400  # type: ignore[attr-defined]
    text = answer.text  # type: ignore[attr-defined]
    assert "odd.txt" in text
    assert 'id="bring"' in text, "the form is there to try again"
    assert "/tmp" not in text
    assert [row["name"] for row in egon.get("/runs?format=json").json()["runs"]] == ["new", "old"]


@pytest.mark.deep  # test_middleware.py refuses it
def test_what_is_too_large_is_refused(site_settings: Settings, clock: Clock) -> None:
    app = create_app(replace(site_settings, max_upload=2 * FORM), clock, PAGES)
    with TestClient(app, base_url="http://127.0.0.1"):
        site = app.state.site
        browser = Browser(app, site.accounts.local("olga"))
        answer = brought(browser, RUN * (1 + 2 * FORM // len(RUN)))
        assert answer.status_code == 413  # type: ignore[attr-defined]


@pytest.mark.deep  # framework/test_auth.py asks every route
def test_raters_and_strangers_see_no_runs(client_of: ClientOf, stranger: Browser) -> None:
    rita = client_of("rater")
    assert rita.get("/runs").status_code == 403
    assert brought(rita).status_code == 403  # type: ignore[attr-defined]
    assert stranger.get("/runs", follow_redirects=False).status_code == 303
    assert client_of("engineer").post("/runs", data={"path": "x"}).status_code == 403  # no token


@pytest.mark.deep  # the templates escape: test_dashboard.py and test_judge.py
def test_what_strangers_wrote_stays_text(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    rows = {EVIL: {EVIL: 1.0}, "q1": {EVIL: 2.0, "d1": 1.0}}
    answer = brought(egon, json.dumps(rows), f"{EVIL}.json", name=EVIL)
    where = answer.headers["location"]  # type: ignore[attr-defined]
    for address in ("/runs", where, f"{where}/queries/q1", "/comparisons/new"):
        page = egon.get(address)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "&lt;script&gt;alert" in page.text


def test_slices_and_worst_queries_lead_on(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    page = egon.get("/runs/1?by=query_length").text
    assert "?by=query_length&amp;slice=query_length%3D2+words#queries" in page
    rows = egon.get("/runs/1?by=query_length&slice=query_length%3D2+words&format=csv").text
    assert rows.count("\n") == 5  # a head and four queries of two words each
    for tail in ("measure=P%4010", "slice=query_length%3D2+words", "by=query_length&edition=now"):
        assert 'class="wrong"' not in egon.get(f"/runs/1?{tail}").text
    values = [float(row["value"]) for row in egon.get("/runs/1?format=json").json()["queries"]]
    assert values == sorted(values)
    query = egon.get("/runs/1/queries/q1")
    assert "unjudged" in query.text  # d5
    assert "Document d1" in query.text


def test_what_is_not_there_is_said(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    for address in ("/runs/99", "/runs/1/queries/no"):
        assert egon.get(address).status_code == 404
    assert "does not exist" not in egon.get("/runs/1?edition=nope").text
    for address in ("/runs/1?edition=nope", "/runs/1?by=colour"):
        page = egon.get(address)
        assert page.status_code == 200
        assert 'role="alert"' in page.text
    assert egon.get("/runs/1?measure=nope").status_code == 400


def test_the_numbers_are_those_that_are_kept(client_of: ClientOf, app: FastAPI) -> None:
    egon = client_of("engineer")
    shown = egon.get("/runs/1?format=json").json()
    opened = app.state.site.opened("shop")
    with opened.store.read() as c:
        row = stored.runs(c, opened.golden.id)[0]
    found = kept(opened, row, Rules())
    assert found is not None
    assert [r["value"] for r in shown["results"]["results"]] == [
        r.value for r in found.results.results
    ]


def test_what_was_typed_stays_in_a_form_that_was_refused(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    answer = egon.post(
        "/runs", data={"csrf": egon.csrf, "path": "incoming/none.trec", "name": "mine"}
    )
    assert answer.status_code == 400
    text = answer.text
    assert 'role="alert"' in text
    assert 'value="incoming/none.trec"' in text
    assert 'value="mine"' in text


@pytest.mark.deep  # comparisons say so, too: test_comparisons.py
def test_values_are_of_now_or_say_that_they_are_not(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    egon = client_of("engineer")
    first = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in first] == ["current"] * 2  # nobody opened a run before
    assert all(row["nDCG@10"] is not None for row in first)
    rate(egon.site.opened("shop"), "egon", "q1", "d5", 3.0, now=NOW)
    monkeypatch.setattr(runs, "WAIT_S", 0.0)
    monkeypatch.setattr(runs.COMPUTING, "run", lambda *_: False)
    old = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in old] == ["outdated: being recomputed"] * 2
    assert [row["nDCG@10"] for row in old] == [row["nDCG@10"] for row in first]
    assert "data-waits" in egon.get("/runs").text
    monkeypatch.undo()
    monkeypatch.setattr(runs, "WAIT_S", 60.0)
    again = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in again] == ["current"] * 2
    assert [row["nDCG@10"] for row in again] != [row["nDCG@10"] for row in first]
    assert "data-waits" not in egon.get("/runs").text


def test_what_cannot_be_computed_says_so_and_leads_to_why(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(*_: object) -> None:
        raise InputError("the rankings are broken")

    monkeypatch.setattr(stored_evaluations, "compute", compute)
    text = client_of("engineer").get("/runs").text
    assert text.count("failed: see why") == 2
    assert "data-waits" not in text


@pytest.mark.deep
def test_runs_that_are_broken_do_not_keep_others_from_being_computed(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    egon = client_of("engineer")
    opened = egon.site.opened("shop")
    broken = [Run.from_dict({"q1": {f"d{n}": 1.0}}, f"broken {n}") for n in range(9)]
    store_runs(opened, broken, now=NOW + 1)
    plain, digests = stored_evaluations.compute, []

    def compute(opened: Workspace, row: RunRow, rules: Rules) -> None:
        if row.name.startswith("broken"):
            raise InputError("the rankings are broken")
        plain(opened, row, rules)

    def digest(opened: Workspace) -> str:
        digests.append(1)
        return plain_digest(opened)

    plain_digest = stored_evaluations.inputs_digest
    monkeypatch.setattr(stored_evaluations, "compute", compute)
    monkeypatch.setattr(stored_evaluations, "inputs_digest", digest)
    listed = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in listed] == ["failed: see why"] * 9 + ["current"] * 2
    assert len(digests) < 6  # it is of the golden set, not of each run
    assert "data-waits" not in egon.get("/runs").text


def test_a_run_and_a_comparison_are_removed_when_it_is_confirmed(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    made = egon.fill("/comparisons/new", baseline="1", candidate="2", measure="P@3")
    comparison = made.headers["location"]  # type: ignore[attr-defined]
    page = egon.get("/runs/1").text
    assert "cannot be removed while a comparison uses it" in page
    assert f'href="{comparison}"' in page
    run = egon.get("/runs/1?format=json").json()["run"]["sha256"]
    refused = egon.fill("/runs/1/remove", sure="yes", seen=run)
    assert refused.status_code == 400  # type: ignore[attr-defined]
    assert "remove it first" in refused.text  # type: ignore[attr-defined]
    for address in (comparison, "/runs/1"):
        page = egon.get(address).text
        assert "Remove this" in page
        [seen] = re.findall(r'name="seen" value="(\w+)"', page)
        for fields in ({"seen": seen}, {"sure": "yes"}, {"sure": "yes", "seen": "1"}):
            assert egon.fill(f"{address}/remove", **fields).status_code == 400  # type: ignore[attr-defined]
        gone = egon.fill(f"{address}/remove", sure="yes", seen=seen)
        assert gone.status_code == 303  # type: ignore[attr-defined]
        assert egon.get(address).status_code == 404
    assert [row["name"] for row in egon.get("/runs?format=json").json()["runs"]] == ["new"]
    with egon.site.workspace.store.read() as c:
        assert audit.frame(c)["action"].to_list()[:2] == ["remove run", "remove comparison"]


def test_no_error_of_a_run_says_where_it_lies(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    opened = egon.site.opened("shop")
    for file in opened.workspace.runs.iterdir():
        file.unlink()
    text = egon.get("/runs/1").text
    assert "there is no such file" in text
    assert "runs/old-" in text
    assert str(opened.workspace.root) not in text


def test_timed_runs_are_drawn_by_quality_and_latency(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    assert "against latency" not in egon.get("/runs").text
    places = {}
    for called, took, docs in (
        ("fast", 2, ["d1", "d2"]),
        ("beaten", 9, ["d1", "d2", "d9"]),  # slower, and no better
        ("slow", 9, ["d2", "d1"]),
    ):
        rows = [
            {"query_id": "q1", "doc_id": doc, "score": 9 - at, "latency_us": 1000 * took}
            for at, doc in enumerate(docs)
        ]
        data = "\n".join(map(json.dumps, rows)) + "\n"
        answer = brought(egon, data, f"{called}.jsonl")
        places[called] = answer.headers["location"]  # type: ignore[attr-defined]
    page = unescape(egon.get("/runs").text)
    assert "Blue: no other run is both better and faster (slow, fast)." in page
    for called, took in (("fast", 2), ("beaten", 9), ("slow", 9)):
        assert re.search(
            rf'<a [^>]*href="{places[called]}"[^>]*>.*?{called}: nDCG@10', page, re.DOTALL
        )
        assert f"p95 {took} ms" in page
