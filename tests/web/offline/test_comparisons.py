"""Comparisons in the browser: asked for, shown as ``karat compare`` has them, told how old."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.choosing import deep_but
from tests.web.conftest import NOW, Browser, ClientOf, Clock

from karat.store.sql import audit, comparisons, pairs
from karat.store.sql import comparisons as stored
from karat.store.sql.schema import comparison
from karat.web.framework.progress import Job, last
from karat.web.offline import runs, stored_comparisons
from karat.workflows.judging.in_place import rate
from karat.workflows.workspace import stored_comparisons as kept_comparisons


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    for module in (stored_comparisons, runs):
        monkeypatch.setattr(module, "WAIT_S", 60.0)


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def asked(browser: Browser, **fields: object) -> str:
    given = {"baseline": 1, "candidate": [2], "measure": ["nDCG@3", "P@2", "RR@10"], **fields}
    answer = browser.fill("/comparisons/new", **given)
    assert answer.status_code == 303, answer.text  # type: ignore[attr-defined]
    return str(answer.headers["location"])  # type: ignore[attr-defined]


def row_of(browser: Browser, where: str) -> comparisons.ComparisonRow:
    with browser.site.workspace.store.read() as c:
        row = comparisons.find(c, int(where.rsplit("/", 1)[1]))
    assert row is not None
    return row


def folder_of(browser: Browser, where: str) -> Path:
    root = browser.site.workspace.workspace.root
    return root / "artifacts/comparison" / str(row_of(browser, where).key)


def said(browser: Browser, address: str) -> dict[str, object]:
    tail = "&format=json" if "?" in address else "?format=json"
    found: dict[str, object] = browser.get(address + tail).json()
    return found


def test_two_runs_are_chosen_and_compared(egon: Browser) -> None:
    form = egon.get("/comparisons/new?baseline=1&candidate=2").text
    assert 'value="2" checked' in form
    where = asked(egon, by=["query_length"])
    page = egon.get(where)
    assert page.status_code == 200
    assert "new against old" in page.text
    found = said(egon, where)
    site = egon.site
    opened = site.opened("shop")
    with opened.store.read() as c:
        row = comparisons.find(c, int(where.rsplit("/", 1)[1]))
    assert row is not None
    held = kept_comparisons.kept(opened, row)
    assert held is not None
    numbers = found["numbers"]
    assert isinstance(numbers, dict)
    assert numbers["differences"] == [{**each} for each in held.comparison.to_dict()["differences"]]
    for each in numbers["differences"]:
        assert each["measure"] in page.text
    listed = egon.get("/comparisons")
    assert "new against old" in listed.text
    assert held.comparison.differences[0].verdict in listed.text
    with opened.store.read() as c:
        assert audit.frame(c).row(0, named=True)["action"] == "make comparison"


def test_each_tab_has_its_part_and_old_addresses_lead_to_theirs(egon: Browser) -> None:
    where = asked(egon, by=["query_length"])
    parts = {
        "summary": ("Differences under every measure",),
        "slices": ("nDCG@3 by query_length",),
        "queries": ("Queries, the largest change first",),
        "priorities": ("What to judge next",),
        "notes": ('<section id="notes">',),
    }
    pages = {view: egon.get(f"{where}?view={view}").text for view in parts}
    for view, page in pages.items():
        for other, texts in parts.items():
            assert all((text in page) == (view == other) for text in texts), (view, other)
        current = re.findall(r'href="\?view=(\w+)" aria-current="page"', page)
        assert current == [view]
    # Anchors of other tabs are the links to them.
    anchors = {"slices", "queries", "next", "notes"}
    assert anchors <= set(re.findall(r'id="(\w+)"', pages["summary"]))
    for asks in ("measure=P%402", "outcome=same", "slice=query_length%3D2+words", "q=shoes"):
        assert 'id="queries-head"' in egon.get(f"{where}?{asks}").text
    assert egon.get(f"{where}?view=sumary").status_code == 400
    keys = "title crumbs row runs since numbers lead results measure candidate slice uncounted"
    keys += " counts zero_weight queries gates whys queued raised policy"
    assert list(said(egon, where)) == keys.split()
    assert said(egon, where) == said(egon, f"{where}?view=notes")


def test_intervals_are_drawn_in_the_rows_and_what_changed_is_shown(egon: Browser) -> None:
    for engine, score in (("solr", 2.0), ("vespa", 0.5)):
        rows = [{"about": {"engine": engine}}]
        rows += [{"query_id": f"q{n}", "doc_id": "d1", "score": score} for n in range(1, 5)]
        rows += [{"query_id": f"q{n}", "doc_id": "d5", "score": 1.0} for n in range(1, 5)]
        body = "\n".join(map(json.dumps, rows)).encode()
        files = {"file": (f"{engine}.jsonl", body)}
        egon.post("/runs", data={"csrf": egon.csrf, "name": engine}, files=files)
    page = egon.get(asked(egon, baseline=3, candidate=[4])).text
    assert page.count('<svg class="drawn"') == 3  # a row for each measure
    assert "<h3>What changed</h3>" in page
    assert re.search(r"engine</th><td[^>]*>solr</td><td[^>]*>vespa</td>", page)


@pytest.mark.deep  # each count in test_counted.py
def test_counts_lead_to_their_queries(egon: Browser) -> None:
    where = asked(egon)
    found = said(egon, where)
    numbers = found["numbers"]
    assert isinstance(numbers, dict)
    for each in numbers["differences"]:
        for way, count in (("better", "wins"), ("same", "ties"), ("worse", "losses")):
            rows = said(egon, f"{where}?measure={each['measure']}&outcome={way}")["queries"]
            assert isinstance(rows, list)
            assert len(rows) == each[count]
            assert {row["outcome"] for row in rows} <= {way}
    table = csv.DictReader(io.StringIO(egon.get(f"{where}?format=csv").text))
    changes = [abs(float(row["difference"])) for row in table]
    assert len(changes) == 4
    assert changes == sorted(changes, reverse=True)


@pytest.mark.deep  # as those of a run: test_runs.py
def test_slices_lead_to_their_queries(egon: Browser) -> None:
    where = asked(egon, by=["query_length"])
    assert "slice=query_length%3D2+words" in egon.get(f"{where}?view=slices").text
    for tail in ("measure=P%402", "candidate=new", "slice=query_length%3D2+words"):
        assert 'class="wrong"' not in egon.get(f"{where}?{tail}").text
    rows = said(egon, f"{where}?slice=query_length%3D2+words")["queries"]
    assert isinstance(rows, list)
    assert len(rows) == 4
    assert egon.get(f"{where}?slice=query_length%3D1+word").status_code == 400


@pytest.mark.deep  # refusals are in test_what_cannot_be_compared_is_refused
def test_a_slice_that_is_not_there_is_refused_with_the_nearest(egon: Browser) -> None:
    where = asked(egon, by=["query_length"])
    answer = egon.get(f"{where}?slice=query_length%3D2+wrods")
    assert answer.status_code == 400
    assert "Unknown slice &#39;query_length=2 wrods&#39;" in answer.text
    assert "Did you mean query_length=2 words" in answer.text
    program = egon.get(f"{where}?slice=query_length%3D2+wrods&format=json", headers={"accept": ""})
    assert program.status_code == 400
    assert program.json()["error"]["nearest"][0] == "query_length=2 words"
    plain = asked(egon)  # it has no slices
    assert egon.get(f"{plain}?slice=lang%3Dde").status_code == 400
    run = egon.get("/runs/1?by=query_length&slice=query_length%3D3+wrods")
    assert (run.status_code, "Did you mean query_length=" in run.text) == (400, True)
    # No query is better by every measure, which is not an unknown outcome.
    assert "No row has" not in egon.get(f"{where}?outcome=same").text
    assert "No row has “equal”." in egon.get(f"{where}?outcome=equal").text


@pytest.mark.deep  # that of the demo is in tests/net
def test_three_runs_have_a_list_each_and_a_leaderboard(egon: Browser) -> None:
    third = {"q1": {"d3": 2.0, "d1": 1.0}, "q2": {"d2": 1.0}, "q3": {"d4": 1.0}, "q4": {"d1": 1.0}}
    files = {"file": ("third.json", json.dumps(third).encode())}
    egon.post("/runs", data={"csrf": egon.csrf}, files=files)
    where = asked(egon, candidate=[2, 3])
    page = egon.get(where).text
    assert "Leaderboard" in page
    one, other = (said(egon, f"{where}?candidate={name}")["queries"] for name in ("new", "third"))
    assert one != other
    assert egon.get(f"{where}?candidate=nobody").status_code == 400


@pytest.mark.deep  # in Chromium, too
def test_a_judgment_makes_it_older_and_it_is_computed_again(egon: Browser) -> None:
    where = asked(egon)
    assert said(egon, where)["since"] == ""
    opened = egon.site.opened("shop")
    rate(opened, "egon", "q1", "d5", 3.0, now=NOW)
    since = "1 judgment was given since this was computed."
    assert said(egon, where)["since"] == since
    assert said(egon, f"{where}/queries/q1")["since"] == since
    assert since in egon.get(where).text
    before = said(egon, where)["numbers"]
    assert egon.fill(f"{where}/again").status_code == 303  # type: ignore[attr-defined]
    after = said(egon, where)
    assert after["since"] == ""
    assert after["numbers"] != before


@pytest.mark.deep  # tests/workflows/workspace/test_stored_comparisons.py
def test_damaged_files_are_computed_again(egon: Browser) -> None:
    where = asked(egon)
    numbers = said(egon, where)["numbers"]
    for file in folder_of(egon, where).iterdir():
        file.write_bytes(b"half")
    assert said(egon, where)["numbers"] == numbers


def test_what_takes_long_is_waited_for_on_its_page(
    egon: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = kept_comparisons.compute
    monkeypatch.setattr(kept_comparisons, "compute", lambda *_: None)  # as if it went on
    where = asked(egon)
    page = egon.get(where)
    assert page.status_code == 200
    assert "The comparison is being computed" in page.text
    assert said(egon, where)["numbers"] is None
    monkeypatch.setattr(kept_comparisons, "compute", compute)
    assert "The comparison is being computed" not in egon.get(where).text


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Comparisons that are computed stop before their second run: whether one has, and go on."""
    read, at_second, go_on = kept_comparisons.read_stored, threading.Event(), threading.Event()

    def slowly(opened: Any, row: Any) -> Any:
        if row.id == 2:
            at_second.set()
            assert go_on.wait(60)
        return read(opened, row)

    monkeypatch.setattr(kept_comparisons, "read_stored", slowly)
    yield at_second, go_on
    go_on.set()


