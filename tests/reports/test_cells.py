"""What strangers wrote commands no terminal."""

from __future__ import annotations

import unicodedata

import pytest

from karat.reports.cells import plain


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
