"""Numbers in addresses, and texts that every store can hold."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

Id = Annotated[int, Path(ge=1, lt=2**63)]
"""The number of something in the store, as an address has it."""


def storable(text: str) -> bool:
    """Whether a store can hold a text: no character 0, and no half of a character (U+D800 on)."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)
