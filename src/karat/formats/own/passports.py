"""Passports of machine judges: one JSON file for each version of a judge, in the workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from karat.formats.tables.writing import beside

FOLDER = "judges/passports"
KEYS = frozenset(
    [
        "judge",
        "agreement",
        "confusion",
        "grades",
        "states",
        "cost",
        "tests",
        "slices",
        "pairs",
        "queries",
        "bar",
        "verdict",
        "notes",
    ]
)
"""What every passport has."""


def write_passport(root: Path, rater: str, text: str) -> None:
    path = root / FOLDER / f"{rater}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with beside(path) as stream:
        stream.write(text.encode())


def read_passport(root: Path, rater: str) -> dict[str, Any] | None:
    """The passport of a version of a judge (``JudgeConfig.rater``); None without one."""
    with suppress(OSError, ValueError):
        found = json.loads((root / FOLDER / f"{rater}.json").read_text(encoding="utf-8"))
        return found if isinstance(found, dict) and found.keys() >= KEYS else None
    return None


def versions(root: Path, name: str) -> Iterator[tuple[str, int]]:
    """Versions of a judge with a passport, and when each was written (microseconds UTC)."""
    with suppress(OSError):
        for path in (root / FOLDER).iterdir():
            if path.suffix == ".json" and path.stem.rpartition("@")[0] == name:
                yield path.stem, path.stat().st_mtime_ns // 1000


def certified(root: Path) -> frozenset[str]:
    """The versions of judges whose passport certifies them."""
    found = set()
    with suppress(OSError):
        for path in (root / FOLDER).iterdir():
            if (read_passport(root, path.stem) or {}).get("verdict") == "certified":
                found.add(path.stem)
    return frozenset(found)
