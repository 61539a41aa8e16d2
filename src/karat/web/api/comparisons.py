"""Comparisons: asked for, computed beside, kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from karat.errors import UsageError
from karat.store.sql import comparisons as stored
from karat.store.sql import runs
from karat.store.sql.comparisons import ComparisonRow
from karat.store.sql.runs import RunRow
from karat.web.api.bodies import Body, Said
from karat.web.api.responses import Number, Paged, printed, said
from karat.web.api.runs import Golden, of_golden
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import Busy
from karat.web.framework.state import AppState, TheState
from karat.web.offline.stored_comparisons import ask, ask_again, compute, find, look
from karat.workflows.golden.editions import NOW
from karat.workflows.workspace import run_import, stored_comparisons
from karat.workflows.workspace.comparison_changes import Since
from karat.workflows.workspace.comparison_summary import verdict_of
from karat.workflows.workspace.evaluate_stored import find_runs
from karat.workflows.workspace.stored_comparisons import Asked, KeptComparison
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter(prefix="/api", tags=["comparisons"])
COMPARISON = (
    "`id`, `golden`, `name`, `runs` (`id` and `name`, the baseline first), `settings`, `made_by`, "
    "`created_us`, `state` (`waiting`, `running`, `done`, `failed`), `error`, `computed_us`, "
    "`verdict` (in words, or null), `older` (judgments given since, that would count), `changed` "
    "(whether these, queries or documents are others since, so that its numbers may be too)"
)
Name = Annotated[str, Field(max_length=500)]
_LOOK_S = 0.2  # between two looks


class Compare(Said):
    """What is to be compared.

    Attributes:
        baseline: A kept run, by name or number.
        candidates: Others.
        measures: Names of measures; the usual ones if empty.
        by: Attributes to slice by.
        margin: Differences smaller than this do not matter.
        edition: Name of an edition; `now` is the golden set as it stands.
        name: What it is called; made of the runs' names if empty.
        golden: Name of the golden set; that of the workspace if empty.
    """

    baseline: int | str
    candidates: list[int | str] = Field(min_length=1, max_length=100)
    measures: list[Name] = Field(default_factory=list, max_length=200)
    by: list[Name] = Field(default_factory=list, max_length=50)
    margin: float | None = None
    edition: str = NOW
    name: str = Field("", max_length=200)
    golden: Name = ""


@ROUTER.get("/comparisons", response_description=f"List of {COMPARISON}.")
def list_comparisons(
    site: TheState, _asking: AReader, page: Paged, golden: Golden = ""
) -> Response:
    """List the comparisons that are kept."""
    found = of_golden(site, golden)
    with found.store.read() as connection:
        rows = stored.comparisons(connection, found.golden.id)
        known = {each.id: each for each in runs.runs(connection, found.golden.id)}
    since = Since(found, rows)

    def told(row: ComparisonRow) -> dict[str, Any]:
        return _told(found, row, [known[each] for each in row.runs if each in known], since)

    return page.over(rows, told)


@ROUTER.post(
    "/comparisons",
    status_code=201,
    response_description=f"The comparison, done or to be asked for again: {COMPARISON}.",
)
def make(
    site: TheState, asking: AnEngineer, asked: Annotated[Compare, Depends(Body(Compare))]
) -> Response:
    """Ask for a comparison, which is computed beside; the answer waits a little for it."""
    found = of_golden(site, asked.golden)
    rows = find_runs(found, [asked.baseline, *asked.candidates])
    wanted = Asked(
        [row.id for row in rows],
        asked.measures,
        asked.by,
        asked.margin,
        asked.edition,
        asked.name,
    )
    made = ask(site, found, wanted, by=asking.person.name)
    return _one(site, made, 201)


@ROUTER.get("/comparisons/{comparison_id}", response_description=COMPARISON)
async def one_comparison(
    site: TheState,
    _asking: AReader,
    comparison_id: Number,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for it.")] = 0,
) -> Response:
    """What is known of a comparison; one that waits is computed."""

    def ended() -> bool:
        found, row = find(site, comparison_id)
        if not stored_comparisons.to_compute(found, row, stored_comparisons.kept(found, row)):
            return True
        with suppress(Busy):  # it waits in the store, and the next look tries again
            compute(site, found, row.id, 0.0)
        return False

    until = time.monotonic() + wait
    # No thread waits, and no event tells: another process may compute it.
    while not await run_in_threadpool(ended) and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    return await run_in_threadpool(_one, site, comparison_id)


@ROUTER.get(
    "/comparisons/{comparison_id}/result",
    response_description="As `karat compare --format json`; its `queries`, of each measure and "
    "candidate, with the largest contribution first.",
)
def result(site: TheState, _asking: AReader, comparison_id: Number) -> Response:
    """What came out."""
    kept = _done(site, comparison_id)
    queries = [
        {name: value for name, value in row.items() if name not in {"outcome", "counts"}}
        | {"slices": _by_attribute(row["slices"])}
        for row in kept.frame.iter_rows(named=True)
    ]
    return printed(kept.to_dict() | {"queries": queries})


@ROUTER.get(
    "/comparisons/{comparison_id}/queries",
    response_description="List of `candidate`, `measure`, `query_id`, `text`, `outcome` (better, "
    "same, worse), `baseline_value`, `candidate_value`, `difference`, `share`, `slices`, `counts` "
    "(whether it counts in numbers over all queries: one of weight 0 does not); the largest "
    "contribution first. With `outcome=better&counts=yes` there are as many as `wins` says.",
)
def comparison_queries(
    site: TheState, _asking: AReader, page: Paged, comparison_id: Number
) -> Response:
    """The queries of a comparison."""
    frame: pl.DataFrame = _done(site, comparison_id).frame
    return page.of(frame)


@ROUTER.post("/comparisons/{comparison_id}/again", response_description=COMPARISON)
def again(site: TheState, asking: AnEngineer, comparison_id: Number) -> Response:
    """Compute a comparison again, with the judgments of now."""
    ask_again(site, comparison_id, by=asking.person.name)
    return _one(site, comparison_id)


@ROUTER.delete(
    "/comparisons/{comparison_id}", response_description="`removed`, the number of the comparison."
)
def remove_comparison(
    site: TheState,
    asking: AnEngineer,
    comparison_id: Number,
    created_us: Annotated[
        int | None, Query(description="That of the comparison: another of its number stays.")
    ] = None,
) -> Response:
    """Remove a comparison with its numbers; its runs stay."""
    found, row = find(site, comparison_id)
    if created_us not in {None, row.created_us}:
        raise NotFound(
            f"the comparison {comparison_id} is another by now",
            fix="GET /api/comparisons lists them",
        )
    run_import.remove_comparison(found, row, person=asking.person.name, now=site.clock())
    return said({"removed": row.id})


@ROUTER.post(
    "/comparisons/{comparison_id}/queue",
    response_description="`added` (pairs that are new in the queue), `raised` (that go earlier "
    "now), `golds`.",
)
def queue_next(site: TheState, asking: AnEngineer, comparison_id: Number) -> Response:
    """Put the pairs whose grades could turn the sign into the queue, first of all."""
    kept = _done(site, comparison_id)
    found, row = find(site, comparison_id)
    who = asking.person.name
    return said(stored_comparisons.queue_next(found, row, kept, by=who, now=site.clock()))


def _done(site: AppState, comparison_id: int) -> KeptComparison:
    _, row, kept = look(site, comparison_id)
    if kept is None:
        if row.state == "failed":
            raise UsageError(row.error or "the comparison failed", fix="compute it again")
        raise UsageError("the comparison is not computed yet", fix="wait until its state is done")
    return kept


def _one(site: AppState, comparison_id: int, status: int = 200) -> Response:
    found, row = find(site, comparison_id)
    of_it = stored_comparisons.runs_of(found, row)
    return said(_told(found, row, of_it, Since(found)), status)


def _told(
    found: Workspace, row: ComparisonRow, of_it: Sequence[RunRow], since: Since
) -> dict[str, Any]:
    older = since.older(row, of_it)
    names = ("settings", "made_by", "created_us", "state", "error", "computed_us")
    return {
        "id": row.id,
        "golden": found.golden.name,
        "name": row.name,
        "runs": [{"id": run.id, "name": run.name} for run in of_it],
        **{name: getattr(row, name) for name in names},
        "verdict": verdict_of(found, row, of_it),
        "older": older.judgments,
        "changed": older.changed,
    }


def _by_attribute(slices: list[str]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for each in slices:
        attribute, _, value = each.partition("=")
        out.setdefault(attribute, []).append(value)
    return out
