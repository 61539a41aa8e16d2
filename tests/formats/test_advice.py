"""Advice of readers: what they say of a file can be done at the door where somebody stands."""

from __future__ import annotations

from karat.errors import on_page
from karat.formats.advice import in_utf8


def test_whoever_looks_at_a_page_types_no_command() -> None:
    assert in_utf8("a.csv").endswith("iconv -f latin1 -t UTF-8 a.csv")
    assert on_page(in_utf8("a.csv")) == "save the file as UTF-8"
