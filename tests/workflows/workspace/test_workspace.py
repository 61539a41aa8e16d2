"""A workspace: what its files say holds from the next command on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from karat.errors import UsageError
from karat.store.sql import golden_sets, opening
from karat.workflows.workspace.workspace import (
    Workspace,
    make_workspace,
    open_workspace,
    upgrade_workspace,
)

Tick = Callable[[], int]


def edit(opened: Workspace, old: str, new: str) -> None:
    """Change karat.toml."""
    path = opened.workspace.root / "karat.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_what_is_changed_in_the_file_holds(shop: Workspace, tick: Tick) -> None:
    edit(shop, "raters = 2", "raters = 3")
    edit(shop, "Useless: about something else", "Bad: no")
    with open_workspace(shop.workspace.root / "runs" / "..", now=tick()) as found:
        assert (found.golden.id, found.golden.raters) == (shop.golden.id, 3)
        assert found.golden.grades[0.0] == "Bad: no"
        assert found.golden.guideline == shop.golden.guideline  # its text is the same
        assert found.golden.salt == shop.golden.salt
        assert found.workspace.notes == (
            "karat.toml was edited; now in effect: raters 3 (was 2), the sign of grade 0",
        )
    with open_workspace(shop.workspace.root, now=tick()) as again:
        assert (again.golden, again.workspace.notes) == (found.golden, ())


def test_grades_that_come_and_go_are_called_that(shop: Workspace, tick: Tick) -> None:
    signs = shop.golden.grades
    edit(shop, f'1 = "{signs[1.0]}"\n', '"1.5" = "Half"\n')
    edit(shop, signs[2.0], "Good")
    with open_workspace(shop.workspace.root, now=tick()) as found:
        (note,) = found.workspace.notes
    assert note.endswith(": the sign of grade 2, grade 1 is removed, grade 1.5 is new")


def test_in_a_store_that_is_shared_the_stores_values_stand(
    shop: Workspace, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two checkouts, of which nobody knows the newer: only --upgrade changes what holds for all."""
    init = opening.Store.__init__

    def shared(self: opening.Store, engine: Any) -> None:
        init(self, engine)
        self.shared = True  # as of PostgreSQL

    monkeypatch.setattr(opening.Store, "__init__", shared)
    edit(shop, "raters = 2", "raters = 3")
    edit(shop, "repeats = 0.05", "repeats = 0.1")
    for _ in range(2):
        with open_workspace(shop.workspace.root, now=tick()) as found:
            assert found.golden == shop.golden
            (note,) = found.workspace.notes
            assert note == (
                "karat.toml differs from the store, which takes precedence: raters 3 (the store: "
                "2), repeats 0.1 (the store: 0.05); karat init --upgrade applies the file for "
                "everyone"
            )
    edit(shop, "Right: answers", "Fits: answers")
    (note,) = upgrade_workspace(shop.workspace.root).notes
    assert note == (
        "karat.toml was edited; now in effect: raters 3 (was 2), repeats 0.1 (was 0.05), "
        "the sign of grade 3"
    )
    assert upgrade_workspace(shop.workspace.root).notes == ()
    with open_workspace(shop.workspace.root, now=tick()) as found:
        assert (found.golden.raters, found.golden.repeats, found.workspace.notes) == (3, 0.1, ())


def test_who_prints_a_workspace_shows_no_password(shop: Workspace) -> None:
    secret = replace(shop.workspace, store="postgresql://ann:secret@host/karat")
    assert "secret" not in repr(replace(shop, workspace=secret))


def test_a_scale_cannot_change_under_its_judgments(shop: Workspace, tick: Tick) -> None:
    edit(shop, 'scale = "0-3"', 'scale = "0-4"')
    edit(shop, "[agreement]", '4 = "Best"\n[agreement]')
    with (
        pytest.raises(UsageError, match=r"the scale 0 to 3, and karat\.toml has 0 to 4"),
        open_workspace(shop.workspace.root, now=tick()),
    ):
        pass


def test_another_name_is_another_golden_set(shop: Workspace, tick: Tick) -> None:
    edit(shop, 'name = "shop"', 'name = "other"')
    with open_workspace(shop.workspace.root, now=tick()) as found:
        assert found.golden.id != shop.golden.id
        with found.store.read() as c:
            assert golden_sets.names(c) == ["shop", "other"]


def test_it_is_found_from_any_folder_in_it(shop: Workspace, tick: Tick) -> None:
    deep = shop.workspace.root / "a" / "b"
    deep.mkdir(parents=True)
    with open_workspace(deep, now=tick()) as found:
        assert found.workspace.root == shop.workspace.root
    assert upgrade_workspace(deep).root == shop.workspace.root


def test_what_is_no_workspace_is_refused(tmp_path: Path, shop: Workspace, tick: Tick) -> None:
    with pytest.raises(UsageError, match="already exists"):
        make_workspace(shop.workspace.root, now=tick())
    with pytest.raises(UsageError, match=r"no karat\.toml"), open_workspace(tmp_path, now=tick()):
        pass
    with pytest.raises(UsageError):
        make_workspace(tmp_path / "new", now=tick(), scale="3")
    assert not (tmp_path / "new").exists()


def test_a_golden_set_of_others_is_not_taken_over(
    shop: Workspace, tick: Tick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_STORE", shop.workspace.store)
    with pytest.raises(UsageError, match="already has a golden set 'shop'"):
        make_workspace(tmp_path / "mine", now=tick(), name="shop")
    assert not (tmp_path / "mine").exists()


def test_only_a_new_guideline_is_a_new_version(shop: Workspace, tick: Tick) -> None:
    """A lost file, or one from before, says nothing of what holds now."""
    path, versions, told = shop.workspace.guideline, [], []
    first = path.read_text(encoding="utf-8")
    for text in ("second", None, first, "third"):
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
        with open_workspace(shop.workspace.root, now=tick()) as found:
            versions.append((found.golden.guideline, found.golden.guideline_text))
            told.append(found.workspace.notes)
    assert versions == [("2", "second"), ("2", "second"), ("2", "second"), ("3", "third")]
    new = "guideline.md has a new text: judgments refer to version {} from now on"
    assert told == [(new.format(2),), (), (), (new.format(3),)]
