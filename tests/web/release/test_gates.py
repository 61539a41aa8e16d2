"""Gates in the browser: the list, a result with the rule that decides it, and chips elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.net.visible import visible
from tests.web.conftest import NOW, Browser, ClientOf

from karat.formats.own import history
from karat.release.policy import policy_of
from karat.tables.release.history import Point, Value
from karat.web import home
from karat.web.release import gates as pages
from karat.workflows.golden.status import status as status_of
from karat.workflows.release.stored_gates import Checked, check_stored
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.evaluate_stored import evaluate_stored
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_runs import read_stored, store_runs, stored_by_name
from karat.workflows.workspace.workspace import Workspace

DAY = 86_400_000_000
EVIL = "<script>alert(1)</script>"
POLICY = '[[rule]]\nmeasure = "nDCG@5"\nmax_drop = {}\n'


@pytest.fixture
def egon(client_of: ClientOf) -> Browser:
    return client_of("engineer")


def words(answer: Any) -> str:
    """The text of a page, on one line."""
    return " ".join(visible(answer.text).split())


def check(
    opened: Workspace,
    candidate: str = "new",
    *,
    baseline: str = "old",
    limit: float = 0.001,
    measure: str = "nDCG@5",
    name: str = "gate.toml",
    **by: Any,
) -> int:
    """A stored result: of ``new`` against ``old`` it fails, of ``old`` against itself it passes."""
    rules = policy_of({"rule": [{"measure": measure, "max_drop": limit}]}, name)
    who = Checked(**{"source": "command", "person": "ann", "now": NOW} | by)
    number, _ = check_stored(opened, rules, baseline, candidate, who)
    assert number is not None
    return number


def worse(opened: Workspace) -> tuple[str, str]:
    """The candidate and the baseline of a gate that fails: of old and new the worse one."""
    rows = evaluate_stored(opened, ["old", "new"], ["nDCG@5"]).results
    low, high = sorted(rows, key=lambda row: row.value or 0.0)
    return low.run, high.run


@pytest.fixture
def opened(egon: Browser) -> Workspace:
    return egon.site.opened("shop")


def test_without_gates_the_page_says_how_to_get_one(egon: Browser, workspace: Path) -> None:
    said = words(egon.get("/gates"))
    assert "No gates yet." in said
    assert "karat gate --policy gate.toml QRELS BASELINE CANDIDATE" in said
    assert "The workspace has no policy: karat gate --init" in said
    assert egon.get("/gates?format=json").json()["gates"] == []


def test_the_list_is_newest_first_and_filtered(egon: Browser, opened: Workspace) -> None:
    low, high = worse(opened)
    failed = check(opened, low, baseline=high, now=NOW - 2 * DAY)
    passed = check(opened, high, baseline=low, name="other.toml", source="api", commit="abc")
    page = egon.get("/gates")
    said = words(page)
    assert said.index("Ship") < said.index("nDCG@5 drops by at most 0.001")
    assert "2 days ago" in said
    rows = egon.get("/gates?format=json").json()["gates"]
    assert [(row["id"], row["answer"], row["verdict"]) for row in rows] == [
        (passed, "Ship", "pass"),
        (failed, "Hold", "fail"),
    ]
    assert [row["rule"] for row in rows] == [None, "nDCG@5 drops by at most 0.001"]
    for asked in ("answer=Hold", f"candidate={low}", "policy=gate.toml", "source=command"):
        rows = egon.get(f"/gates?format=json&{asked}").json()["gates"]
        assert [row["id"] for row in rows] == [failed], asked
    assert egon.get("/gates?format=csv").text.count("\n") == 3
    sorted_ = words(egon.get("/gates?sort=rule"))
    assert sorted_.index(f"/gates/{failed}") < sorted_.index(f"/gates/{passed}"), "no rule: last"
    assert f'href="/gates/{failed}"' in page.text


def test_a_result_names_the_rule_that_decides_first(egon: Browser, opened: Workspace) -> None:
    low, high = worse(opened)
    number = check(opened, low, baseline=high, commit="0123456789abcdef")
    page = egon.get(f"/gates/{number}")
    said = words(page)
    head = said[said.index(f"{low} against {high}") :]
    assert head.index("Hold") < head.index("nDCG@5 drops by at most 0.001") < head.index("Rules")
    assert re.search(r"Dropped by 0\.\d{4} \(\d+\.\d %\), allowed 0\.001\.", head)
    assert "beyond the limit of 0.0010." in head
    assert "commit 0123456789ab" in head
    assert "by ann, with the command" in head
    assert page.text.count('class="drawn"') == 2, "in the head, and in the row"
    assert "Queries that broke it" in head
    record = egon.get(f"/gates/{number}?format=json").json()["record"]
    assert record["gate"]["checks"][0]["verdict"] == "fail"
    first = record["gate"]["lost"][0]["query_id"]
    run = record["places"]["candidate"]
    assert f'href="/runs/{run}/queries/{first}"' in page.text, "side by side needs a comparison"
    assert egon.get(f"/runs/{run}/queries/{first}", follow_redirects=True).status_code == 200
    assert f"/comparisons/new?baseline={record['places']['baseline']}" in page.text
    assert egon.get("/gates/99").status_code == 404
    assert egon.get("/gates/x").status_code in {400, 404}


def test_queries_lead_to_the_comparison_of_the_same_runs(egon: Browser, opened: Workspace) -> None:
    low, high = worse(opened)
    number = check(opened, low, baseline=high)
    ids = egon.get(f"/gates/{number}?format=json").json()["record"]["places"]
    asked = Asked([ids["baseline"], ids["candidate"]], ["nDCG@5"])
    compared = stored_comparisons.ask(opened, asked, by="egon", now=NOW)
    stored_comparisons.compute(opened, compared, lambda: NOW)
    page = egon.get(f"/gates/{number}")
    assert "Comparison of the two" in words(page)
    [first, *_] = re.findall(rf'href="(/comparisons/{compared}/queries/[^"]+)"', page.text)
    assert egon.get(first).status_code == 200
    chips = words(egon.get(f"/comparisons/{compared}"))
    assert re.search(
        r"Gate: </gates/\d+> Hold nDCG@5: −[\d.]+ % \(limit −[\d.]+ %\) by gate\.toml", chips
    )
    back = Asked([ids["candidate"], ids["baseline"]], ["nDCG@5"])
    other = stored_comparisons.ask(opened, back, by="egon", now=NOW)
    stored_comparisons.compute(opened, other, lambda: NOW)
    assert "Gate:" not in words(egon.get(f"/comparisons/{other}")), "the other way round"


def test_a_run_has_its_newest_gates(egon: Browser, opened: Workspace) -> None:
    low, high = worse(opened)
    numbers = [check(opened, low, baseline=high, now=NOW + at) for at in range(4)]
    run = egon.get(f"/gates/{numbers[0]}?format=json").json()["record"]["places"]
    page = egon.get(f"/runs/{run['candidate']}")
    assert [f"/gates/{each}" in page.text for each in numbers] == [False, True, True, True]
    assert f'href="/gates?candidate={low}">1 more</a>' in page.text
    found = egon.get(f"/runs/{run['candidate']}?format=json").json()["gates"]
    assert [row["id"] for row in found["rows"]] == numbers[:0:-1]
    assert "Gate" not in words(egon.get(f"/runs/{run['baseline']}")).partition("Measures")[0][400:]


def test_a_point_of_a_trend_leads_to_its_gate(
    egon: Browser, opened: Workspace, workspace: Path
) -> None:
    low, high = worse(opened)
    number = check(opened, low, baseline=high)
    value = (Value("nDCG@5", 0.5, 0.4, 0.6, 4),)
    of = dict.fromkeys(("queries", "qrels", "run", "corpus"))
    for time, verdict in (("2027-01-14T08:00:00Z", "pass"), ("2027-01-15T08:00:00Z", "fail")):
        point = Point(time, "gate", low, None, verdict, "", "1", value, of, series="night")
        history.append(workspace / "history.jsonl", point)
    where = "/trends/history.jsonl?run=night&measure=nDCG%405"
    page = egon.get(where)
    assert re.search(rf'<a href="/gates/{number}">.*fail', page.text)
    assert [row["gate"] for row in egon.get(f"{where}&format=json").json()["points"]] == [
        number,
        None,
    ]
    assert f'href="{where.replace("&", "&amp;")}"' in egon.get(f"/gates/{number}").text
    # The point is of the gate that is stored: home names it once, with its rule.
    lines = egon.get("/?format=json").json()["attention"]
    gate = [each for each in lines if "ate of" in each["what"]]
    assert [each["where"] for each in gate] == [f"/gates/{number}"]
    assert re.fullmatch(
        rf"Gate of {low} failed: nDCG@5: −[\d.]+ % \(limit −[\d.]+ %\)", gate[0]["what"]
    )
    point = Point("2027-01-16T08:00:00Z", "gate", low, None, "fail", "", "1", value, of)
    history.append(workspace / "history.jsonl", point)
    lines = [each.where for each in home.failing_gates(home.Seen(egon.site, [status(egon)]))]
    assert lines == [f"/gates/{number}", f"/trends/history.jsonl?run={low}"], "a newer one"
    check(opened, low, baseline=high, limit=0.9, now=NOW + 2 * DAY)
    assert list(home.failing_gates(home.Seen(egon.site, [status(egon)]))) == []


def status(browser: Browser) -> Any:
    return status_of(browser.site.opened("shop"), now=browser.site.clock())


def test_many_candidates_that_failed_are_counted(egon: Browser, opened: Workspace) -> None:
    low, high = worse(opened)
    [run] = read_stored(opened, [stored_by_name(opened)[low]])
    for number in range(5):
        store_runs(opened, [run.named(f"pr-{number}")], now=NOW)
        check(opened, f"pr-{number}", baseline=high, now=NOW + number)
    lines = list(home.failing_gates(home.Seen(egon.site, [status(egon)])))
    assert [line.where for line in lines][-1] == "/gates"
    assert lines[-1].what == "And 2 more gates that failed"
    assert lines[0].what.startswith("Gate of pr-4 failed: nDCG@5")


def test_a_stored_run_is_checked_by_a_form(
    egon: Browser, opened: Workspace, workspace: Path, client_of: ClientOf
) -> None:
    (workspace / "gate.toml").write_text(POLICY.format(0.9))
    page = egon.get("/gates").text
    assert "<option>gate.toml</option>" in page
    answer: Any = egon.fill("/gates", candidate=2, baseline=1, policy="gate.toml")
    assert answer.status_code == 303
    where = answer.headers["location"]
    assert where == "/gates/1"
    assert "Ship" in words(egon.get(where))
    assert "by egon, on the page" in words(egon.get(where))
    # The same again, a second later, is the same result.
    assert (
        egon.fill("/gates", candidate=2, baseline=1, policy="gate.toml").headers[  # type: ignore[attr-defined]
            "location"
        ]
        == where
    )
    for fields, status_, said in (
        ({"candidate": 2, "policy": "gate.toml"}, 400, "The policy compares with a baseline"),
        ({"candidate": 2, "baseline": 1, "policy": "gaet.toml"}, 400, "Did you mean gate.toml"),
        ({"candidate": 9, "baseline": 1, "policy": "gate.toml"}, 400, "has no run 9"),
    ):
        refused: Any = egon.fill("/gates", **fields)
        assert refused.status_code == status_, words(refused)
        assert said in words(refused)
    assert '<option value="1" selected>' in refused.text, "what was chosen stays"
    rita = client_of("rater")
    assert rita.get("/gates").status_code == 403
    assert rita.fill("/gates", candidate=2, policy="gate.toml").status_code == 403  # type: ignore[attr-defined]


def test_a_check_that_takes_long_is_a_job(
    egon: Browser, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "gate.toml").write_text(POLICY.format(0.9))
    monkeypatch.setattr(pages, "WAIT_S", 0.0)
    answer: Any = egon.fill("/gates", candidate=2, baseline=1, policy="gate.toml")
    where = answer.headers["location"]
    assert where.startswith(("/jobs/gate-", "/gates/"))
    for _ in range(200):
        if egon.get("/gates?format=json").json()["gates"]:
            break
    assert egon.get("/gates/1").status_code == 200


def test_names_are_shown_and_nothing_more(egon: Browser, opened: Workspace) -> None:
    low, high = worse(opened)
    number = check(opened, low, baseline=high, name=EVIL, commit=EVIL, person=EVIL)
    for where in ("/gates", f"/gates/{number}", "/"):
        text = egon.get(where).text
        assert EVIL not in text
        assert "&lt;script&gt;" in text or where == "/"
