"""The policy of a workspace: its verdict on a stored comparison, and how the first is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.web.conftest import NOW, make_shop

from karat.errors import InputError
from karat.store.sql import audit
from karat.workflows.judging.in_place import rate
from karat.workflows.release.policy_verdicts import (
    KIND,
    Deciding,
    policy_in,
    policy_text,
    write_first_policy,
)
from karat.workflows.workspace import stored_comparisons
from karat.workflows.workspace.evaluate_stored import gate_stored
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.workspace import Workspace, open_workspace


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A shop whose run ``new`` returns the documents of ``old`` in the reverse order."""
    monkeypatch.delenv("KARAT_STORE", raising=False)
    with open_workspace(make_shop(tmp_path / "shop", {}), now=NOW) as found:
        yield found


def policy(opened: Workspace, *rules: str) -> None:
    text = "\n".join(f"[[rule]]\n{rule}" for rule in rules)
    (opened.workspace.root / "gate.toml").write_text(text)


def deciding(opened: Workspace) -> Deciding:
    number = stored_comparisons.ask(opened, Asked([1, 2], ["nDCG@3", "P@2"]), by="egon", now=NOW)
    stored_comparisons.compute(opened, number, lambda: NOW)
    found = stored_comparisons.find(opened, number)
    assert found is not None
    result = stored_comparisons.kept(*found)
    rules = policy_in(opened)
    assert result is not None
    assert rules is not None
    return Deciding(opened, found[1], result, "new", rules)


def test_it_is_the_gate_of_the_same_runs_and_is_computed_once(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(opened, 'measure = "nDCG@3"\nmax_drop = 0.01\neach = "query_length"')
    asked = deciding(opened)
    assert asked.kept() is None
    made = asked.compute()
    assert made.to_dict() == gate_stored(opened, asked.policy, 1, 2).to_dict()
    assert (made.candidate, made.baseline, made.policy) == ("new", "old", "gate.toml")
    monkeypatch.setattr(Deciding, "_gate", lambda _: pytest.fail("it was computed again"))
    assert asked.compute() == asked.kept() == made
    [folder] = (opened.workspace.root / "artifacts" / KIND).iterdir()
    assert folder.name == asked.key
    policy(opened, 'measure = "nDCG@3"\nmax_drop = 0.9')
    other = policy_in(opened)
    assert other is not None
    assert replace(asked, policy=other).key != asked.key


def test_grades_that_came_since_change_it_when_the_comparison_is_computed_again(
    opened: Workspace,
) -> None:
    # d5, not judged so far, is the first of the candidate: with grade 3, nDCG@3 rises.
    policy(opened, 'measure = "nDCG@3"\nmin = 0.01')
    asked = deciding(opened)
    for query in ("q1", "q2", "q3", "q4"):
        rate(opened, "egon", query, "d5", 3.0, now=NOW)
    [before] = [each for each in asked.compute().checks if each.measure]
    shown = asked.found.comparison.differences[0]
    assert before.candidate_value == shown.candidate_value  # as the page next to it says
    stored_comparisons.request_again(opened, asked.row, by="egon", now=NOW)
    stored_comparisons.compute(opened, asked.row.id, lambda: NOW)
    found = stored_comparisons.find(opened, asked.row.id)
    assert found is not None
    again = stored_comparisons.kept(*found)
    assert again is not None
    [after] = [
        each for each in replace(asked, row=found[1], found=again).compute().checks if each.measure
    ]
    assert after.candidate_value > before.candidate_value


def test_the_first_policy_is_written_once_and_audited(opened: Workspace) -> None:
    assert (policy_in(opened), policy_text(opened)) == (None, "")
    path = opened.workspace.root / "gate.toml"
    policy(opened, 'measure = "P@2"\nmin = 0.01')
    asked = deciding(opened)
    with pytest.raises(InputError) as kept:
        write_first_policy(opened, asked.row, asked.found, person="egon", now=NOW)
    assert (kept.value.file, kept.value.what) == ("gate.toml", "the file already exists")
    assert policy_text(opened) == '[[rule]]\nmeasure = "P@2"\nmin = 0.01'
    path.unlink()
    write_first_policy(opened, asked.row, asked.found, person="egon", now=NOW)
    written = policy_in(opened)
    assert written is not None
    assert [str(rule.measure) for rule in written.rules] == ["nDCG@10", "AP"]
    assert "# of the latency" in policy_text(opened) or "have no times" in policy_text(opened)
    with opened.store.read() as connection:
        noted = audit.frame(connection).filter(action="write policy")
    assert noted["subject"].to_list() == ["gate.toml"]


def test_a_broken_policy_says_where_without_the_place_on_the_server(opened: Workspace) -> None:
    path = opened.workspace.root / "gate.toml"
    path.write_text("[[rule]]\nmeasure = nDCG")
    with pytest.raises(InputError) as broken:
        policy_in(opened)
    assert (broken.value.file, broken.value.line) == ("gate.toml", 2)
    assert str(opened.workspace.root) not in str(broken.value)
    path.write_text('[[rule]]\nmeasure = "nDCG@3"\nmax_drop = 0.1\neach = "colour"')
    with pytest.raises(Exception, match="colour"):
        deciding(opened).compute()
