"""Records that repeat fields of others."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def shared(source: Any, kind: type) -> dict[str, Any]:
    """The values of a record's fields that another kind of record has too, by name."""
    names = {each.name for each in fields(kind)}
    return {each.name: getattr(source, each.name) for each in fields(source) if each.name in names}