def until_over(browser: Browser, where: str) -> Job | None:
    name = f"comparison-{where.rsplit('/', 1)[1]}"
    while (job := last(browser.site, name)) is not None and not job.over:
        time.sleep(0.01)
    return job


def test_a_comparison_that_runs_shows_how_far_it_is_and_can_be_cancelled(
    egon: Browser,
    held: tuple[threading.Event, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
) -> None:
    at_second, go_on = held
    monkeypatch.setattr(stored_comparisons, "WAIT_S", 0.0)
    where = asked(egon)
    assert at_second.wait(60)
    page = egon.get(where).text
    assert "reading runs" in page
    assert '<noscript><meta http-equiv="refresh"' in page
    clock.pass_by(1)
    cancel = re.search(r'action="(/jobs/comparison-\d+/cancel)".*?name="back" value="(.*?)"', page)
    assert cancel is not None
    assert cancel[2] == where
    answer = egon.fill(cancel[1], back=where)
    assert (answer.status_code, answer.headers["location"]) == (303, where)
    assert "stopping" in egon.get(where).text
    go_on.set()
    job = until_over(egon, where)
    assert job is not None
    assert job.state == "cancelled"
    assert not folder_of(egon, where).exists()
    assert "The computation was cancelled." in egon.get(where).text
    assert row_of(egon, where).error == "cancelled"
    assert "cancelled" in egon.get("/comparisons").text
    monkeypatch.setattr(stored_comparisons, "WAIT_S", 60.0)
    egon.fill(f"{where}/again")
    assert "The computation was cancelled." not in egon.get(where).text
    assert until_over(egon, where) is None
    assert row_of(egon, where).state == "done"
    ended = egon.fill(cancel[1], back=where)  # pressed too late
    assert (ended.status_code, ended.headers["location"]) == (303, where)
    elsewhere = egon.fill(cancel[1], back="//example.com")
    assert elsewhere.status_code == 404


def test_a_cancelled_recomputation_leaves_the_previous_numbers(
    egon: Browser,
    held: tuple[threading.Event, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
) -> None:
    at_second, go_on = held
    go_on.set()
    where = asked(egon)
    numbers = said(egon, where)["numbers"]
    rate(egon.site.opened("shop"), "egon", "q1", "d5", 3.0, now=NOW)
    at_second.clear()
    go_on.clear()
    monkeypatch.setattr(stored_comparisons, "WAIT_S", 0.0)
    egon.fill(f"{where}/again")
    assert at_second.wait(60)
    clock.pass_by(1)
    assert "these are the previous numbers" in egon.get(where).text
    egon.fill(f"/jobs/comparison-{where.rsplit('/', 1)[1]}/cancel", back=where)
    go_on.set()
    until_over(egon, where)
    assert row_of(egon, where).state == "done"
    found = said(egon, where)
    assert found["numbers"] == numbers
    assert found["since"] == "1 judgment was given since this was computed."


def test_what_fails_says_why_and_can_be_tried_again(egon: Browser) -> None:
    where = asked(egon, by=["colour"])
    page = egon.get(where).text
    assert "The computation failed" in page
    assert "colour" in page
    assert f'action="{where}/again"' in page
    assert "could not be computed" in egon.get("/comparisons").text


def test_pairs_to_judge_next_go_into_the_queue(egon: Browser) -> None:
    where = asked(egon, measure=["P@2", "nDCG@10"])
    found = said(egon, where)["numbers"]
    assert isinstance(found, dict)
    wanted = {(each["query_id"], each["doc_id"]) for each in found["judge_next"]}
    assert wanted == {(query, "d5") for query in ("q1", "q2", "q3", "q4")}  # first in the candidate
    page = egon.get(f"{where}?view=priorities").text
    assert "Document d5" in page, "a document is called what it is called"
    assert f'href="{where}/queries/q1?doc=d5"' in page, "to be read and graded beside its rankings"
    answer = egon.fill(f"{where}/queue")
    assert answer.status_code == 303  # type: ignore[attr-defined]
    assert answer.headers["location"] == f"{where}?view=priorities"  # type: ignore[attr-defined]
    assert any(each.name.endswith("_said") for each in egon.cookies.jar)
    assert egon.get(where).status_code == 200
    assert not any(each.name.endswith("_said") for each in egon.cookies.jar), "it is said once"
    opened = egon.site.opened("shop")
    with opened.store.read() as c:
        there = set(pairs.frame(c, opened.golden.id).select("query_id", "doc_id").iter_rows())
    assert wanted <= there


@pytest.mark.parametrize(
    "fields",
    deep_but(
        [{"candidate": []}, {"candidate": [99]}, {"margin": "much"}],
        [
            {"candidate": []},
            {"candidate": [1]},
            {"candidate": [99]},
            {"other": "nope@"},
            {"margin": "much"},
            {"margin": "-1"},
            {"edition": "nope"},
            {"baseline": "x"},
        ],
    ),
)
def test_what_cannot_be_compared_is_refused(egon: Browser, fields: dict[str, object]) -> None:
    given = {"baseline": 1, "candidate": [2], **fields}
    answer = egon.fill("/comparisons/new", **given)
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert egon.get("/comparisons?format=json").json()["comparisons"] == []


def test_a_refused_form_is_shown_again_with_what_was_typed(egon: Browser) -> None:
    given: dict[str, object] = {
        "baseline": 2,
        "candidate": [1],
        "measure": ["P@10"],
        "other": "nDGC@5",
        "by": ["query_length"],
        "by_other": "returned.source",
        "margin": "0.02",
        "name": "Before <the> release",
    }
    answer: Any = egon.fill("/comparisons/new", **given)
    assert answer.status_code == 400
    assert 'class="wrong" role="alert"' in answer.text
    assert "Did you mean <bdi>nDCG" in answer.text
    page = answer.text
    form = page[page.index('action="/comparisons/new"') :]
    for name, value in (
        ("other", "nDGC@5"),
        ("by_other", "returned.source"),
        ("margin", "0.02"),
        ("name", "Before &lt;the&gt; release"),
    ):
        assert f'name="{name}" value="{value}"' in form, name
    ticked = set(re.findall(r'name="(\w+)" value="([^"]*)" checked', form))
    assert ticked == {
        ("baseline", "2"),
        ("candidate", "1"),
        ("measure", "P@10"),
        ("by", "query_length"),
    }
    assert "<details open><summary>Slices, margin, name" in form


def test_the_baseline_is_not_a_candidate(egon: Browser) -> None:
    def ticked(ask: str) -> list[tuple[str, str]]:
        page = egon.get(f"/comparisons/new{ask}").text
        return re.findall(r'name="(baseline|candidate)" value="(\d+)" checked', page)

    # Runs are listed the newest first: 2 is newer than 1.
    assert ticked("") == [("candidate", "2"), ("baseline", "1")]
    assert ticked("?baseline=2") == [("baseline", "2"), ("candidate", "1")]
    assert ticked("?candidate=1") == [("baseline", "2"), ("candidate", "1")]
    assert ticked("?baseline=2&candidate=2") == [("baseline", "2"), ("candidate", "1")]
    answer: Any = egon.fill("/comparisons/new", baseline=1, candidate=[1])
    assert answer.status_code == 400
    assert "No candidate is selected." in answer.text
    assert "select at least one run other than the baseline" in answer.text


@pytest.mark.deep  # framework/test_auth.py asks every route
def test_only_engineers_compare(client_of: ClientOf, egon: Browser) -> None:
    where = asked(egon)
    rita = client_of("rater")
    for address in ("/comparisons", "/comparisons/new", where):
        assert rita.get(address).status_code == 403
    assert rita.fill(f"{where}/again").status_code == 403  # type: ignore[attr-defined]
    assert egon.post(f"{where}/again").status_code == 403  # a form of another site
    assert egon.get("/comparisons/99").status_code == 404
    assert egon.get(f"{where}?measure=nope").status_code == 400


@pytest.mark.deep  # a race
def test_numbers_of_another_comparison_are_never_shown(egon: Browser) -> None:
    where = asked(egon)
    opened = egon.site.opened("shop")
    number = int(where.rsplit("/", 1)[1])
    with opened.store.begin() as c:  # as in a store from a backup: the same number, another thing
        values = {"runs": [2, 1], "created_us": NOW + 1, "name": "another", "attempt": "another"}
        c.execute(sa.update(comparison).where(comparison.c.id == number).values(values))
        row = stored.find(c, number)
    assert row is not None
    assert kept_comparisons.kept(opened, row) is None
    [listed] = kept_comparisons.described(opened, [row])
    assert listed.verdict is None
    numbers = said(egon, where)["numbers"]
    assert isinstance(numbers, dict)
    assert numbers["baseline"] == "new"


@pytest.mark.deep  # its page is in test_what_fails_says_why_and_can_be_tried_again
def test_what_failed_has_no_numbers(egon: Browser) -> None:
    where = asked(egon)
    opened = egon.site.opened("shop")
    number = int(where.rsplit("/", 1)[1])
    with opened.store.begin() as c:
        assert stored.again(c, number)
        stored.fail(c, number, "a run is gone", NOW)
    assert said(egon, where)["numbers"] is None
    assert "could not be computed" in egon.get("/comparisons").text
    assert egon.get(f"{where}/queries/q1", follow_redirects=False).status_code == 303


@pytest.mark.deep  # a race
def test_asking_again_while_it_is_computed_changes_nothing(
    egon: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = asked(egon)
    number = int(where.rsplit("/", 1)[1])
    monkeypatch.setattr(kept_comparisons, "compute", lambda *_: None)  # as if it went on
    with egon.site.workspace.store.begin() as c:
        assert stored.again(c, number)
        noted = audit.frame(c).height
    assert egon.fill(f"{where}/again").status_code == 303  # type: ignore[attr-defined]
    assert "The comparison is being recomputed" in egon.get(where).text
    with egon.site.workspace.store.read() as c:
        assert audit.frame(c).height == noted


@pytest.mark.deep  # test_damaged_files_are_computed_again
@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_a_table_that_goes_is_computed_again(egon: Browser, harm: str) -> None:
    where = asked(egon)
    shown = egon.get(f"{where}/queries/q1?format=json")
    numbers = said(egon, where)["numbers"]
    folder = folder_of(egon, where)
    for name, address in (("heads", f"{where}/queries/q1?format=json"), ("only_found", where)):
        for file in folder.glob(f"{name}.parquet"):
            file.unlink() if harm == "gone" else file.write_bytes(b"x" * file.stat().st_size)
        assert egon.get(address).status_code == 200
    again = egon.get(f"{where}/queries/q1?format=json").json()
    assert again["query"] == shown.json()["query"]
    assert said(egon, where)["numbers"] == numbers
