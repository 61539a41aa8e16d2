"""Comparison summaries, for lists: the verdict, and whether unjudged pairs could reverse it."""

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
    """The verdict under the first measure, in a few words; None before it is computed.

    Args:
        opened: The workspace.
        row: The comparison.
        wanted: Its runs, if already known.
    """
    head = in_short(opened, row, wanted)
    return None if head is None else head["said"]


def in_short(
    opened: Workspace, row: ComparisonRow, wanted: Sequence[RunRow] | None = None
) -> Mapping[str, Any] | None:
    """The summary of a comparison; None before it is computed.

    Returns:
        ``said`` (the verdict in a few words), ``turns`` (measures whose sign unjudged pairs could
        flip: the first, and others with a verdict of better or worse), ``next`` (number of judging
        priorities) and ``clock`` (hash of its inputs; None if it was not stored).
    """
    folder = folder_of(opened, row.id)
    head = _head(str(folder), stamp_of(folder))
    return head if head and is_of(opened, row, head, wanted) else None


@lru_cache(512)
def _head(folder: str, _stamp: str) -> Mapping[str, Any]:
    """``of``, ``attempt`` and the fields of ``in_short``; empty if there is no artifact."""
    head = artifact_head(Path(folder))
    if head is None:
        return {}
    rows = head["comparison"]["differences"]
    first_measure = [row for row in rows if row["measure"] == rows[0]["measure"]]
    if len(first_measure) == 1:
        verdict = f"{first_measure[0]['verdict']} by {first_measure[0]['measure']}"
    else:
        verdicts = ", ".join(f"{row['candidate']} {row['verdict']}" for row in first_measure)
        verdict = f"{verdicts}, by {first_measure[0]['measure']}"
    differences = [Difference(**row) for row in rows]
    flippable = [row for row in differences if row.sign_could_flip]
    flippable = [r for r in flippable if r.measure == rows[0]["measure"] or r.verdict in _DECIDED]
    return {
        **{name: head.get(name) for name in ("of", "attempt", "clock")},
        "said": verdict,
        "turns": list(dict.fromkeys(row.measure for row in flippable)),
        "next": len(head["comparison"]["judge_next"]),
    }
