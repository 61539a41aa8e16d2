"""Marks: what people say happened, with their names, and a note of who did what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from karat.errors import UsageError
from karat.store.sql import audit
from karat.workflows.workspace.annotations import (
    LONGEST,
    TWICE_US,
    add_annotation,
    annotations_of,
    delete_annotation,
    time_of,
)
from karat.workflows.workspace.workspace import Workspace, make_workspace, open_workspace

NOW = 1_800_000_000_000_000
DAY = 1_772_323_200_000_000  # 2026-03-01T00:00:00Z: date -u -d 2026-03-01 +%s


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    make_workspace(tmp_path / "shop", now=NOW, environment={})
    with open_workspace(tmp_path / "shop", now=NOW, environment={}) as found:
        yield found


def mark(opened: Workspace, text: str = "tokenizer", time: str = "", person: str = "ann") -> int:
    return add_annotation(opened, time=time, kind="release", text=text, person=person, now=NOW)


def noted(opened: Workspace) -> list[tuple[str, str, str]]:
    with opened.store.read() as connection:
        found = audit.frame(connection).reverse()
    return list(found.select("person", "action", "subject").iter_rows())


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2026-03-01", DAY),
        ("2026-03-01T02:30", DAY + 9_000_000_000),
        ("2026-03-01T02:30:00.5Z", DAY + 9_000_500_000),
        (" 2026-03-01T02:30:00+02:30 ", DAY),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(said: str, expected: int) -> None:
    assert time_of(said) == expected


@pytest.mark.parametrize(
    "said", ["", "yesterday", "2026-13-01", "1969-12-31", "3000-01-01", "0001-01-01T00:00:00+09:00"]
)
def test_what_is_no_time_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="invalid time"):
        time_of(said)


def test_a_mark_is_there_with_who_made_it(opened: Workspace) -> None:
    made = mark(opened, "  new\n tokenizer ", "2026-03-01")
    assert annotations_of(opened).row(0) == (made, DAY, "release", "new tokenizer", "ann", NOW)
    mark(opened)
    assert annotations_of(opened)["time_us"].to_list() == [DAY, NOW], "without a time it is now"
    assert noted(opened)[0] == ("ann", "add mark", "new tokenizer")


def test_what_is_sent_twice_is_marked_and_noted_once(opened: Workspace) -> None:
    assert mark(opened) == mark(opened)
    now = NOW + TWICE_US - 1
    twice = add_annotation(opened, time="", kind="release", text="tokenizer", person="ann", now=now)
    assert len(noted(opened)) == 1, "of now, though the second click was later"
    later = add_annotation(
        opened, time="", kind="release", text="tokenizer", person="ann", now=NOW + TWICE_US
    )
    assert later != twice
    dated = mark(opened, time="2026-03-01")
    assert dated not in {twice, later}


def test_what_cannot_be_marked_is_refused_and_not_noted(opened: Workspace) -> None:
    with pytest.raises(UsageError, match="unknown kind of annotation 'relaese'") as error:
        add_annotation(opened, time="", kind="relaese", text="x", person="ann", now=NOW)
    assert error.value.nearest == ("release",)
    for text, said in ((" \n", "has no text"), ("x" * (LONGEST + 1), "501")):
        with pytest.raises(UsageError, match=said):
            mark(opened, text)
    with pytest.raises(UsageError, match="invalid time"):
        mark(opened, time="then")
    assert not annotations_of(opened).height
    assert noted(opened) == []


def test_only_who_made_it_takes_it_away_or_an_owner(opened: Workspace) -> None:
    first, second = mark(opened), mark(opened, "docs")
    with pytest.raises(UsageError, match="the annotation belongs to ann"):
        delete_annotation(opened, first, person="ben", now=NOW)
    delete_annotation(opened, first, person="ann", now=NOW)
    with pytest.raises(UsageError, match="already deleted"):
        delete_annotation(opened, first, person="ann", now=NOW)
    delete_annotation(opened, second, person="ben", now=NOW, of_anybody=True)
    assert not annotations_of(opened).height
    assert noted(opened)[2:] == [
        ("ann", "remove mark", "tokenizer"),
        ("ben", "remove mark", "docs"),
    ]


def test_a_mark_that_cannot_be_noted_is_not_kept(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("no")

    made = mark(opened)
    monkeypatch.setattr(audit, "note", broken)
    with pytest.raises(OSError, match="no"):
        mark(opened, "another")
    with pytest.raises(OSError, match="no"):
        delete_annotation(opened, made, person="ann", now=NOW)
    assert annotations_of(opened)["id"].to_list() == [made]
