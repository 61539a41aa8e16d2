"""Runs of a workspace are kept by what they hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.stored_runs import stored_run_rows

from karat.errors import InputError, UsageError
from karat.formats import read_run
from karat.store.sql import runs
from karat.store.sql.schema import run as run_table
from karat.tables import Run
from karat.workflows.workspace import stored_runs as keeping
from karat.workflows.workspace.stored_runs import (
    keep_in,
    store_runs,
    stored_run_names,
)
from karat.workflows.workspace.workspace import Workspace

Tick = Callable[[], int]


def test_a_run_comes_back_as_it_was(shop: Workspace, tick: Tick) -> None:
    first = Run.from_dict({"q1": {"a": 2.5, "b": 1}}, "lexical")
    store_runs(shop, [first], now=tick())
    store_runs(shop, [first], now=tick())
    (found,) = stored_run_rows(shop)
    assert (found.name, found.to_dict()) == ("lexical", first.to_dict())
    (file,) = shop.workspace.runs.iterdir()
    assert re.fullmatch(r"lexical-[0-9a-f]{12}\.parquet", file.name)
    assert read_run(file).to_dict() == first.to_dict()


def test_the_newest_of_a_name_is_meant(shop: Workspace, tick: Tick, tmp_path: Path) -> None:
    for score in (1, 2):
        store_runs(shop, [Run.from_dict({"q1": {"a": score}}, "lexical")], now=tick())
    (tmp_path / "other.trec").write_text("q1 Q0 b 1 3 x\n", encoding="utf-8")
    store_runs(shop, [tmp_path / "other.trec"], now=tick())
    assert stored_run_rows(shop, ["lexical"])[0].to_dict() == {"q1": {"a": 2}}
    assert [run.name for run in stored_run_rows(shop)] == ["lexical", "other"]
    with pytest.raises(UsageError, match="did you mean lexical"):
        stored_run_rows(shop, ["lexicl"])


def test_a_run_of_the_same_content_is_kept_once_and_it_is_said(shop: Workspace, tick: Tick) -> None:
    content = {"q1": {"a": 2.0}}
    one, other = Run.from_dict(content, "one"), Run.from_dict(content, "other")
    with shop.store.begin() as c:
        assert keep_in(c, shop, [one, one], now=tick()).notes == []
    for _ in range(2):
        with shop.store.begin() as c:
            kept = keep_in(c, shop, [other], now=tick())
        assert kept.notes == [
            "run 'other' is the same as 'one': it is stored once, with both names"
        ]
        assert kept.names == ["other"]
    assert store_runs(shop, [other], now=tick()) == kept
    assert stored_run_names(shop) == ["one"]
    assert len(list(shop.workspace.runs.iterdir())) == 1
    assert stored_run_rows(shop, ["other"])[0].to_dict() == content


def test_what_is_kept_gets_the_name_it_is_given_and_takes_no_other_back(
    shop: Workspace, tick: Tick
) -> None:
    before, after = (Run.from_dict({"q1": {"a": score}}) for score in (1.0, 2.0))
    for run in (before.named("main"), before.named("nightly"), after.named("main")):
        store_runs(shop, [run], now=tick())
    store_runs(shop, [before.named("nightly")], now=tick())
    assert stored_run_rows(shop, ["main"])[0].to_dict() == after.to_dict()
    assert stored_run_rows(shop, ["nightly"])[0].to_dict() == before.to_dict()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("../../etc/x", "etc_x-"),
        ("a:b*c?\n<d>", "a_b_c_d_-"),
        ("Großes Maß 漢字", "Großes_Maß_漢字-"),
        ("/", "run-"),
        ("..", "run-"),
        ("bm\udcff25", "bm_25-"),  # as Python has a byte that is no UTF-8
        ("x" * 300, "x" * 60 + "-"),
        ("\U00020000" * 300, "\U00020000" * 45 + "-"),  # four bytes each, of 180
    ],
)
def test_files_are_named_as_people_read_and_disks_allow(
    name: str, begins: str, shop: Workspace, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Names that are refused now may be there from before.
    monkeypatch.setattr(keeping, "check_name", lambda *_, **__: None)
    store_runs(shop, [Run.from_dict({"q1": {"a": 1.0}}, name)], now=tick())
    (file,) = shop.workspace.runs.iterdir()
    assert file.name.startswith(begins)
    assert len(file.name.encode()) < 255
    assert [run.name for run in stored_run_rows(shop)] == [name.replace("\udcff", "\ufffd")]


def test_what_is_given_again_is_the_newest(shop: Workspace, tick: Tick) -> None:
    """Back to the version before: that is meant, by a clock that is behind too."""
    one, two = (Run.from_dict({"q1": {"a": score}}, "lexical") for score in (1, 2))
    other = Run.from_dict({"q1": {"b": 1}}, "other")
    store_runs(shop, [one, two, other], now=tick())
    assert stored_run_rows(shop, ["lexical"])[0].to_dict() == two.to_dict()
    store_runs(shop, [one], now=tick())
    assert stored_run_rows(shop, ["lexical"])[0].to_dict() == one.to_dict()
    assert stored_run_names(shop) == ["other", "lexical"]
    store_runs(shop, [one, two], now=0)
    assert stored_run_rows(shop, ["lexical"])[0].to_dict() == two.to_dict()
    assert len(list(shop.workspace.runs.iterdir())) == 3


@pytest.mark.parametrize("way", ["../../elsewhere/x.parquet", "../x.parquet", "absolute", ".."])
def test_no_file_of_another_workspace_is_written_or_read(
    way: str, shop: Workspace, tick: Tick, tmp_path: Path
) -> None:
    """The store may be shared, and a path in it is then another workspace's."""
    run = Run.from_dict({"q1": {"a": 1.0}}, "lexical")
    store_runs(shop, [run], now=tick())
    (file,) = shop.workspace.runs.iterdir()
    noted = (tmp_path / "elsewhere" / "x.parquet").as_posix() if way == "absolute" else way
    with shop.store.begin() as c:
        c.execute(sa.update(run_table).values(path=noted))
    file.unlink()
    before = {*tmp_path.rglob("*.parquet")}
    with pytest.raises(InputError, match=f"{file.name}: there is no such file"):
        stored_run_rows(shop)
    store_runs(shop, [run], now=tick())
    assert {*tmp_path.rglob("*.parquet")} == before | {file}
    assert stored_run_rows(shop)[0].to_dict() == run.to_dict()
    # Nor is one read that lies there.
    there = (shop.workspace.root / noted).resolve()
    if there.suffix:
        there.parent.mkdir(exist_ok=True)
        there.write_text("another's", encoding="utf-8")
        assert stored_run_rows(shop)[0].to_dict() == run.to_dict()


