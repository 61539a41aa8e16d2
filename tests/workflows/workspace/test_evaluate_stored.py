"""Kept runs are found by number and by name, and measured as their files are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from karat.errors import UsageError
from karat.release.policy import policy_of
from karat.tables import Run
from karat.tables.golden.golden_sets import Exchange
from karat.workflows.golden.import_ import import_exchange
from karat.workflows.workspace.evaluate_stored import (
    coverage_stored,
    evaluate_stored,
    find_runs,
    gate_stored,
    pool_stored,
)
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    """Two queries, of which each has one document with a grade, and three runs."""
    make_workspace(tmp_path / "w", now=1, name="shop", environment={})
    facts = pl.DataFrame(
        {"query_id": ["q1", "q2"], "doc_id": ["a", "a"], "grade": [3.0, 0.0], "rater": "ann"}
    ).with_columns(reason=pl.lit(None, pl.String))
    queries = pl.DataFrame({"query_id": ["q1", "q2"], "text": ["one", "two"]})
    with open_workspace(tmp_path / "w", now=1, environment={}) as found:
        held = Exchange("csv", queries=queries, judgments=facts)
        import_exchange(found, held, file="f", sha256="0", now=1)
        for now, (name, score) in enumerate((("main", 1.0), ("7", 2.0), ("main", 3.0)), start=2):
            run = Run.from_dict({"q1": {"a": score, "b": 0.5}, "q2": {"b": score}})
            store_runs(found, [run.named(name)], now=now)
        yield found


def test_a_name_is_the_newest_run_of_it_and_digits_are_a_name_before_they_are_a_number(
    opened: Workspace,
) -> None:
    [first] = find_runs(opened, [1])
    assert first.name == "main"
    [newest] = find_runs(opened, ["main"])
    assert newest.id == 3
    assert [row.id for row in find_runs(opened, ["7", "1", "main"])] == [2, 1, 3]
    for wanted in (["mian"], [4], ["4"], [10**30], ["9" * 40], ["²"], ["main", 3]):
        with pytest.raises(UsageError):
            find_runs(opened, wanted)
    with pytest.raises(UsageError) as caught:
        find_runs(opened, ["mian"])
    assert caught.value.nearest == ("main",)


def test_numbers_of_kept_runs(opened: Workspace) -> None:
    # a is first and right for q1: RR 1; nothing is relevant for q2, which RR leaves out.
    [row] = evaluate_stored(opened, ["main"], ["RR@10"]).results
    assert (row.value, row.n) == (1.0, 1)
    covered = coverage_stored(opened, ["main"], k=1)
    # At rank 1 stand a, which is judged, and b of q2, which is not: a half.
    assert covered.runs.row(0, named=True)["judged"] == 0.5
    policy = policy_of({"rule": [{"measure": "RR@10", "min": 0.5}]})
    assert gate_stored(opened, policy, None, "main").candidate == "main"
    for call in (evaluate_stored, coverage_stored):
        with pytest.raises(UsageError, match="expected at least one run"):
            call(opened, [], *([[]] if call is evaluate_stored else []))


def test_who_pools_is_noted(opened: Workspace) -> None:
    from karat.store.sql import audit

    made = pool_stored(opened, ["main"], person="egon", now=9, method="rr", k=2)
    assert made.added == 2  # b of q1 and of q2
    with opened.store.read() as connection:
        [row] = audit.frame(connection).select("person", "about").rows()
    assert row == ("egon", "runs main, method rr, depth 2, new 2")
    with pytest.raises(UsageError, match="has no run 'x'"):
        pool_stored(opened, ["x"], person="egon", now=9)
    with pytest.raises(UsageError, match="unknown pooling method 'depht'; did you mean depth"):
        pool_stored(opened, ["main"], person="egon", now=9, method="depht")
