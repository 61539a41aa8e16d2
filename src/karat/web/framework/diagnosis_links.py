"""The diagnosis of a run for other pages: its address, and what is known of it already."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException

from karat.errors import KaratError
from karat.reports.diagnosis.diagnosis import failure, in_short
from karat.tables.diagnosis.results import Diagnosis, QueryMode
from karat.tables.workspace import RunRow
from karat.web.framework.jobs import stored_or_computed
from karat.workflows.diagnosis.stored_diagnoses import Diagnosing, judged_by
from karat.workflows.workspace.run_stages import choices, stages_of
from karat.workflows.workspace.workspace import Workspace


def diagnosis_address(
    run_id: int, stages: Sequence[str], query_id: str = "", baseline: RunRow | None = None
) -> str:
    """Where a run is diagnosed by stored runs, or by its trace; next to a ``baseline``."""
    params = [("stage", each) for each in stages]
    params += [] if baseline is None else [("baseline", str(baseline.id))]
    path = f"/runs/{run_id}/diagnosis" + (f"/{quote(query_id, safe='')}" if query_id else "")
    return path + (f"?{urlencode(params)}" if params else "")


@dataclass(frozen=True)
class Why:
    """A run whose stages are known."""

    run: str
    address: str  # of its diagnosis, or of that of one query
    asked: Diagnosing = field(repr=False)
    diagnosis: Diagnosis | None = field(default=None, repr=False)  # None while it is not computed
    failure: QueryMode | None = None  # of the query, if that is known to fail

    @property
    def said(self) -> str:
        """What is known already: of the query, else of the run; empty for nothing."""
        if self.failure is not None:
            return failure(self.failure)
        return "" if self.diagnosis is None else in_short(self.diagnosis)

    def of_query(self, query_id: str) -> str:
        """The address of one of its queries."""
        stages = [each.stage for each in self.asked.stages]
        return diagnosis_address(self.asked.row.id, stages, query_id, self.asked.baseline)


def whys(workspace: Workspace, runs: Sequence[RunRow], query_id: str = "") -> list[Why]:
    """The runs whose stages are known, the baseline first, with the address of each diagnosis."""
    links, every, judgments = [], choices(workspace), judged_by(workspace)
    by_stage = {each.stage: each for each in every}
    for at, row in enumerate(runs):
        stages = stages_of(workspace, row, every)
        if stages is None:
            continue
        others = runs[:1] if at else runs[1:2] if query_id else []
        baseline = others[0] if others else None
        where = diagnosis_address(row.id, stages, query_id, baseline)
        steps = [by_stage[stage] for stage in stages]
        asked = Diagnosing(workspace, row, steps, baseline, judgments)
        stored = asked.kept()
        known = None if stored is None else stored.diagnosis
        if query_id:
            failing = [] if known is None else known.queries
            own = next((each for each in failing if each.query_id == query_id), None)
            links.append(Why(row.name, where, asked, failure=own))
        else:
            links.append(Why(row.name, where, asked, known))
    return links


def begin(why: Why, wait_s: float) -> Diagnosis | None:
    """The diagnosis of a run next to other numbers: if it cannot be had soon, the page has none."""
    if why.diagnosis is not None:
        return why.diagnosis
    with suppress(KaratError, HTTPException):
        found = stored_or_computed("diagnosis", why.asked, wait_s)
        return None if found is None else found.diagnosis
    return None
