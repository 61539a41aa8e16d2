"""Planted failures are named: over a small collection, the demo and Cranfield (``planted.py``).

What the diagnosis makes of them is printed in ``docs/explanation/planted-failures.md``; ``--deep
--approve`` writes the tables there again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.workflows.diagnosis import planted
from tests.workflows.diagnosis.planted import CAUSES, Collection, Matrix, Plan

from karat.fusion import reciprocal_rank
from karat.tables.diagnosis.results import MODES
from karat.workflows.diagnosis.diagnose import Diagnosed, diagnose

PAGE = ROOT / "docs" / "explanation" / "planted-failures.md"

pytest.importorskip("sklearn")


@pytest.fixture(params=["the demo", "Cranfield"], scope="module")
def collection(request: pytest.FixtureRequest) -> Collection:
    if request.param == "the demo":
        return planted.demo()
    folder: Path = request.getfixturevalue("field_data")
    return planted.cranfield(folder / "cranfield")


@pytest.fixture
def diagnosed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plan], Diagnosed]:
    def made(plan: Plan) -> Diagnosed:
        # What a declared engine would answer.
        monkeypatch.setattr("karat.workflows.diagnosis.diagnose._in_index", lambda *_: plan.index)
        engine: Any = object()
        return diagnose(
            plan.qrels, plan.run, trace=plan.trace, below=1.1, engine=engine, **plan.more
        )

    return made


def test_each_cause_is_named_in_a_small_collection(
    diagnosed: Callable[[Plan], Diagnosed],
) -> None:
    small = planted.made(2 * len(CAUSES))
    matrix: Matrix = {}
    plan = planted.single(small, 0)
    planted.confused(matrix, plan, diagnosed(plan))
    assert {cause: dict(counts) for cause, counts in matrix.items()} == {
        cause: {mode: 2} for cause, (mode, _) in CAUSES.items()
    }
    assert {mode for mode, _ in (CAUSES | planted.EVERYWHERE).values()} == set(MODES)


@pytest.mark.deep  # over whole collections; the small one is above
def test_one_cause_of_each_query(
    collection: Collection, diagnosed: Callable[[Plan], Diagnosed], request: pytest.FixtureRequest
) -> None:
    """At least 9 of 10 are right for each cause, and of queries without one under 5 % are named."""
    matrix: Matrix = {}
    others = named = 0
    for shift in range(len(CAUSES)):  # each query has each cause once
        plan = planted.single(collection, shift)
        found = diagnosed(plan)
        planted.confused(matrix, plan, found)
        failing, wrongly = planted.controls(plan, found)
        others, named = others + failing, named + wrongly
    for plan in (planted.depth_cut(collection), planted.raw_scores(collection)):
        planted.confused(matrix, plan, diagnosed(plan))
    _printed(collection, "one cause", matrix, request)
    _right(matrix, [*CAUSES, *planted.EVERYWHERE])
    assert others > 100
    assert named <= 0.05 * others


@pytest.mark.deep
def test_two_causes_of_each_query(
    collection: Collection, diagnosed: Callable[[Plan], Diagnosed], request: pytest.FixtureRequest
) -> None:
    """Two documents of a query are lost in two ways: that of the better one is named."""
    matrix: Matrix = {}
    causes = [cause for cause in CAUSES if cause not in planted.OF_QUERIES]
    for shift in range(1, len(causes)):
        plan = planted.pairs(collection, shift)
        planted.confused(matrix, plan, diagnosed(plan))
    _printed(collection, "two causes", matrix, request)
    _right(matrix, causes)


@pytest.mark.deep
def test_controls_are_not_named(
    collection: Collection, diagnosed: Callable[[Plan], Diagnosed]
) -> None:
    """With nothing planted, all evidence at hand names no query."""
    failing, named = planted.controls(collection.unbroken, diagnosed(collection.unbroken))
    assert failing > 20
    assert named == 0


@pytest.mark.deep  # by hand in tests/diagnosis/test_waterfall.py
def test_what_a_fix_is_worth_is_what_it_gives_when_it_is_made(
    collection: Collection, diagnosed: Callable[[Plan], Diagnosed]
) -> None:
    """Fusion by rank instead of raw scores, and twice the depth: the changes are made as well."""
    raw, cut = planted.raw_scores(collection), planted.shallow(collection)
    names = ("bm25", "dense", "noise")
    for plan, change, lists, depth in (
        (raw, "by rank (reciprocal rank fusion, k=60)", names, planted.DEPTH),
        (cut, "depth 5 → 10", names[:2], 10),
    ):
        found = diagnosed(plan)
        (fix,) = [fix for fix in found.fixes if fix.change == change]
        made = reciprocal_rank([plan.trace.run(name) for name in lists], depth=depth)
        after = diagnosed(replace(plan, run=made)).value
        assert found.value is not None
        assert after is not None
        assert fix.gain == pytest.approx(after - found.value, abs=1e-12), change
        assert not fix.bound
        # What a perfect stage would give is the most that these can.
        assert all(each.bound for each in found.fixes if each.change.startswith("perfect"))
        perfect = {each.change: each.gain for each in found.fixes}
        assert fix.gain <= perfect["perfect fusion"]


def _right(matrix: Matrix, causes: Sequence[str]) -> None:
    assert set(matrix) == set(causes)
    shares = planted.right(matrix)
    assert min(shares.values()) >= 0.9, planted.table(matrix, "this collection")


def _printed(
    collection: Collection, what: str, matrix: Matrix, request: pytest.FixtureRequest
) -> None:
    """The page has this table."""
    text = PAGE.read_text(encoding="utf-8")
    head = f"<!-- {collection.name}, {what}: printed by tests/workflows/diagnosis -->\n"
    table = f"{head}\n{planted.table(matrix, collection.name)}\n"
    if request.config.getoption("approve"):
        text = re.sub(re.escape(head) + r"\n*(?:\|.*\n)*", lambda _: table, text)
        PAGE.write_text(text, encoding="utf-8")
    assert table in text
