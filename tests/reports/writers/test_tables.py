"""What strangers wrote commands no terminal, and no screen cuts a number."""

from __future__ import annotations

import io
import unicodedata

import pytest

from karat.reports.table import Column, Table
from karat.reports.writers.plain import plain
from karat.reports.writers.tables import draw
from karat.reports.writers.terminal import console


def test_no_mark_turns_what_stands_behind_it() -> None:
    # UAX 9: the characters whose class is an embedding, override, isolate or implicit mark.
    turning = [
        letter
        for letter in map(chr, range(0x110000))
        if unicodedata.bidirectional(letter)
        in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    ] + ["\u061c", "\u200e", "\u200f"]
    assert len(turning) == 12
    for letter in turning:
        assert plain(f"a{letter}b").plain == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["שלום", "مرحبا", "a\nb", "naïve 東京", "\u200d"])
def test_letters_of_every_script_stay(text: str) -> None:
    assert plain(text).plain == text


@pytest.mark.parametrize("width", range(50, 100))
def test_where_nothing_more_can_be_spared_no_cell_is_cut(width: int) -> None:
    row = {
        "query": "a query of several words", "device": "desktop", "searches": "14,021",
        "fails": "91.5 %", "interval": "85.5 to 95.5", "chiefly": "reformulated", "users": "1,234",
    }  # fmt: skip
    columns = [
        Column("query", "Query"),
        Column("device", "Device"),
        Column("searches", "Searches", "count", text=lambda row: row["searches"]),
        Column("fails", "Fails", "share", text=lambda row: row["fails"]),
        Column("interval", "95 %", "share", text=lambda row: row["interval"]),
        Column("chiefly", "Mostly", "words"),
        Column("users", "Users", "count", text=lambda row: row["users"], drop=1),
    ]
    out = io.StringIO()
    draw(Table("A title", columns, [row]), console(out, width))
    lines = out.getvalue().splitlines()
    assert lines[0].strip() == "A title"
    assert max(map(len, lines)) <= width
    assert {"14,021", "91.5", "95.5", "reformulated"} <= set(out.getvalue().split())
