"""Home: what needs attention, each with the page to do it on."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient
from tests.web.conftest import NOW, Browser, ClientOf, Clock, with_deep

from karat.demo import load
from karat.demo.build import Demo
from karat.store.sql import people, runs
from karat.store.sql.schema import golden_set
from karat.tables.workspace import RunRow
from karat.web import home
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.web.home import Attention
from karat.workflows.judging.in_place import rate
from karat.workflows.workspace.stored_comparisons import Older
from karat.workflows.workspace.workspace import Workspace, make_workspace


def test_it_says_what_waits_and_where(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    found = browser.get("/", params={"format": "json"}).json()
    said = [(each["what"], each["where"]) for each in found["attention"]]
    assert said == [
        ("16 disagreements to send to adjudication", "/golden/shop/disagreements"),
        ("8 judgments to give", "/judge/shop"),
        ("Freeze an edition: no edition yet", "/golden/shop/editions#freeze"),
    ]
    text = browser.get("/").text
    for where in re.findall(r'href="(/golden[^"]*)"', text):
        assert browser.get(unescape(where)).status_code == 200
    browser.fill("/golden/shop/disagreements", every="true")
    browser.fill("/golden/shop/editions", edition="first")
    after = browser.get("/", params={"format": "json"}).json()["attention"]
    assert [each["what"] for each in after] == [
        "16 disagreements to adjudicate",
        "8 judgments to give",
    ]


@pytest.mark.deep
def test_a_comparison_that_unjudged_pairs_could_turn_is_named(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    asked = {"baseline": "1", "candidate": "2", "measure": "nDCG@3"}
    where = egon.fill("/comparisons/new", **asked).headers["location"]  # type: ignore[attr-defined]
    for _ in range(50):
        if egon.get(where, params={"format": "json"}).json()["row"]["state"] == "done":
            break
    found = egon.get("/", params={"format": "json"}).json()["attention"]
    [said] = [each for each in found if "flip" in each["what"]]
    # d5 is first in new, and nobody judged it: of each of the four queries.
    assert said["what"] == (
        "Unjudged pairs could flip the sign of nDCG@3 in “new against old”: 4 pairs to judge first"
    )
    assert said["where"] == f"{where}#next"
    rate(egon.site.opened("shop"), "egon", "q1", "d5", 3.0, now=NOW)
    found = egon.get("/", params={"format": "json"}).json()["attention"]
    assert not any("flip" in each["what"] for each in found)  # it may be settled by now
    [said] = [each for each in found if "Recompute" in each["what"]]
    assert said["what"] == "Recompute “new against old”: 1 judgment was given since"
    assert said["where"] == where
    seen = egon.get(where, params={"format": "json"}).json()["row"]["created_us"]
    egon.fill(f"{where}/remove", sure="yes", seen=seen)
    assert "Recompute" not in egon.get("/").text
    assert "flip" not in egon.get("/").text


@pytest.mark.parametrize(("count", "own"), [(4, 4), (5, 3), *with_deep((1, 1))])
def test_of_many_comparisons_the_newest_are_named_and_the_rest_counted(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch, count: int, own: int
) -> None:
    there = [
        SimpleNamespace(
            row=SimpleNamespace(name=f"n{at}", id=at, state="done", created_us=-at),
            turns=["AP"],
            next=2,
            older=Older(changed=changed),
        )
        for at in range(count)
        for changed in (False, True)
    ]
    monkeypatch.setattr(home, "listed", lambda _opened: there)
    browser = client_of("engineer")
    page = seen(browser)
    assert page["looks"][-1]["where"] == "/comparisons/0"
    found = page["attention"]
    said = [(each["what"], each["where"]) for each in found if "/comparisons" in each["where"]]
    rest = own < count
    assert len(said) == 2 * (own + rest)
    flips, older = said[: own + rest], said[own + rest :]
    assert [where for _, where in flips[:own]] == [f"/comparisons/{at}#next" for at in range(own)]
    assert all(what.startswith("Recompute ") for what, _ in older[:own])
    if rest:
        where = "/comparisons"
        assert flips[-1] == (f"And {count - 3} more comparisons whose sign could flip", where)
        assert older[-1] == (f"And {count - 3} more comparisons to recompute", where)


def test_what_is_damaged_is_named(client_of: ClientOf, workspace: Path) -> None:
    browser = client_of("engineer")

    def damaged() -> dict[str, str]:
        found = browser.get("/", params={"format": "json"}).json()["attention"]
        return {each["where"]: each["what"] for each in found if each["where"] in places}

    rows = runs_of(browser.site.opened("shop"))
    places = {"/trends", *(f"/runs/{row.id}" for row in rows)}
    assert damaged() == {}  # a history that does not exist yet is not damaged
    old, new = sorted(rows, key=lambda row: row.name, reverse=True)
    (workspace / old.path).unlink()
    (workspace / new.path).write_bytes((workspace / new.path).read_bytes()[:-2])
    (workspace / "history.jsonl").write_text("nonsense\n")
    assert damaged() == {
        "/trends": "The history history.jsonl cannot be read",
        f"/runs/{old.id}": "The file of the run “old” is gone",
        f"/runs/{new.id}": "The file of the run “new” is damaged",
    }
    (workspace / new.path).write_bytes(b"PAR")
    assert damaged()[f"/runs/{new.id}"] == "The file of the run “new” is damaged"


def runs_of(opened: Workspace) -> list[RunRow]:
    with opened.store.read() as connection:
        return runs.runs(connection, opened.golden.id)


def gate_point(run: str, verdict: str | None, time: str) -> str:
    """A line of a history: what a gate said of a run, or with None an evaluation."""
    made = {"karat_history": 1, "time": time, "run": run, "commit": None, "rules": ""}
    made |= {"kind": "gate" if verdict else "evaluate", "verdict": verdict, "karat": "1"}
    value = {"measure": "nDCG@10", "value": 0.5, "ci_low": None, "ci_high": None, "n": 4}
    hashes = dict.fromkeys(("queries", "qrels", "run", "corpus"))
    return json.dumps(made | {"values": [value], "slices": [], "hashes": hashes}) + "\n"


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("fail", "failed"),
        ("pass", ""),
        *with_deep(("unhealthy", "failed: the search"), ("cannot_tell", "")),
    ],
)
def test_a_gate_that_failed_last_is_named(
    client_of: ClientOf, workspace: Path, verdict: str, words: str
) -> None:
    rules = workspace / "karat.toml"
    rules.write_text(re.sub(r"histories = .*", 'histories = ["nightly.jsonl"]', rules.read_text()))
    rows = [
        gate_point("gone", "fail", "2026-01-30T02:00:00Z"),
        gate_point("weekly", "fail", "2026-01-31T02:00:00Z"),
        gate_point("main", "fail", "2026-03-01T02:00:00Z"),
        gate_point("main", verdict, "2026-03-02T02:00:00Z"),
        gate_point("main", None, "2026-03-03T02:00:00Z"),
    ]
    (workspace / "nightly.jsonl").write_text("".join(rows))
    settings = Settings(workspace, accounts=False, hosts=("127.0.0.1",))
    opened = create_app(settings)
    with TestClient(opened, base_url="http://127.0.0.1"):
        found = list(home.failing_gates(home.Seen(opened.state.site, ())))
    where = "/trends/nightly.jsonl?run="
    # 30 days before the newest gate: it may still be gated, once a month.
    assert [each.where for each in found] == [f"{where}weekly", *[f"{where}main"] * bool(words)]
    assert words in found[-1].what


def seen(browser: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = browser.get("/", params={"format": "json"}).json()
    return found


def test_the_first_line_says_how_search_is(client_of: ClientOf, workspace: Path) -> None:
    browser = client_of("engineer")
    said = "No verdict yet: nothing is measured over time."
    assert (seen(browser)["verdict"], seen(browser)["said"]) == ("cannot_tell", said)
    history = workspace / "history.jsonl"
    history.write_text(gate_point("main", "pass", "2026-03-01T02:00:00Z"))
    found = seen(browser)
    assert found["said"] == "Nothing got worse that karat can see in gates."
    assert [each["verdict"] for each in found["looks"]] == ["none", "fine", "cannot_tell"]
    [quality] = found["headlines"]
    assert (quality["title"], quality["value"]) == ("nDCG@10 of main", 0.5)
    assert quality["change"] is None
    with history.open("a") as file:
        file.write(gate_point("main", "fail", "2026-03-02T02:00:00Z"))
    found, text = seen(browser), browser.get("/").text
    assert (found["verdict"], found["said"]) == ("worse", "The newest gate of main failed.")
    assert "The newest gate of main failed</a>." in text
    assert "More problems" not in text
    with history.open("a") as file:
        file.write(gate_point("weekly", "fail", "2026-03-02T02:00:00Z"))
    said = "The newest gate of main failed, and 1 more problem."
    assert seen(browser)["said"] == said
    text = browser.get("/").text
    assert text.count("The newest gate of main failed") == 1  # it is in the line, not in the list
    assert text.index('id="worse"') < text.index("The newest gate of weekly failed")
    assert '<polyline points="2.0,14.0 118.0,14.0"/>' in text  # twice the same value: its middle


def test_an_empty_workspace_has_steps_and_the_demo(
    tmp_path: Path, built_demo: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_workspace(tmp_path, now=NOW, environment={})

    def build(folder: Path, _said: object) -> Demo:
        paths = {name: folder / path for name, path in WRITTEN.items()}
        runs = [folder / "runs" / f"{name}.trec" for name in ("bm25", "semantic", "hybrid")]
        for path in (*paths.values(), *runs):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built_demo / "demo" / path.relative_to(folder), path)
        return Demo(folder, **paths, report=folder, runs=tuple(runs), **COUNTS)

    monkeypatch.setattr(load, "build", build)
    app = create_app(Settings(tmp_path, hosts=("127.0.0.1",)), clock)
    with TestClient(app):
        site = app.state.site
        with site.workspace.store.begin() as c:
            olga = people.add(c, "olga", "owner", None, clock())
        browser = Browser(app, olga)
        found = seen(browser)
        assert [each["name"] for each in found["steps"] if not each["done"]] == [
            *("Queries", "A run", "Judgments", "A comparison", "Events")
        ]
        assert "Load the demo" in browser.get("/").text
        browser.fill("/demo")
        found = seen(browser)
        assert found["steps"] == []
        assert found["golden"][0]["made_of"]["queries"] == 88
        assert "karat demo" in browser.fill("/demo").text  # type: ignore[attr-defined]


WRITTEN = {
    "corpus": "corpus.jsonl",
    "queries": "queries.jsonl",
    "qrels": "qrels/test.tsv",
    "judgments": "judgments.tsv",
    "policy": "gate.toml",
}
COUNTS = {"document_count": 0, "query_count": 0, "judgment_count": 0}


def test_a_set_whose_name_cannot_stand_in_an_address_is_named(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    with browser.site.workspace.store.begin() as c:  # as an earlier karat let it be called
        c.execute(sa.update(golden_set).values(name="shop/old"))
    found = browser.get("/", params={"format": "json"}).json()
    assert found["golden"] == []
    assert [(one["of"], one["where"]) for one in found["attention"]] == [("shop/old", "/golden")]
    assert "shop/old" in browser.get("/golden").text


def test_a_rater_is_sent_to_the_judging(client_of: ClientOf) -> None:
    answer = client_of("rater").get("/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/judge")


def test_other_pages_add_what_they_watch(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gates(found: home.Seen) -> Iterable[Attention]:
        yield Attention(f"{len(found.sets)} gate <fails>", "/comparisons/1")

    monkeypatch.setattr(home, "WATCHES", [gates])
    text = client_of("engineer").get("/").text
    assert '<a href="/comparisons/1">1 gate &lt;fails&gt;</a>' in text


def test_what_was_judged_a_moment_ago_is_counted(client_of: ClientOf) -> None:
    """The status is computed once for each state, and never shown of an earlier one."""
    egon = client_of("engineer")

    def told() -> list[tuple[int, int]]:
        pages = ("/?format=json", "/golden?format=json", "/golden/shop?format=json")
        home, every, one = (egon.get(path).json() for path in pages)
        program = egon.get("/api/golden/shop/status").json()
        rows = [home["golden"][0], every["sets"][0], one["status"], program]
        return [(row["grades"], row["waiting"]) for row in rows]

    before = told()
    assert len({*before}) == 1
    rate(egon.site.opened("shop"), "egon", "q1", "d5", 3.0, now=NOW)
    (grades, waiting) = before[0]
    assert told() == [(grades + 1, waiting - 1)] * 4
