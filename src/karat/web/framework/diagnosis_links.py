"""Addresses of the diagnosis of a run, and of one of its queries."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from karat.tables.workspace import RunRow
from karat.workflows.workspace.run_stages import choices, stages_of
from karat.workflows.workspace.workspace import Workspace


def diagnosis_address(
    run_id: int, stages: Sequence[str], query_id: str = "", baseline: int | None = None
) -> str:
    """Where a run is diagnosed by stored runs, or by its trace; next to a ``baseline``."""
    params = [("stage", each) for each in stages]
    params += [] if baseline is None else [("baseline", str(baseline))]
    path = f"/runs/{run_id}/diagnosis" + (f"/{quote(query_id, safe='')}" if query_id else "")
    return path + (f"?{urlencode(params)}" if params else "")


def whys(workspace: Workspace, runs: Sequence[RunRow], query_id: str = "") -> list[tuple[str, str]]:
    """The runs whose stages are known, the baseline first, with the address of each diagnosis."""
    links, every = [], choices(workspace)
    for at, row in enumerate(runs):
        stages = stages_of(workspace, row, every)
        if stages is not None:
            other = runs[1 if at == 0 else 0].id if query_id and len(runs) > 1 else None
            links.append((row.name, diagnosis_address(row.id, stages, query_id, other)))
    return links
