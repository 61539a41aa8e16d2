"""Comparisons in short, for lists: what one says, and whether that could turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.tables.comparison import Difference
from karat.workflows.workspace.artifacts import artifact_head, stamp_of
from karat.workflows.workspace.stored_comparisons import folder_of, is_of
from karat.workflows.workspace.workspace import Workspace

_DECIDED = ("better", "worse")


def verdict_of(
    opened: Workspace, row: ComparisonRow, wanted: Sequence[RunRow] | None = None
) -> str | None:
    """What may be said under the first measure, in a few words; None before it is computed.

    Args:
        opened: The workspace.
        row: The comparison.
        wanted: Its runs, where they are known already.
    """
    head = in_short(opened, row, wanted)
    return None if head is None else head["said"]


def in_short(
    opened: Workspace, row: ComparisonRow, wanted: Sequence[RunRow] | None = None
) -> Mapping[str, Any] | None:
    """What a list says of a comparison; None before it is computed.

    Returns:
        ``said`` (the verdict in a few words), ``turns`` (measures whose sign pairs that nobody
        judged could flip: the first, and others that say better or worse), ``next`` (pairs to judge
        that it names) and ``clock`` (of what it was computed from; None where that was not kept).
    """
    folder = folder_of(opened, row.id)
    head = _head(str(folder), stamp_of(folder))
    return head if head and is_of(opened, row, head, wanted) else None


@lru_cache(512)
def _head(folder: str, _stamp: str) -> Mapping[str, Any]:
    """``of``, ``attempt`` and what ``in_short`` gives; empty if there is nothing."""
    head = artifact_head(Path(folder))
    if head is None:
        return {}
    rows = head["comparison"]["differences"]
    own = [row for row in rows if row["measure"] == rows[0]["measure"]]
    if len(own) == 1:
        said = f"{own[0]['verdict']} by {own[0]['measure']}"
    else:
        each = ", ".join(f"{row['candidate']} {row['verdict']}" for row in own)
        said = f"{each}, by {own[0]['measure']}"
    every = [Difference(**row) for row in rows]
    turns = [row for row in every if row.sign_could_flip]
    turns = [r for r in turns if r.measure == rows[0]["measure"] or r.verdict in _DECIDED]
    return {
        **{name: head.get(name) for name in ("of", "attempt", "clock")},
        "said": said,
        "turns": list(dict.fromkeys(row.measure for row in turns)),
        "next": len(head["comparison"]["judge_next"]),
    }
