"""A workspace: what its files say holds from the next command on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from karat.errors import UsageError
from karat.store import golden_sets
from karat.workflows.workspace import Opened, make_workspace, open_workspace, upgrade_workspace

Tick = Callable[[], int]


def edit(opened: Opened, old: str, new: str) -> None:
    """Change karat.toml."""
    path = opened.workspace.root / "karat.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_what_is_changed_in_the_file_holds(shop: Opened, tick: Tick) -> None:
    edit(shop, "raters = 2", "raters = 3")
    edit(shop, "Useless: about something else", "Bad: no")
    with open_workspace(shop.workspace.root / "runs" / "..", now=tick()) as found:
        assert (found.golden.id, found.golden.raters) == (shop.golden.id, 3)
        assert found.golden.grades[0.0] == "Bad: no"
        assert found.golden.guideline == shop.golden.guideline  # its text is the same
        assert found.golden.salt == shop.golden.salt


def test_a_scale_cannot_change_under_its_judgments(shop: Opened, tick: Tick) -> None:
    edit(shop, 'scale = "0-3"', 'scale = "0-4"')
    edit(shop, "[agreement]", '4 = "Best"\n[agreement]')
    with (
        pytest.raises(UsageError, match=r"graded from 0 to 3, and karat\.toml says 0 to 4"),
        open_workspace(shop.workspace.root, now=tick()),
    ):
        pass


def test_another_name_is_another_golden_set(shop: Opened, tick: Tick) -> None:
    edit(shop, 'name = "shop"', 'name = "other"')
    with open_workspace(shop.workspace.root, now=tick()) as found:
        assert found.golden.id != shop.golden.id
        with found.store.read() as c:
            assert golden_sets.names(c) == ["shop", "other"]


def test_it_is_found_from_any_folder_in_it(shop: Opened, tick: Tick) -> None:
    deep = shop.workspace.root / "a" / "b"
    deep.mkdir(parents=True)
    with open_workspace(deep, now=tick()) as found:
        assert found.workspace.root == shop.workspace.root
    assert upgrade_workspace(deep).root == shop.workspace.root


def test_what_is_no_workspace_is_refused(tmp_path: Path, shop: Opened, tick: Tick) -> None:
    with pytest.raises(UsageError, match="is there already"):
        make_workspace(shop.workspace.root, now=tick())
    with pytest.raises(UsageError, match=r"no karat\.toml"), open_workspace(tmp_path, now=tick()):
        pass
    with pytest.raises(UsageError):
        make_workspace(tmp_path / "new", now=tick(), scale="3")
    assert not (tmp_path / "new").exists()


def test_a_golden_set_of_others_is_not_taken_over(
    shop: Opened, tick: Tick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_STORE", shop.workspace.store)
    with pytest.raises(UsageError, match="has a golden set 'shop' already"):
        make_workspace(tmp_path / "mine", now=tick(), name="shop")
    assert not (tmp_path / "mine").exists()


def test_only_a_new_guideline_is_a_new_version(shop: Opened, tick: Tick) -> None:
    """A lost file, or one from before, says nothing of what holds now."""
    path, versions = shop.workspace.guideline, []
    first = path.read_text(encoding="utf-8")
    for text in ("second", None, first, "third"):
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
        with open_workspace(shop.workspace.root, now=tick()) as found:
            versions.append((found.golden.guideline, found.golden.guideline_text))
    assert versions == [("2", "second"), ("2", "second"), ("2", "second"), ("3", "third")]
