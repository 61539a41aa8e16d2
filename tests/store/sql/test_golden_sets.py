"""Names of golden sets: what stands in an address, and in a heading."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import UsageError
from karat.store.sql import golden_sets
from karat.store.sql.golden_sets import LONGEST
from karat.store.sql.opening import open_store
from karat.tables.golden.golden_sets import addressable


@pytest.mark.parametrize(
    "name", ["", "  ", "a/b", "/", ".", "..", "a\nb", "a\0b", "\u200b", "x" * (LONGEST + 1)]
)
def test_a_set_whose_pages_nobody_could_open_is_not_made(name: str, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'karat.db'}", make=True)
    try:
        with pytest.raises(UsageError) as refused, store.begin() as c:
            made(c, name)
        assert refused.value.fix is not None
        with store.begin() as c:
            assert golden_sets.names(c) == []
            for good in ("x" * LONGEST, "shop. 2", "ショップ 🛒", "a\\b?c#d%2F", "..."):
                made(c, good)
                assert addressable(good)
    finally:
        store.dispose()


def test_a_change_of_one_set_leaves_others_alone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'karat.db'}", make=True)
    with store.begin() as c:
        made(c, "a")
        made(c, "b")
        one, other = golden_sets.find(c, "a"), golden_sets.find(c, "b")
        golden_sets.change(c, one.id, grades={0.0: "Off", 3.0: "On"}, raters=3, repeats=0.5)
        changed = golden_sets.find(c, "a")
        assert changed.grades == {0.0: "Off", 3.0: "On"}
        assert (changed.raters, changed.repeats) == (3, 0.5)
        assert golden_sets.find(c, "b") == other
    store.dispose()


def made(c: object, name: str) -> None:
    """Make a golden set of this name."""
    golden_sets.make(
        c,  # type: ignore[arg-type]
        name,
        scale=(0, 3),
        grades={0.0: "No", 3.0: "Yes"},
        salt="salt",
        guideline="",
        now=1_800_000_000_000_000,
    )
