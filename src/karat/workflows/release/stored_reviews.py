"""The design review of a stored comparison: by its numbers, and the stages of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from karat.tables.diagnosis.traces import Trace, from_runs
from karat.tables.online.watch import Watched
from karat.tables.records import record_of
from karat.tables.release.review import DesignReview
from karat.tables.workspace import ComparisonRow, RunRow
from karat.workflows.diagnosis.stored_traces import stored_trace
from karat.workflows.release.review import review_of
from karat.workflows.workspace.artifacts import key_of
from karat.workflows.workspace.run_stages import chosen, stages_of
from karat.workflows.workspace.stored_comparisons import (
    StoredComparison,
    query_differences,
    sides,
)
from karat.workflows.workspace.stored_inputs import inputs_digest, judged, single_judgments
from karat.workflows.workspace.stored_runs import read_stored, trace_mark
from karat.workflows.workspace.workspace import Workspace

KIND = "review"
_VERSION = 1  # of the computation


@dataclass(frozen=True)
class Reviewing:
    """What a review is made from."""

    opened: Workspace
    row: ComparisonRow
    found: StoredComparison
    candidate: str
    watched: Watched | None  # the latest day of the log; None without one

    @property
    def sides(self) -> Mapping[str, RunRow]:
        return sides(self.opened, self.row, self.found, self.candidate)

    @property
    def key(self) -> str:
        """The key of its numbers: the comparison, the stages of its runs, judgments and log."""
        opened, edition = self.opened, self.row.settings["edition"]
        stages = [(row.content, trace_mark(opened, row), stages_of(opened, row))
                  for row in self.sides.values()]  # fmt: skip
        watched = None if self.watched is None else asdict(self.watched)
        what = key_of(_VERSION, self.row.key, self.candidate, stages, watched)
        return f"{what}-{inputs_digest(opened, edition, with_documents=True)}"

    def kept(self) -> DesignReview | None:
        stored = self.opened.artifacts.found(KIND, self.key)
        return None if stored is None else record_of(DesignReview, stored)

    def compute(self) -> DesignReview:
        """The review, computed unless it is there."""
        made = self.opened.artifacts.answer(KIND, self.key, lambda: self._review().to_dict())
        return record_of(DesignReview, made)

    def _review(self) -> DesignReview:
        opened, sides = self.opened, self.sides
        inputs = judged(opened, self.row.settings["edition"], with_documents=True)
        found = self.found.comparison
        rows = self.found.frame.filter(candidate=self.candidate)
        own: dict[str, Any] = {
            name: [row for row in getattr(found, name) if row.candidate == self.candidate]
            for name in ("differences", "slices", "costs")
        }
        others = {row.candidate for row in found.differences} - {self.candidate}
        about_others = tuple(f"{name}: " for name in others)
        notes = [note for note in found.notes if not note.startswith(about_others)]
        baseline, candidate = read_stored(opened, sides.values())
        traces = {side: _trace(opened, row) for side, row in sides.items()}
        review = review_of(
            replace(found, queries=query_differences(rows), notes=notes, **own),
            inputs.qrels,
            baseline,
            candidate,
            {side: trace for side, trace in traces.items() if trace is not None},
            judgments=single_judgments(opened),
            watched=self.watched,
            queries=inputs.queries,
            documents=inputs.documents,
            commands=False,
        )
        return replace(review, notes=[*review.notes, *_alone(opened, sides)])


def _trace(opened: Workspace, row: RunRow) -> Trace | None:
    """The trace of a run, else the stored runs of its stages as one; None if nothing is known."""
    stages = stages_of(opened, row)
    if not stages:
        return stored_trace(opened, row)
    runs = read_stored(opened, [each.row for each in chosen(opened, stages)])
    return from_runs(dict(zip(stages, runs, strict=True)), {})


def _alone(opened: Workspace, sides: Mapping[str, RunRow]) -> list[str]:
    names = [row.name for row in sides.values() if len(stages_of(opened, row) or []) == 1]
    return [f"no stages of {name} are known: its failures are by its own list" for name in names]
