"""Ids in addresses, texts that can be stored, and several texts packed into one field."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Path

Id = Annotated[int, Path(ge=1, lt=2**63)]
"""A path parameter: the id of a row of the store."""


def storable(text: str) -> bool:
    """Whether a text can be stored: it has no NUL and no unpaired surrogates."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def packed(*texts: str | None) -> str:
    return json.dumps(texts, ensure_ascii=False)


def unpacked(text: str, number: int) -> list[str | None] | None:
    """The texts given to ``packed``; None unless there are ``number`` that can be stored."""
    try:
        texts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(texts, list) or len(texts) != number:
        return None
    valid = all(part is None or (isinstance(part, str) and storable(part)) for part in texts)
    return texts if valid else None