def test_the_folder_that_fails_is_named(shop: Workspace, tick: Tick) -> None:
    run = Run.from_dict({"q1": {"a": 1.0}}, "lexical")
    store_runs(shop, [run], now=tick())
    with shop.store.begin() as c:
        c.execute(sa.update(run_table).values(path="elsewhere/x.parquet"))
    (file,) = shop.workspace.runs.iterdir()
    file.unlink()
    shop.workspace.runs.rmdir()
    shop.workspace.runs.write_text("no folder", encoding="utf-8")
    with pytest.raises(InputError, match=r"/runs: cannot store runs"):
        store_runs(shop, [run], now=tick())


def test_a_file_of_another_name_goes_on_being_read(shop: Workspace, tick: Tick) -> None:
    run = Run.from_dict({"q1": {"a": 1.0}}, "lexical")
    store_runs(shop, [run], now=tick())
    (file,) = shop.workspace.runs.iterdir()
    with shop.store.begin() as c:
        (row,) = runs.runs(c, shop.golden.id)
        # As it was called before names were in it.
        old = file.rename(file.with_name(f"{row.sha256[:16]}.parquet"))
        c.execute(sa.update(run_table).values(path=f"runs/{old.name}"))
    store_runs(shop, [run], now=tick())
    assert [each.name for each in shop.workspace.runs.iterdir()] == [old.name]
    assert stored_run_rows(shop, ["lexical"])[0].to_dict() == run.to_dict()
    old.unlink()
    with pytest.raises(InputError, match="no such file"):
        stored_run_rows(shop)
    store_runs(shop, [run], now=tick())  # it is written again
    assert stored_run_rows(shop)[0].to_dict() == run.to_dict()
