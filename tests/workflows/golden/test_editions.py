"""Editions: frozen, never changed, compared, and evaluated with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from karat.errors import InputError, PolicyRefused, UsageError
from karat.store.sql import golden_sets, queries
from karat.store.sql.opening import Store
from karat.tables import Run
from karat.workflows.golden.agreement import agreement_in, disagreements_in
from karat.workflows.golden.editions import (
    LONGEST,
    compare_editions,
    content_of,
    coverage,
    freeze,
    list_editions,
    weighed,
)
from karat.workflows.golden.export import export_golden_set
from karat.workflows.golden.import_ import import_from
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.workspace import Workspace, open_workspace

Tick = Callable[[], int]
HEAD = "query_id,query,doc_id,grade,rater\n"
SAID = "q1,door,d1,0,ann\nq1,door,d1,3,ben\nq1,door,d2,2,ann\nq1,door,d2,2,ben\n"


def said(opened: Workspace, folder: Path, rows: str, now: int) -> None:
    """Import judgments."""
    (folder / "said.csv").write_text(HEAD + rows, encoding="utf-8")
    import_from(opened, folder / "said.csv", now=now)


def test_an_edition_stays_as_it_was_frozen(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    said(shop, tmp_path, SAID, tick())
    frozen = freeze(shop, "one", now=tick())
    # 0 and 3 have no majority, so the lower of the two; 2 and 2 have one.
    grades = [("d1", 0, "median"), ("d2", 2, "majority")]
    assert content_of(shop, "one").grades.select("doc_id", "grade", "rule").rows() == grades
    assert (frozen.queries, frozen.grades, frozen.agreed.verdict) == (1, 2, "warn")

    disagreements_in(shop, now=tick(), queue_them=True)
    eve = Judging(shop, "eve", tick, adjudicate=True)
    card = eve.card()
    assert card is not None
    eve.submit(card, 3)
    said(shop, tmp_path, "q2,wall,d1,1,ann\n", tick())
    assert content_of(shop, "one").grades.select("doc_id", "grade", "rule").rows() == grades
    now = content_of(shop).grades
    assert now.filter(now["query_id"] == "q1").select("grade", "rule", "raters").rows() == [
        (3, "adjudicated", ["eve"]),
        (2, "majority", ["ann", "ben"]),
    ]
    changed = compare_editions(shop, "one", "now")
    assert changed.moves.rows() == [(0, 3, 1)]
    assert changed.queries["change"].to_list() == ["added"]
    assert changed.about == {}
    second = freeze(shop, "two", now=tick())
    assert second.sha256 != frozen.sha256
    assert [row.name for row in list_editions(shop)] == ["one", "two"]
    assert "agreement" in list_editions(shop)[0].about


def test_the_same_content_has_the_same_hash(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    said(shop, tmp_path, SAID, tick())
    assert freeze(shop, "a", now=tick()).sha256 == freeze(shop, "b", now=tick()).sha256


def test_what_cannot_be_frozen_is_refused(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is judged yet"):
        freeze(shop, "one", now=tick())
    said(shop, tmp_path, SAID, tick())
    for name, says in (
        ("now", "'now' is reserved"),
        (" ", "is empty"),
        ("../x", "cannot be a path"),
    ):
        with pytest.raises(UsageError, match=says):
            freeze(shop, name, now=tick())
    path = shop.workspace.root / "karat.toml"
    text = path.read_text(encoding="utf-8").replace("refuse = false", "refuse = true")
    path.write_text(text, encoding="utf-8")
    with (
        open_workspace(shop.workspace.root, now=tick()) as strict,
        pytest.raises(PolicyRefused, match="κ"),
    ):
        freeze(strict, "one", now=tick())
    assert list_editions(shop) == []
    with pytest.raises(UsageError, match="nope"):
        compare_editions(shop, "nope", "now")


def test_a_name_is_no_longer_than_pages_and_lists_can_show(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    said(shop, tmp_path, SAID, tick())
    with pytest.raises(UsageError, match="has 101 characters; the maximum is 100"):
        freeze(shop, "x" * (LONGEST + 1), now=tick())
    assert freeze(shop, "x" * LONGEST, now=tick()).name == "x" * 100


def test_coverage_counts_what_runs_show(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    said(shop, tmp_path, SAID, tick())
    run = Run.from_dict({"q1": {"d1": 3, "d9": 2, "d2": 1}}, "a")
    found = coverage(shop, [run], now=tick(), k=2)
    # d1 is judged and d9 is not; d2 stands deeper than 2.
    row = found.runs.row(0, named=True)
    assert (row["judged"], row["unjudged"]) == (0.5, 1)
    assert found.notes == []
    again = coverage(shop, [run.named("b")], now=tick(), k=2)
    assert again.notes == ["run 'b' is the same as 'a': it is stored once, with both names"]
    with pytest.raises(UsageError):
        coverage(shop, [run], now=tick(), k=0)


def test_an_edition_that_grew_is_told_by_its_hash(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    said(shop, tmp_path, SAID, tick())
    freeze(shop, "one", now=tick())
    grown = "INSERT INTO edition_grade VALUES (1, 'q1', 'd9', 3.0, 1, 'majority', '[]')"
    with shop.store.begin() as c:
        c.exec_driver_sql(grown)
    with pytest.raises(InputError, match="edition one is damaged"):
        content_of(shop, "one")


def test_agreement_of_an_edition_is_of_its_own_queries(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    """Of q1 both say the same, of q2 the contrary; q2 is dropped before the edition is frozen."""
    own = "q1,door,d1,0,ann\nq1,door,d1,0,ben\nq1,door,d2,3,ann\nq1,door,d2,3,ben\n"
    others = "q2,wall,d1,0,ann\nq2,wall,d1,3,ben\n"
    said(shop, tmp_path, own + others, tick())
    assert len(disagreements_in(shop, now=tick()).frame) == 1
    with shop.store.begin() as c:
        queries.drop(c, shop.golden.id, ["q2"], tick())
    assert (agreement_in(shop).headline.value, agreement_in(shop).pairs) == (1.0, 2)
    assert disagreements_in(shop, now=tick()).frame.is_empty()
    assert freeze(shop, "one", now=tick()).grades == 2


def test_who_said_what_is_not_asked_of_an_edition(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    said(shop, tmp_path, SAID, tick())
    freeze(shop, "one", now=tick())
    with pytest.raises(UsageError, match="an edition does not record who"):
        export_golden_set(shop, tmp_path / "x.csv", "csv", edition="one", each_rater=True)


def test_imported_grades_that_raters_contradict_are_counted(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    said(shop, tmp_path, SAID, tick())
    plain = freeze(shop, "one", now=tick())
    assert (plain.contradicted, "contradicted" in list_editions(shop)[0].about) == (0, False)
    nobody = "query_id,doc_id,grade\nq1,d2,0\nq1,d3,3\n"
    (tmp_path / "nobody.csv").write_text(nobody, encoding="utf-8")
    import_from(shop, tmp_path / "nobody.csv", now=tick())
    # Of d2 both raters said 2, which counts; of d3 nobody else said anything.
    found = freeze(shop, "two", now=tick())
    assert (found.grades, found.contradicted) == (3, 1)
    assert list_editions(shop)[1].about["contradicted"] == 1
    graded = content_of(shop, "two").grades.select("doc_id", "grade").rows()
    assert graded == [("d1", 0), ("d2", 2), ("d3", 3)]


def test_what_is_declared_is_of_the_moment_too(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    """Somebody else puts a new guideline in force while this workspace is open."""
    said(shop, tmp_path, SAID, tick())
    with shop.store.begin() as c:
        version = golden_sets.new_guideline(c, shop.golden.id, "Judge otherwise.", tick())
    assert shop.golden.guideline != version
    assert content_of(shop).about["guideline"] == version
    freeze(shop, "one", now=tick())
    assert list_editions(shop)[0].about["guideline"] == version


def test_an_edition_and_its_agreement_are_of_one_moment(
    shop: Workspace, tick: Tick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever judges while it is frozen is in all of it, or in nothing."""
    said(shop, tmp_path, SAID, tick())
    reads = []
    read = Store.read
    monkeypatch.setattr(Store, "read", lambda store: (reads.append(store), read(store))[1])
    freeze(shop, "one", now=tick())
    compare_editions(shop, "one", "now")
    assert len(reads) == 2  # one of each


def test_where_no_query_has_a_weight_all_count_the_same() -> None:
    asked = pl.DataFrame({"query_id": ["a"], "weight": pl.Series([None], dtype=pl.Float64)})
    found, unknown = weighed(asked)
    assert found.columns == ["query_id"]
    assert unknown == 0


def test_coverage_follows_ids_and_says_what_is_lacking(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    rows = "query_id,query,doc_id,grade\nq1,door,a,1\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "b.csv").write_text("query_id,text\n1,Door\n", encoding="utf-8")
    for name in ("a.csv", "b.csv"):
        import_from(shop, tmp_path / name, now=tick())
    freeze(shop, "one", now=tick())
    run = Run.from_dict({"1": {"a": 2.0, "b": 1.0}, "8": {"a": 1.0}}, "up")
    for name, where in ((None, "the golden set"), ("one", "edition one")):
        found = coverage(shop, [run], now=tick(), name=name)
        assert found.queries["judged"].to_list() == [0.5]
        assert found.notes[0].endswith("such as 1 → q1")
        assert found.notes[1:] == [f"run 'up' has 1 query that {where} does not have: 8"]
    with pytest.raises(UsageError, match="two runs are called 'up'"):
        coverage(shop, [run, run], now=tick())
