"""The demo's workspace: what it holds, again and again, and in no store but its own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import polars as pl
import pytest

from karat.demo.build import build
from karat.demo.workspace import EDITION, keep, keep_comparison
from karat.formats import read_qrels
from karat.tables import Pairs
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing
from karat.workflows.golden.editions import NOW, content_of
from karat.workflows.golden.queries import pairs_in
from karat.workflows.workspace.run_stages import chosen, with_stages
from karat.workflows.workspace.workspace import open_workspace


@pytest.mark.usefixtures("two_documents")
def test_it_is_kept_once_and_in_no_store_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_STORE", f"sqlite:///{tmp_path / 'team.db'}")
    made = build(tmp_path / "demo", lambda _: None)
    graded = read_qrels(made.directory).frame.select("query_id", "doc_id", "grade")
    graded = graded.cast({"grade": pl.Float64}).sort("query_id", "doc_id")
    wanted = Pairs(pl.DataFrame({"query_id": ["q01"], "doc_id": ["functools.lru_cache"]}))
    first = keep(made, wanted, now=1_800_000_000_000_000)
    again = keep(made, wanted, now=1_800_000_001_000_000)
    assert (first.edition, first.grades, first.waiting) == (EDITION, made.judgment_count, 2)
    assert (again.grades, again.waiting) == (first.grades, 2)
    # What the graders see differently counts as in the demo's qrels: both doors say one number.
    with open_workspace(made.directory, now=1_800_000_001_000_000, environment={}) as opened:
        for name in (NOW, EDITION):
            kept_grades = content_of(opened, name).grades.select("query_id", "doc_id", "grade")
            assert kept_grades.equals(graded)
        # Of the 200 in README.md 3 went from 1 to 0, where the lower is not the first; 7 from 0 to
        # 1, which differ in whether the document is relevant. The 4 others are relevant to both.
        states = pairs_in(opened)["state"].value_counts()
        assert dict(states.rows())["settled"] == 3
        assert dict(states.rows())["disagreement"] == 7
    told = resources.files("karat.demo").joinpath("golden", "README.md").read_text("utf-8")
    assert "settles the three pairs for which that is another, and leaves seven open" in told
    assert first.agreement.pairs == 200  # those graded twice: see golden-set.md
    assert (first.notes, again.notes) == ([], [])
    assert not (tmp_path / "team.db").exists()
    called = keep_comparison(made, lambda: 1_800_000_002_000_000)
    assert keep_comparison(made, lambda: 1_800_000_003_000_000) == called  # once for the same runs
    kept = made.directory / "comparisons"
    assert len(list(kept.iterdir()) if kept.exists() else []) <= 1


def test_the_list_of_diagnoses_has_numbers(built_demo: Path) -> None:
    with open_workspace(built_demo / "demo", now=1_800_000_000_000_000, environment={}) as opened:
        kept = {
            row.name: Diagnosing(opened, row, chosen(opened, stages)).kept()
            for row, stages in with_stages(opened)
        }
    assert "hybrid" in kept
    assert None not in kept.values()
