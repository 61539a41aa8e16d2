"""Passports of machine judges: one JSON file for each version of a judge, in the workspace."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from karat.formats.tables.writing import beside
from karat.tables.golden.machine_judges import StoredPassport

FOLDER = "judges/passports"
KEYS = frozenset(each.name for each in fields(StoredPassport) if each.default is MISSING)
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


def passports(root: Path) -> dict[str, dict[str, Any]]:
    """All passports of a workspace, by ``JudgeConfig.rater``, the newest last."""
    found = {}
    with suppress(OSError):
        for path in (root / FOLDER).glob("*.json"):
            if (passport := read_passport(root, path.stem)) is not None:
                found[path.stem] = passport
    return dict(sorted(found.items(), key=lambda each: each[1].get("measured_us") or 0))


def certified(root: Path) -> frozenset[str]:
    """The versions of judges whose passport certifies them."""
    every = passports(root).items()
    return frozenset(rater for rater, found in every if found["verdict"] == "certified")
