"""The list of runs: whose grades its values are by, and how a run goes."""

from __future__ import annotations

import re

import pytest
from tests.web.conftest import NOW, ClientOf

from karat.errors import InputError
from karat.store.sql import audit
from karat.store.sql.runs import RunRow
from karat.tables import Run
from karat.web.offline import _run_lists, runs, stored_comparisons
from karat.workflows.judging.in_place import rate
from karat.workflows.workspace import stored_evaluations
from karat.workflows.workspace.stored_evaluations import Rules
from karat.workflows.workspace.stored_runs import keep_runs
from karat.workflows.workspace.workspace import Workspace


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits for its numbers, however slow the machine."""
    for module in (stored_comparisons, runs, _run_lists):
        monkeypatch.setattr(module, "WAIT_S", 60.0)


def test_values_are_of_now_or_say_that_they_are_not(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    egon = client_of("engineer")
    first = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in first] == ["of now"] * 2  # nobody opened a run before
    assert all(row["nDCG@10"] is not None for row in first)
    rate(egon.site.opened("shop"), "egon", "q1", "d5", 3.0, now=NOW)
    monkeypatch.setattr(_run_lists, "WAIT_S", 0.0)
    monkeypatch.setattr(_run_lists.COMPUTING, "run", lambda *_: False)
    old = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in old] == ["older: being computed again"] * 2
    assert [row["nDCG@10"] for row in old] == [row["nDCG@10"] for row in first]
    assert "data-waits" in egon.get("/runs").text
    monkeypatch.undo()
    monkeypatch.setattr(_run_lists, "WAIT_S", 60.0)
    again = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in again] == ["of now"] * 2
    assert [row["nDCG@10"] for row in again] != [row["nDCG@10"] for row in first]
    assert "data-waits" not in egon.get("/runs").text


def test_what_cannot_be_computed_says_so_and_leads_to_why(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(*_: object) -> None:
        raise InputError("the rankings are broken")

    monkeypatch.setattr(stored_evaluations, "compute", compute)
    text = client_of("engineer").get("/runs").text
    assert text.count("not computed: see why") == 2
    assert "data-waits" not in text


def test_runs_that_are_broken_do_not_keep_others_from_being_computed(
    client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    egon = client_of("engineer")
    opened = egon.site.opened("shop")
    broken = [Run.from_dict({"q1": {f"d{n}": 1.0}}, f"broken {n}") for n in range(9)]
    keep_runs(opened, broken, now=NOW + 1)
    plain, clocks = stored_evaluations.compute, []

    def compute(opened: Workspace, row: RunRow, rules: Rules) -> None:
        if row.name.startswith("broken"):
            raise InputError("the rankings are broken")
        plain(opened, row, rules)

    def clock(opened: Workspace, rules: Rules) -> str:
        clocks.append(rules)
        return plain_clock(opened, rules)

    plain_clock = stored_evaluations.clock
    monkeypatch.setattr(stored_evaluations, "compute", compute)
    monkeypatch.setattr(stored_evaluations, "clock", clock)
    listed = egon.get("/runs?format=json").json()["runs"]
    assert [row["numbers"] for row in listed] == ["not computed: see why"] * 9 + ["of now"] * 2
    assert len(clocks) == 1  # it is of the golden set, not of each run
    assert "data-waits" not in egon.get("/runs").text


def test_a_run_and_a_comparison_are_removed_when_it_is_confirmed(client_of: ClientOf) -> None:
    egon = client_of("engineer")
    made = egon.fill("/comparisons/new", baseline="1", candidate="2", measure="P@3")
    comparison = made.headers["location"]  # type: ignore[attr-defined]
    page = egon.get("/runs/1").text
    assert "cannot be removed while a comparison needs it" in page
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
