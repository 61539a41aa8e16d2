"""What strangers wrote commands no terminal, and no screen cuts a number."""

from __future__ import annotations

import io
import unicodedata

import pytest

from karat.reports.writers.cells import fitted, plain
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
    row = {"query": plain("a query of several words"), "device": plain("desktop"),
           "searches": "  14,021", "fails": "91.5 %", "95 %": "85.5–95.5",
           "chiefly": "reformulated", "users": "1,234"}  # fmt: skip
    out = io.StringIO()
    to = console(out, width)
    to.print(fitted("a title", [row], ["users"], to, names=2))
    lines = out.getvalue().splitlines()
    assert lines[0].strip() == "a title"
    assert max(map(len, lines)) <= width
    assert {"14,021", "91.5", "85.5–95.5", "reformulated"} <= set(out.getvalue().split())
