"""Where a golden set stands, and that what to do next leads on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.choosing import deep_but

from karat.errors import UsageError
from karat.store.sql.opening import Store
from karat.tables import Run
from karat.tables.golden.agreement import Agreement
from karat.tables.workspace import WorkspaceConfig
from karat.workflows.golden import status as golden_status
from karat.workflows.golden.agreement import Moment, disagreements_in
from karat.workflows.golden.editions import freeze, stale_judgments
from karat.workflows.golden.import_ import import_from
from karat.workflows.golden.pooling import pool
from karat.workflows.golden.sampling import choose_queries, draw_queries, plan_queries
from karat.workflows.golden.status import Status, status
from karat.workflows.judging.queue import Judging
from karat.workflows.workspace.stored_runs import store_runs
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
DAY = 86_400_000_000


def commands(found: Status) -> list[str]:
    """What is to be typed next."""
    return [command for _, command in found.todo]


def test_judged_queries_that_no_log_counted_are_told_until_they_have_weights(
    shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    rows = "".join(f'{{"_id": "q{n}", "text": "own {n}"}}\n' for n in range(3))
    (tmp_path / "own.jsonl").write_text(rows, encoding="utf-8")
    import_from(shop, tmp_path / "own.jsonl", now=tick())
    (tmp_path / "own.qrels").write_text("q0 0 d 1\nq1 0 d 1\n", encoding="utf-8")
    import_from(shop, tmp_path / "own.qrels", now=tick())
    (tmp_path / "log.csv").write_text("query,count\na,7\nb,3\n", encoding="utf-8")
    drawn = draw_queries(shop, tmp_path / "log.csv", 2)
    lost = plan_queries(shop, drawn).lost
    assert lost is not None
    assert "2 judged queries are not in this sample" in lost.what
    with pytest.raises(UsageError, match="no longer count in means"):
        choose_queries(shop, tmp_path / "log.csv", 2, now=tick())
    assert status(shop, now=tick()).uncounted == 0
    choose_queries(shop, tmp_path / "log.csv", 2, now=tick(), replace=True)
    found = status(shop, now=tick())
    assert found.uncounted == 2
    assert "karat golden import QUERIES" in commands(found)
    # They do not count any more, so that another sample takes nothing from them.
    assert plan_queries(shop, drawn).lost is None
    rows = '{"_id": "q0", "weight": 1}\n{"_id": "q1", "weight": 0}\n'
    (tmp_path / "weights.jsonl").write_text(rows, encoding="utf-8")
    import_from(shop, tmp_path / "weights.jsonl", now=tick(), format="queries")
    assert status(shop, now=tick()).uncounted == 0
    again = plan_queries(shop, drawn).lost
    assert again is not None  # a sample would take the weight of q0 again
    assert "1 judged query is not" in again.what


@pytest.mark.parametrize("settles", deep_but([True], [True, False]))
def test_every_step_leads_to_the_next(
    settles: bool, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    found = status(shop, now=tick())
    assert commands(found) == ["karat golden choose LOG"]
    assert (found.agreement, found.edition, found.waiting) == (None, None, 0)
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "door"}\n', encoding="utf-8")
    import_from(shop, tmp_path / "queries.jsonl", now=tick())
    assert commands(status(shop, now=tick())) == ["karat golden pool RUN…"]
    pool(shop, [Run.from_dict({"q1": {"a": 2, "b": 1}}, "lexical")], now=tick())
    found = status(shop, now=tick())
    assert (found.waiting, found.runs) == (4, ["lexical"])
    assert commands(found) == ["karat judge --terminal"]

    for name, grade in (("ann", 0), ("ben", 3)):
        rater = Judging(shop, name, tick)
        while (card := rater.card()) is not None:
            rater.submit(card, grade)
    found = status(shop, now=tick())
    assert (found.disagreements, found.adjudications, found.judged, found.grades) == (2, 0, 1, 2)
    assert found.agreement is not None
    steps = ["karat golden disagreements --queue", "karat golden freeze NAME"]
    assert commands(found) == steps
    disagreements_in(shop, now=tick(), queue_them=True)
    found = status(shop, now=tick())
    assert (found.disagreements, found.adjudications) == (0, 2)
    assert commands(found) == ["karat judge --terminal --adjudicate", "karat golden freeze NAME"]

    eve = Judging(shop, "eve", tick, adjudicate=True)
    while (card := eve.card()) is not None:
        eve.submit(card, 2 if settles else None, None if settles else "needs_expert")
    assert commands(status(shop, now=tick())) == ["karat golden freeze NAME"]
    freeze(shop, "one", now=tick())
    assert commands(status(shop, now=0)) == []  # by a clock that is behind, too
    if settles:
        eve.undo()
        again = eve.card()
        assert again is not None
        eve.submit(again, 0)
        assert commands(status(shop, now=tick())) == ["karat golden freeze NAME"]  # another grade
    now = tick()
    freeze(shop, "2026-03", now=now)
    found = status(shop, now=now + 40 * DAY)
    assert (found.edition, found.edition_days, found.todo) == ("2026-03", 40, [])


def test_what_is_stale_comes_with_its_query(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "door"}\n', encoding="utf-8")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "a", "title": "A", "text": "one"}\n', encoding="utf-8")
    for path in (tmp_path / "queries.jsonl", corpus):
        import_from(shop, path, now=tick())
    pool(shop, [Run.from_dict({"q1": {"a": 2}}, "lexical")], now=tick())
    ann = Judging(shop, "ann", tick)
    card = ann.card()
    assert card is not None
    ann.submit(card, 3)
    assert stale_judgments(shop).judgments.height == 0
    corpus.write_text('{"_id": "a", "title": "A", "text": "two"}\n', encoding="utf-8")
    import_from(shop, corpus, now=tick())
    (row,) = stale_judgments(shop).judgments.iter_rows(named=True)
    assert (row["text"], row["doc_id"], row["change"]) == ("door", "a", "changed")
    told = {command: what for what, command in status(shop, now=tick()).todo}
    assert told["karat golden stale"] == "1 judgment of a document that changed"


def test_all_of_it_is_of_one_moment(
    shop: Workspace, tick: Tick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in one transaction, so that no part of it is of after a judgment and another before."""
    rows = "q1,d1,3,ann\nq1,d1,3,ben\nq1,d2,3,ann\n"
    (tmp_path / "said.csv").write_text(f"query_id,doc_id,grade,rater\n{rows}", encoding="utf-8")
    (tmp_path / "nobody.csv").write_text("query_id,doc_id,grade\nq1,d1,0\n", encoding="utf-8")
    for name in ("said", "nobody"):
        import_from(shop, tmp_path / f"{name}.csv", now=tick())
    freeze(shop, "one", now=tick())
    reads = []
    read = Store.read
    monkeypatch.setattr(Store, "read", lambda store: (reads.append(store), read(store))[1])
    found = status(shop, now=tick())
    assert len(reads) == 1
    assert (found.grades, found.edition, found.todo) == (2, "one", [])
    # What contradicts an imported grade is told, and is nothing that has to be done.
    assert (found.disagreements, found.contradictions) == (0, 1)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each time that agreement is computed."""
    times: list[int] = []
    was = golden_status.agreement_at

    def noted(held: Moment, workspace: WorkspaceConfig) -> Agreement:
        times.append(1)
        return was(held, workspace)

    monkeypatch.setattr(golden_status, "agreement_at", noted)
    return times


def test_a_state_is_computed_once_and_a_new_one_at_once(
    shop: Workspace, tick: Tick, tmp_path: Path, counted: list[int]
) -> None:
    said = "query_id,query,doc_id,grade,rater\n" + "".join(
        f"q{n},shoes {n},d1,{n % 3},{rater}\n" for n in range(6) for rater in ("ann", "ben")
    )
    (tmp_path / "said.csv").write_text(said, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick())
    first = status(shop, now=tick())
    assert len(counted) == 1
    assert repr(status(shop, now=tick())) == repr(first)
    assert len(counted) == 1
    more = "query_id,query,doc_id,grade,rater\nq1,shoes 1,d1,3,cleo\n"
    (tmp_path / "more.csv").write_text(more, encoding="utf-8")
    import_from(shop, tmp_path / "more.csv", now=tick())
    assert status(shop, now=tick()).agreement != first.agreement
    assert len(counted) == 2


def test_an_edition_ages_and_runs_come_without_anything_computed(
    shop: Workspace, tick: Tick, tmp_path: Path, counted: list[int]
) -> None:
    said = "query_id,query,doc_id,grade,rater\nq1,shoes,d1,1,ann\nq1,shoes,d1,1,ben\n"
    (tmp_path / "said.csv").write_text(said, encoding="utf-8")
    import_from(shop, tmp_path / "said.csv", now=tick())
    freeze(shop, "one", now=tick())
    now = tick()
    assert status(shop, now=now).edition_days == 0
    assert status(shop, now=now + 3 * DAY).edition_days == 3
    store_runs(shop, [Run.from_dict({"q1": {"d1": 1.0}}, "late")], now=now)
    assert status(shop, now=now).runs == ["late"]
    assert len(counted) == 1
    policy = replace(shop, workspace=replace(shop.workspace, weights="linear"))
    status(policy, now=now)
    assert len(counted) == 2


def test_of_several_that_ask_at_once_one_computes(
    shop: Workspace, tick: Tick, counted: list[int]
) -> None:
    now = tick()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: status(shop, now=now), range(16)))
    assert len(counted) == 1
    assert {repr(each) for each in found} == {repr(found[0])}
