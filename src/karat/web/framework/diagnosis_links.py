"""Addresses of the diagnosis of a run, and of one of its queries."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode


def diagnosis_address(
    run_id: int, stages: Sequence[str], query_id: str = "", baseline: int | None = None
) -> str:
    """Where a run is diagnosed by these stages, or by its trace if there are none.

    Args:
        run_id: The run.
        stages: Names of stored runs, in order.
        query_id: Only this query; all if empty.
        baseline: A run to show next to it.
    """
    params = [("stage", each) for each in stages]
    params += [] if baseline is None else [("baseline", str(baseline))]
    path = f"/runs/{run_id}/diagnosis" + (f"/{quote(query_id, safe='')}" if query_id else "")
    return path + (f"?{urlencode(params)}" if params else "")
