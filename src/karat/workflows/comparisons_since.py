"""What changed since comparisons were computed: judgments, queries, documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from karat.diagnosis.document_slices import of_documents
from karat.store import comparisons
from karat.store.comparisons import ComparisonRow
from karat.store.runs import RunRow
from karat.workflows.comparisons_in_short import in_short
from karat.workflows.editions import NOW
from karat.workflows.kept_inputs import clock_of
from karat.workflows.workspace import Opened


@dataclass(frozen=True)
class Older:
    """How far a comparison is behind.

    Attributes:
        judgments: Judgments that were given since, that would count.
        changed: Whether these, queries or documents are others since: its numbers may be too.
    """

    judgments: int = 0
    changed: bool = False

    @property
    def said(self) -> str:
        """What changed since, in a sentence; empty if nothing did."""
        if not self.changed:
            return ""
        if not self.judgments:
            return "Queries or documents changed since this was computed."
        were = "judgment was" if self.judgments == 1 else "judgments were"
        return f"{self.judgments:,} {were} given since this was computed."


class Since:
    """What changed since comparisons of one golden set were computed; looked up once for many.

    Args:
        opened: The workspace, with the golden set.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._clocks: dict[tuple[bool, bool], str] = {}

    def older(self, row: ComparisonRow, wanted: Sequence[RunRow] | None = None) -> Older:
        """How far a comparison is behind; not at all before it is computed.

        Args:
            row: The comparison.
            wanted: Its runs, where they are known already.
        """
        if row.judgment_id is None:
            return Older()
        edition = row.settings["edition"]
        judgments = 0
        if edition == NOW:
            with self._opened.store.read() as connection:
                judgments = comparisons.judged_since(
                    connection, self._opened.golden.id, row.judgment_id
                )
        head = in_short(self._opened, row, wanted)
        known = None if head is None else head["clock"]
        if known is None:  # nothing was kept of it but the newest judgment
            return Older(judgments, judgments > 0)
        return Older(judgments, known != self._clock(edition, of_documents(row.settings["by"])))

    def _clock(self, edition: str, with_documents: bool) -> str:
        key = edition == NOW, with_documents
        if key not in self._clocks:
            self._clocks[key] = clock_of(self._opened, edition, with_documents=with_documents)
        return self._clocks[key]
