"""The ledger of held-out parts, as JSON Lines: one permanent line per evaluation on them.

It is ``held_out.jsonl`` in a workspace, or next to a golden set's file outside of workspaces.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.errors import InputError, UsageError
from karat.formats.own.history import append_lines, held
from karat.formats.own.workspace import find_workspace
from karat.formats.tables.jsonl import parsed

VERSION = 1
NAME = "held_out.jsonl"  # file name of a workspace's ledger

_MARK = "karat_held_out"
_RESTORED = "restore the file from version control or a backup"


@dataclass(frozen=True, slots=True)
class Use:
    """One evaluation on a held-out part."""

    time: str  # in UTC, as `2026-03-01T02:00:00.000000Z`
    golden: str
    queries: int
    runs: tuple[tuple[str, str], ...]  # name and SHA-256 of each run
    by: str
    commit: str | None  # the commit of the code; None if unknown

    def to_dict(self) -> dict[str, Any]:
        runs = [{"name": name, "sha256": sha256} for name, sha256 in self.runs]
        head = {_MARK: VERSION, "time": self.time, "golden": self.golden, "queries": self.queries}
        return {**head, "runs": runs, "by": self.by, "commit": self.commit}


def place(golden: str | Path) -> Path:
    """The path of a golden set's ledger."""
    path = _whole(golden)
    try:
        return find_workspace(path.parent).parent / NAME
    except UsageError:
        return path.with_name(f"{path.name}.{NAME}")


def called(golden: str | Path) -> str:
    """The name of a golden set in the ledger, which may list several; argument as in ``place``."""
    return _whole(golden).relative_to(place(golden).parent).as_posix()


def _whole(golden: str | Path) -> Path:
    path = Path(golden).resolve()
    if path.parent.name == "qrels" and any(path.parent.parent.glob("queries.jsonl*")):
        path = path.parent.parent  # an export replaces the whole folder
    return path


def uses(path: Path) -> list[Use]:
    """The uses in a ledger, oldest first; empty without a file."""
    return _uses(held(path), str(path))


def append(path: Path, use: Use) -> Sequence[Use]:
    """Append a use to a ledger, which is created if necessary; returns those before."""
    line = json.dumps(use.to_dict(), ensure_ascii=False).encode("utf-8", "replace")
    return append_lines(path, line + b"\n", lambda before: _uses(before, str(path)))


def _uses(data: bytes, name: str) -> list[Use]:
    lines = enumerate(data.split(b"\n"), 1)
    return [_use(line, name, number) for number, line in lines if line.strip()]


def _use(line: bytes, name: str, number: int) -> Use:
    content = parsed(line, name, number)
    try:
        if content.pop(_MARK) != VERSION:
            raise InputError(
                "this line was written by a newer karat",
                file=name,
                line=number,
                fix="pip install --upgrade karat",
            )
        runs = tuple((str(run["name"]), str(run["sha256"])) for run in content.pop("runs"))
        return Use(runs=runs, **content)
    except (AttributeError, KeyError, TypeError):
        raise InputError(
            "the line is not a use of a held-out part", file=name, line=number, fix=_RESTORED
        ) from None
