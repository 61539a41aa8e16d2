"""Runs are brought, get further names, and go again; what needs them keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa
from tests.stored_runs import stored_run_rows

from karat.errors import InputError, UsageError
from karat.store.sql import audit, comparisons, queries, runs
from karat.store.sql.runs import by_name, others
from karat.tables import Run
from karat.tables.workspace import RunRow
from karat.workflows.workspace import stored_runs as keeping
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.run_import import (
    KEPT,
    REMOVED,
    ImportedRun,
    import_run,
    needed_by,
    remove_comparison,
    remove_run,
    within,
)
from karat.workflows.workspace.stored_comparisons import Asked, ask
from karat.workflows.workspace.stored_runs import (
    file_of,
    stored_run_names,
    trace_of,
)
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]
ONE, OTHER = "q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\n", "q1 Q0 b 1 2.0 t\n"


@pytest.fixture
def asked(shop: Workspace, tick: Tick) -> Workspace:
    """A golden set of two queries, one of which was dropped."""
    with shop.store.begin() as c:
        queries.put(c, shop.golden.id, pl.DataFrame({"query_id": ["q1", "q2"]}), tick())
        queries.drop(c, shop.golden.id, ["q2"], tick())
    return shop


def held(opened: Workspace) -> list[RunRow]:
    with opened.store.read() as c:
        return runs.runs(c, opened.golden.id)


def noted(opened: Workspace) -> list[tuple[str, str, str]]:
    """Who did what to what, the first first."""
    with opened.store.read() as c:
        return audit.frame(c).select("person", "action", "subject").rows()[::-1]


def test_content_that_is_kept_gets_another_name_and_stays_whose_it_was(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "found.trec"
    path.write_text(ONE)
    made = import_run(asked, path, "found.trec", name=" main ", person="ann", now=tick())
    assert (made.new, made.said, made.row.name, made.row.rows) == (True, None, "main", 2)
    [before] = held(asked)
    again = import_run(asked, path, "found.trec", name="nightly", person="ben", now=tick())
    assert (again.new, again.row.id, again.row.name) == (False, made.row.id, "nightly")
    assert again.said == "this content is already stored as 'main': 'nightly' is another name of it"
    [row] = held(asked)
    assert replace(row, names=before.names) == before
    assert list(row.names) == ["main", "nightly"]
    # The name can be used, and the run is then called so.
    assert find_runs(asked, ["nightly"])[0].id == made.row.id
    assert [run.name for run in stored_run_rows(asked, ["nightly", "main"])] == ["nightly", "main"]
    assert [each.name for each in find_runs(asked, ["main", "nightly"])] == ["main", "nightly"]
    assert stored_run_names(asked) == ["main"]  # what there is to choose from: each content once
    assert len(stored_run_rows(asked)) == 1
    # The same name and content again change nothing, and say so.
    same = import_run(asked, path, "found.trec", name="nightly", person="cleo", now=tick())
    assert same.said == "this content is already stored as 'nightly': nothing changed"
    assert held(asked) == [row]
    assert noted(asked) == [("ann", "keep run", "main"), ("ben", "name run", "nightly")]
    with asked.store.read() as c:
        assert comparisons.stored_by(c, KEPT, REMOVED) == {row.sha256: "ann"}


def test_a_name_means_what_was_last_given_under_it(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "found.trec"
    made = []
    for text in (ONE, OTHER, ONE):
        path.write_text(text)
        made.append(import_run(asked, path, "x", name="nightly", person="ann", now=0))
    assert [each.row.id for each in made] == [1, 2, 1]
    assert made[2].said == (
        "this content is already stored: 'nightly' again names it instead of run 2"
    )
    assert find_runs(asked, ["nightly"])[0].id == 1
    assert [row.id for row in held(asked)] == [1, 2]  # in the order they came
    with pytest.raises(UsageError, match="got one: 'nightly'"):
        ask(asked, Asked([1, 1]), by="ann", now=tick())
    path.write_text(OTHER)
    import_run(asked, path, "x", name="main", person="ann", now=tick())
    path.write_text(ONE)
    first = import_run(asked, path, "x", name="main", person="ann", now=tick())
    assert first.said == "this content is already stored: 'main' now names it instead of run 2"


def test_what_is_brought_back_takes_no_name_that_another_has_by_now(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "found.trec"
    for text, name in ((ONE, "main"), (ONE, "nightly"), (OTHER, "main")):
        path.write_text(text)
        import_run(asked, path, "x", name=name, person="ann", now=tick())
    one, other = held(asked)
    meant = by_name([one, other])
    # Not "main", which is the other by now, whichever it is called by.
    assert (others(one, meant), others(other, meant)) == (["nightly"], [])
    assert others(replace(one, name="nightly"), meant) == []
    (asked.workspace.root / one.path).unlink()
    path.write_text(ONE)
    import_run(asked, path, "x", name="again", person="ben", now=tick())
    assert [run.to_dict() for run in stored_run_rows(asked, ["main", "again"])] == [
        {"q1": {"b": 2.0}},
        {"q1": {"a": 2.0, "b": 1.0}},
    ]
    with pytest.raises(UsageError, match="'main', which is also called 'nightly', 'again'"):
        ask(asked, Asked([one.id, one.id]), by="ann", now=tick())


def test_a_run_is_hashed_once_and_before_anybody_waits(
    asked: Workspace, tmp_path: Path, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = []
    plain = keeping.fingerprint

    def counted(run: Run) -> str | None:
        with asked.store.begin():  # nobody else writes meanwhile
            hashed.append(run.name)
        return plain(run)

    monkeypatch.setattr(keeping, "fingerprint", counted)
    path = tmp_path / "found.trec"
    path.write_text(ONE)
    import_run(asked, path, "x", name="main", person="ann", now=tick())
    keeping.store_runs(asked, [path], now=tick())
    assert hashed == ["main", "found"]


def test_a_run_without_a_query_of_the_golden_set_is_refused(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "strange.trec"
    path.write_text("".join(f"x{i} Q0 a 1 2.0 t\n" for i in range(5)))
    with pytest.raises(InputError) as caught:
        import_run(asked, path, "strange.trec", person="ann", now=tick())
    assert caught.value.what == (
        "none of its queries is in the golden set: it has 'x0', 'x1', 'x2', …; the golden set has "
        "'q1', 'q2'"
    )
    assert caught.value.file == "strange.trec"
    assert caught.value.fix
    assert str(tmp_path) not in str(caught.value)
    assert held(asked) == []
    assert not asked.workspace.runs.exists() or not list(asked.workspace.runs.iterdir())
    path.write_text("q2 Q0 a 1 2.0 t\n")  # it was dropped: an edition may have it
    assert import_run(asked, path, "strange.trec", person="ann", now=tick()).new


def test_what_cannot_be_read_is_said_of_the_file_as_its_owner_calls_it(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "held.trec"
    path.write_text("not a run at all")
    with pytest.raises(InputError) as caught:
        import_run(asked, path, "their run.trec", person="ann", now=tick())
    assert caught.value.file == "their run.trec"
    assert str(tmp_path) not in str(caught.value)
    path.write_text(ONE)
    asked.workspace.runs.write_text("no folder")
    with pytest.raises(InputError) as caught:
        import_run(asked, path, "their run.trec", person="ann", now=tick())
    assert str(asked.workspace.root) not in str(caught.value)


def test_a_run_goes_when_no_comparison_needs_it(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "found.trec"
    for text in (ONE, OTHER):
        path.write_text(text)
        import_run(asked, path, "x", name=f"run {text[6]}", person="ann", now=tick())
    one, other = held(asked)
    ask(asked, Asked([one.id, other.id]), by="ann", now=tick())
    [comparison] = needed_by(asked, one)
    with pytest.raises(UsageError, match=r"a comparison needs the run 'run a': .*\(1\)") as caught:
        remove_run(asked, one, person="ben", now=tick())
    assert caught.value.fix == "remove it first"
    remove_comparison(asked, comparison, person="ben", now=tick())
    with pytest.raises(UsageError, match="already deleted"):
        remove_comparison(asked, comparison, person="ben", now=tick())
    remove_run(asked, one, person="ben", now=tick())
    assert held(asked) == [other]
    assert [file.name[:5] for file in asked.workspace.runs.iterdir()] == ["run_b"]
    with pytest.raises(UsageError, match="already deleted"):
        remove_run(asked, one, person="ben", now=tick())
    assert noted(asked)[-2:] == [
        ("ben", "remove comparison", comparison.name),
        ("ben", "remove run", "run a"),
    ]
    path.write_text(ONE)
    assert import_run(asked, path, "x", name="run a", person="cleo", now=tick()).new
    with asked.store.read() as c:
        assert comparisons.stored_by(c, KEPT, REMOVED)[one.sha256] == "cleo"


def test_what_has_the_number_of_what_is_gone_stays(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    """As in a store that was put back from a backup since somebody looked."""
    path = tmp_path / "found.trec"
    for text in (ONE, OTHER):
        path.write_text(text)
        import_run(asked, path, "x", name=text[6], person="ann", now=tick())
    one, other = there = held(asked)
    with pytest.raises(UsageError, match="already deleted"):
        remove_run(asked, replace(one, sha256=other.sha256), person="ann", now=tick())
    assert held(asked) == there
    assert len(stored_run_rows(asked)) == 2
    ask(asked, Asked([one.id, other.id]), by="ann", now=tick())
    [row] = needed_by(asked, one)
    with pytest.raises(UsageError, match="already deleted"):
        remove_comparison(asked, replace(row, created_us=1), person="ann", now=tick())
    assert needed_by(asked, one) == [row]


def test_what_comes_back_while_files_go_does_not_go_with_them(
    asked: Workspace, tmp_path: Path, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "found.trec"

    def brought(text: str) -> RunRow:
        path.write_text(text)
        return import_run(asked, path, "x", name=text[6], person="ann", now=tick()).row

    one, other = brought(ONE), brought(OTHER)
    assert other != one
    plain_unlink = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        monkeypatch.setattr(Path, "unlink", plain_unlink)
        brought(ONE)
        self.unlink(missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    remove_run(asked, one, person="ann", now=tick())
    assert [run.name for run in stored_run_rows(asked)] == ["b", "a"]
    assert len(list(asked.workspace.runs.iterdir())) == 2


def test_what_is_not_removed_after_all_keeps_its_file(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    path = tmp_path / "found.trec"
    path.write_text(ONE)
    row = import_run(asked, path, "x", person="ann", now=tick()).row

    def refuse(_: sa.Connection) -> None:
        raise RuntimeError("the disk is full")

    sa.event.listen(asked.store.engine, "commit", refuse)
    try:
        with pytest.raises(RuntimeError, match="full"):
            remove_run(asked, row, person="ann", now=tick())
    finally:
        sa.event.remove(asked.store.engine, "commit", refuse)
    assert len(stored_run_rows(asked)) == 1


def test_files_are_of_the_workspace_alone(shop: Workspace, tmp_path: Path) -> None:
    root = shop.workspace.root
    incoming, kept_ones = root / "incoming", shop.workspace.runs
    for folder in (incoming / ".git", kept_ones):
        folder.mkdir(parents=True, exist_ok=True)
    for path in ("mine.trec", "incoming/mine.trec", "incoming/.env", "incoming/.git/config"):
        (root / path).write_text("x")
    (kept_ones / "kept.trec").write_text("x")
    (tmp_path / "secret").write_text("x")
    (incoming / "link").symlink_to(tmp_path / "secret")
    (incoming / "rules").symlink_to(root / "karat.toml")
    (incoming / "round").symlink_to(incoming / "round")
    assert within(shop, "incoming/mine.trec") == (incoming / "mine.trec").resolve()
    assert within(shop, "runs/kept.trec") == (kept_ones / "kept.trec").resolve()
    own = ("karat.toml", "karat.db", "guideline.md", "mine.trec", "incoming/../karat.toml")
    hidden = ("incoming/.env", "incoming/.git/config", "incoming", "incoming/rules")
    links = ("incoming/link", "incoming/round", "../secret", str(tmp_path / "secret"))
    for path in (*own, *hidden, *links, "", ".", "a\0b", "no"):
        with pytest.raises(UsageError, match="no such file") as caught:
            within(shop, path)
        assert str(root) not in str(caught.value)


def test_a_store_and_rules_are_no_runs_even_where_runs_lie_beside_them(shop: Workspace) -> None:
    flat = replace(shop, workspace=replace(shop.workspace, runs=shop.workspace.root))
    (shop.workspace.root / "karat.db-wal").touch()
    for path in ("karat.toml", "karat.db", "karat.db-wal"):
        assert (shop.workspace.root / path).is_file()
        with pytest.raises(UsageError, match="no such file"):
            within(flat, path)


BAD = ("user\N{RIGHT-TO-LEFT OVERRIDE}gnp", "..", "../../etc/passwd", "/etc/passwd", "a\nb")


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_cannot_be_read_or_is_a_path_is_refused(
    asked: Workspace, tmp_path: Path, tick: Tick, name: str
) -> None:
    path = tmp_path / "found.trec"
    path.write_text(ONE)
    with pytest.raises(UsageError, match="the name of a run"):
        import_run(asked, path, "found.trec", name=name, person="egon", now=tick())
    run = Run.from_dict({"q1": {"a": 2.0}}, name)
    with pytest.raises(UsageError, match="the name of a run"):
        keeping.store_runs(asked, [Run.from_dict({"q1": {"b": 2.0}}, "good"), run], now=tick())
    assert held(asked) == []
    assert noted(asked) == []
    assert not list(asked.workspace.runs.glob("*.parquet"))


def test_a_name_that_was_stored_before_the_rule_stays_good(
    asked: Workspace, tmp_path: Path, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.from_dict({"q1": {"a": 2.0}}, "../old")
    with monkeypatch.context() as before:
        before.setattr(keeping, "check_name", lambda *_, **__: None)
        keeping.store_runs(asked, [run], now=tick())
    assert stored_run_rows(asked, ["../old"])[0].name == "../old"
    assert keeping.store_runs(asked, [run], now=tick()).names == ["../old"]
    other = Run.from_dict({"q1": {"b": 2.0}}, "../old")
    assert keeping.store_runs(asked, [other], now=tick()).names == ["../old"]
    assert len(held(asked)) == 2


def test_the_same_ranking_with_other_times_has_the_times_of_its_last_import(
    asked: Workspace, tmp_path: Path, tick: Tick
) -> None:
    def again(time: int | None, name: str = "main") -> ImportedRun:
        timed = {} if time is None else {"latency_us": time}
        rows = [
            {"query_id": "q1", "doc_id": doc, "score": s, **timed}
            for doc, s in (("a", 2), ("b", 1))
        ]
        path = tmp_path / "found.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return import_run(asked, path, path.name, name=name, person="ann", now=tick())

    def times() -> list[int]:
        [run] = stored_run_rows(asked)
        return run.answers["latency_us"].to_list()

    first = again(1000)
    trace = trace_of(file_of(asked, first.row))
    trace.write_bytes(b"")
    assert again(1000).said == "this content is already stored as 'main': nothing changed"
    assert again(None).said == "this content is already stored as 'main': nothing changed"
    assert (times(), trace.is_file()) == ([1000], True)
    second = again(5000)
    assert second.said is not None
    assert "it has those of this import now" in second.said
    assert (times(), trace.is_file()) == ([5000], False)
    assert (second.row.id, second.row.sha256) == (first.row.id, first.row.sha256)
    assert (
        second.row.content != first.row.content
    )  # what was computed with the old times is outdated
    assert "other times" in (again(7000, "nightly").said or "")
    assert times() == [7000]
    [row] = held(asked)
    assert set(row.names) == {"main", "nightly"}
