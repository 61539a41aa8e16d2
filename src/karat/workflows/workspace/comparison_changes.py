"""Comparison changes: judgments, queries and documents that changed since a comparison."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.diagnosis.document_slices import of_documents
from karat.store.sql import comparisons, runs
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.workflows.golden.editions import NOW
from karat.workflows.workspace.comparison_summary import in_short
from karat.workflows.workspace.stored_inputs import clock_of
from karat.workflows.workspace.workspace import Workspace


@dataclass(frozen=True)
class Older:
    """How stale a comparison is.

    Attributes:
        judgments: Number of judgments since that count: the last of each pair, without undone ones.
        changed: Whether judgments, queries or documents changed, so its numbers may change.
    """

    judgments: int = 0
    changed: bool = False

    @property
    def told(self) -> str:
        """What changed, as a phrase; empty if nothing did."""
        if not self.changed:
            return ""
        if not self.judgments:
            return "judgments, queries or documents changed since"
        were = "judgment was" if self.judgments == 1 else "judgments were"
        return f"{self.judgments:,} {were} given since"

    @property
    def said(self) -> str:
        """What changed, as a sentence; empty if nothing did."""
        return f"{self.told[:1].upper()}{self.told[1:]} this was computed." if self.changed else ""


class Since:
    """Changes since comparisons of one golden set were computed, with shared look-ups.

    Args:
        opened: The workspace, with the golden set.
        rows: Comparisons to be checked; their judgments are looked up together.
    """

    def __init__(self, opened: Workspace, rows: Sequence[ComparisonRow] = ()) -> None:
        self._opened = opened
        self._clocks: dict[tuple[bool, bool], str] = {}
        judgment_ids = [row.judgment_id for row in rows if row.settings["edition"] == NOW]
        self._first = min(
            (judgment_id for judgment_id in judgment_ids if judgment_id is not None), default=None
        )
        self._given: list[int] | None = None

    def older(self, row: ComparisonRow, wanted: Sequence[RunRow] | None = None) -> Older:
        """How stale a comparison is; not at all before it is computed.

        Args:
            row: The comparison.
            wanted: Its runs, if already known.
        """
        if row.judgment_id is None:
            return Older()
        edition = row.settings["edition"]
        summary = in_short(self._opened, row, wanted)
        stored = None if summary is None else summary["clock"]
        if stored is not None:
            changed = stored != self._clock(edition, of_documents(row.settings["by"]))
        else:  # only the newest judgment was stored
            with self._opened.store.read() as connection:
                newest = comparisons.newest_judgment(connection, self._opened.golden.id)
            changed = edition == NOW and newest != row.judgment_id
        if not changed:
            return Older()
        return Older(self._judged(row.judgment_id) if edition == NOW else 0, changed=True)

    def _judged(self, since: int) -> int:
        if self._given is None or self._first is None or since < self._first:
            self._first = since if self._first is None else min(since, self._first)
            with self._opened.store.read() as connection:
                self._given = comparisons.judged_since(
                    connection, self._opened.golden.id, self._first
                )
        return len(self._given) - bisect_right(self._given, since)

    def _clock(self, edition: str, with_documents: bool) -> str:
        key = edition == NOW, with_documents
        if key not in self._clocks:
            self._clocks[key] = clock_of(self._opened, edition, with_documents=with_documents)
        return self._clocks[key]


def turning(opened: Workspace) -> list[tuple[ComparisonRow, Mapping[str, Any], Older]]:
    """Comparisons whose sign unjudged pairs could flip, each with its summary and staleness."""
    with opened.store.read() as connection:
        rows = comparisons.comparisons(connection, opened.golden.id)
        runs_by_id = {row.id: row for row in runs.runs(connection, opened.golden.id)}
    since, flippable = Since(opened, rows), []
    for row in rows:
        if row.state == "done":
            its_runs = [runs_by_id[run_id] for run_id in row.runs if run_id in runs_by_id]
            summary = in_short(opened, row, its_runs)
            if summary is not None and summary["turns"]:
                flippable.append((row, summary, since.older(row, its_runs)))
    return flippable
