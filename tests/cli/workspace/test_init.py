"""``karat init``: a workspace where there was none."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Typed = Callable[..., Any]  # conftest.py


def test_it_makes_a_workspace_and_says_what_comes_next(typed: Typed, tmp_path: Path) -> None:
    done = typed("init shop --name shop --scale 0-2 --raters 3")
    assert {path.name for path in (tmp_path / "shop").iterdir()} >= {
        "karat.toml",
        "guideline.md",
        "karat.db",
    }
    written = tomllib.loads((tmp_path / "shop/karat.toml").read_text(encoding="utf-8"))
    golden = written["golden"]
    assert (golden["name"], golden["scale"], golden["raters"]) == ("shop", "0-2", 3)
    assert "karat golden choose LOG --size 100 -w shop" in done.out
    status = typed("golden status -w shop").out
    assert "0 queries, 0 with a grade" in status
    assert "karat golden choose LOG" in status
    assert "\n\n" not in status
    assert "are few" not in status  # of nothing there is nothing to warn of


def test_a_second_time_is_refused_and_changes_nothing(typed: Typed, tmp_path: Path) -> None:
    typed("init shop")
    before = (tmp_path / "shop/karat.toml").read_bytes()
    done = typed("init shop --scale 0-1", code=2)
    assert "already exists" in done.err
    assert "fix: " in done.err
    assert (tmp_path / "shop/karat.toml").read_bytes() == before
    typed("init shop --upgrade")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("init x --scale 3-0", "from 3 to 0"),
        ("init x --raters 0", "--raters"),
        ("init x --store nonsense", "store"),
        ("golden status", "karat init"),
        ("golden status -w nowhere", "karat init"),
        ("golden nope", "no such command"),
    ],
)
def test_mistakes_are_told_with_a_fix(line: str, says: str, typed: Typed) -> None:
    done = typed(line, code=2)
    assert says.casefold() in done.err.casefold()
    assert "fix: " in done.err


def test_a_workspace_that_could_not_be_made_is_not_there(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/guideline.md").write_text("ours", encoding="utf-8")
    for folder in ("new", "mine"):
        typed(f"init {folder} --store nonsense", code=2)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "guideline.md"]
    typed("init mine")
    assert (tmp_path / "mine/guideline.md").read_text(encoding="utf-8") == "ours"


def test_the_environment_says_where_the_store_is(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_STORE", f"sqlite:///{(tmp_path / 'team.db').as_posix()}")
    typed("init shop")
    assert (tmp_path / "team.db").is_file()
    assert not (tmp_path / "shop/karat.db").exists()
    typed("golden status -w shop")


def test_what_keeps_a_store_is_asked_for(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "alembic", None)
    assert "pip install 'karat[store]'" in typed("init x", code=2).err


def test_a_password_does_not_get_into_a_file(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = typed("init x --store postgresql://me:s3cret@127.0.0.1:1/karat", code=2)
    assert "fix: set the environment variable KARAT_STORE to the URL" in done.err
    assert "s3cret" not in done.err
    assert not (tmp_path / "x").exists()
    made: list[str] = []

    def make(root: Path, *, store: str, **_: object) -> SimpleNamespace:
        made.append(store)
        return SimpleNamespace(root=root)

    monkeypatch.setattr("karat.workflows.workspace.workspace.make_workspace", make)
    for url in ("postgresql://me:s3cret@127.0.0.1:1/karat", "sqlite:////mine/alone.db"):
        monkeypatch.setenv("KARAT_STORE", url)
        typed("init x")
    # What is written for all is where the team's store is, and no file of this machine.
    assert made == ["postgresql://me@127.0.0.1:1/karat", "sqlite:///karat.db"]


def test_a_password_in_the_file_is_told_of(typed: Typed, tmp_path: Path) -> None:
    typed("init shop")
    path = tmp_path / "shop/karat.toml"
    url = f"sqlite:///{(tmp_path / 'shop/karat.db').as_posix()}"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("sqlite:///karat.db", "postgresql://me:s3cret@127.0.0.1:1/x"), encoding="utf-8"
    )
    assert "s3cret" not in typed("golden status -w shop", code=2).err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KARAT_STORE", url)
        done = typed("golden status -w shop")
    assert "contains the store's password" in done.err
    assert "s3cret" not in done.err + done.out
