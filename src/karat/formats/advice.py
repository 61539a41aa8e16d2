"""Advice of readers: what to do about files, in the words of the door at which somebody stands."""

from __future__ import annotations

from karat.errors import Advice


def in_utf8(file: str) -> Advice:
    """What helps where a line is not UTF-8."""
    return Advice(
        f"if it is Latin-1: iconv -f latin1 -t UTF-8 {file}", page="save the file as UTF-8"
    )
