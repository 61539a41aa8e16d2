"""Gates of a run for other pages: their verdicts, and the pages of their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from karat.reports.phrases.gate import ANSWERS, brief
from karat.tables.release.gate import GateVerdict
from karat.tables.workspace import RunRow
from karat.workflows.release.stored_gates import gates_of, with_checks
from karat.workflows.workspace.workspace import Workspace

_MOST = 3


@dataclass(frozen=True)
class GateLink:
    id: int
    verdict: GateVerdict
    answer: str  # the verdict in a word
    brief: str  # what the check measured that decides; empty without one
    policy: str
    time_us: int


@dataclass(frozen=True)
class GateLinks:
    """The newest gates of a run, and how many more there are."""

    rows: Sequence[GateLink]
    more: int
    every: str  # address of all gates of the candidate, without the base


def gate_links(
    workspace: Workspace, candidate: RunRow, baseline: RunRow | None = None
) -> GateLinks:
    """The gates in which a run was the candidate; against one baseline if given."""
    rows = gates_of(workspace, candidate, baseline)
    links = [
        GateLink(
            row.id,
            row.verdict,
            ANSWERS[row.verdict],
            "" if row.decides is None else brief(row.decides),
            row.policy,
            row.time_us,
        )
        for row in with_checks(workspace, rows[:_MOST])
    ]
    named = candidate.name if not rows else rows[0].candidate
    return GateLinks(links, len(rows) - len(links), f"/gates?{urlencode({'candidate': named})}")
