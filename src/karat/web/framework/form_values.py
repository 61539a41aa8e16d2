"""Numbers in addresses, texts that every store can hold, and several of these in one field."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Path

Id = Annotated[int, Path(ge=1, lt=2**63)]
"""The number of something in the store, as an address has it."""


def storable(text: str) -> bool:
    """Whether a store can hold a text: no character 0, and no half of a character (U+D800 on)."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def packed(*texts: str | None) -> str:
    """Texts as one, which a form says of what it shows."""
    return json.dumps(texts, ensure_ascii=False)


def unpacked(text: str, number: int) -> list[str | None] | None:
    """The texts that ``packed`` was given; None if it does not hold so many that can be kept."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or len(found) != number:
        return None
    good = all(each is None or (isinstance(each, str) and storable(each)) for each in found)
    return found if good else None
