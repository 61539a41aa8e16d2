"""A card in a terminal: what stands on it, and that no text of strangers commands the screen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from karat.reports.judging.card import KEYS, keys_of, show_card, show_guideline, show_keys


def shown(width: int = 80, **changed: Any) -> str:
    """A card as text."""
    stream = io.StringIO()
    card: dict[str, Any] = {
        "query": "stiff door",
        "need": "open it again",
        "title": "Doors",
        "text": "Oil the hinges.",
        "url": "https://example.com/doors",
        "doc_id": "d1",
    }
    show_card(Console(file=stream, width=width), **{**card, **changed})
    return stream.getvalue()


def test_it_holds_the_query_and_the_document() -> None:
    lines = [line.strip() for line in shown().splitlines()]
    assert lines[1:] == [
        *("stiff door", "open it again", ""),
        *("Doors", "https://example.com/doors", "Oil the hinges.", ""),
    ]


def test_an_id_stands_in_for_a_title_and_no_text_is_said_so() -> None:
    bare = shown(title=None, text=None, url=None, need=None)
    assert "d1" in bare
    assert "has no text" in bare
    assert "has no text" in shown(text=" \n ", url=None)


def test_a_long_text_is_cut_unless_it_is_asked_for() -> None:
    text = "\n".join(f"line {n}" for n in range(30))
    assert "line 23" in shown(text=text)
    assert "line 24" not in shown(text=text)
    assert "6 more lines (m)" in shown(text=text)
    assert "line 29" in shown(text=text, whole=True)


@pytest.mark.parametrize("where", ["query", "need", "title", "text", "url"])
def test_no_escape_sequence_gets_through(where: str) -> None:
    found = shown(**{where: "a\x1b[2Jb\x07\x9b1m [red]c[/red]"})
    assert not set(found) & {"\x1b", "\x07", "\x9b"}
    assert "[red]c[/red]" in found


def test_line_ends_of_windows_and_tabs_are_no_marks_of_damage() -> None:
    found = shown(text="one\r\ntwo\tthree")
    assert "one\ntwo three" in found


def test_an_adjudicator_sees_grades_and_reasons() -> None:
    found = shown(votes=[(0.0, "all windows"), (3.0, None), (None, "language")])
    assert "rater: 0: all windows\nrater: 3\nrater: could not judge: language\n" in found


def test_a_guideline_is_broken_where_the_terminal_ends() -> None:
    stream = io.StringIO()
    text = "# Title\nLong words of one\nparagraph.\n\n- **0** bad\n  and worse\n- **3** good\n"
    show_guideline(Console(file=stream, width=40), text)
    assert stream.getvalue().splitlines() == [
        *("# Title", "Long words of one paragraph.", ""),
        *("- **0** bad and worse", "- **3** good", ""),
    ]


def test_grades_have_keys() -> None:
    assert keys_of([0.0, 1.0, 2.0]) == {"0": 0.0, "1": 1.0, "2": 2.0}
    assert keys_of([0.0, 0.5, 1.0]) == {"1": 0.0, "2": 0.5, "3": 1.0}
    stream = io.StringIO()
    show_keys(Console(file=stream, width=80), {"0": 0.0, "1": 1.0}, {0.0: "Bad"})
    lines = stream.getvalue().splitlines()
    assert lines[:2] == [" 0  Bad", " 1  1"]
    assert [line.split()[0] for line in lines[2:]] == list(KEYS)
