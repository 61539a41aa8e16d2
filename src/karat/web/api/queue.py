"""What is to be judged: queries chosen from a log, pairs from kept runs or sent as a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from karat.reports.golden.golden import to_json
from karat.web.api.bodies import Body, Said, Uploaded
from karat.web.api.responses import said
from karat.web.framework.auth import AnEngineer
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.sampling import ON_SERVER, choose_queries, read_bands, read_quota
from karat.workflows.workspace.evaluate_stored import enqueue_upload, pool_kept

ROUTER = APIRouter(prefix="/api", tags=["judging"])
Count = Annotated[int, Field(ge=1, lt=2**31)]


class Pool(Said):
    """What is to be pooled.

    Attributes:
        runs: Kept runs, by name or number.
        method: As `karat golden pool --method`.
        k: Depth, or documents of each query.
        p: Persistence of RBP.
        budget: The most pairs in all.
        per_query: The most pairs of a query.
        bands: Parts of each pool that are judged one after the other.
    """

    runs: list[int | str] = Field(min_length=1, max_length=1000)
    method: Literal["depth", "rr", "rbp", "mtf"] = "depth"
    k: Count = 10
    p: float = 0.8
    budget: Count | None = None
    per_query: Count | None = None
    bands: Count = 1


@ROUTER.post(
    "/golden/{golden}/pool",
    response_description="As `karat golden pool --format json`.",
)
async def pool(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    golden: str,
    asked: Annotated[Pool, Depends(Body(Pool))],
) -> Response:
    """Put what kept runs return into the queue; what is judged already stays out."""
    settings: dict[str, Any] = asked.model_dump(exclude={"runs"})
    settings |= {"person": asking.person.name, "now": site.clock()}
    return said(
        await in_turn(request, lambda: pool_kept(opened(site, golden), asked.runs, **settings))
    )


@ROUTER.post(
    "/golden/{golden}/queue",
    response_description="As `karat golden queue --format json`.",
)
def queue(site: TheState, asking: AnEngineer, golden: str, file: Uploaded) -> Response:
    """Put the pairs of a file into the queue, in its order, such as `karat compare` writes."""
    found = opened(site, golden)
    with file.named():
        made = enqueue_upload(
            found, file.path, file.called, person=asking.person.name, now=site.clock()
        )
    return said(made)


@ROUTER.post(
    "/golden/{golden}/choose",
    response_description="As `karat golden choose --format json`.",
)
async def choose(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    golden: str,
    file: Uploaded,
    size: Annotated[int, Query(ge=1, lt=2**31, description="Queries to draw.")] = 100,
    band: Annotated[
        list[str] | None, Query(description="As `karat golden choose --band`; repeat it.")
    ] = None,
    quota: Annotated[
        list[str] | None, Query(description="As `karat golden choose --quota`; repeat it.")
    ] = None,
    hard: Annotated[
        list[str] | None, Query(description="A query known to be hard; repeat it.")
    ] = None,
    mask: Annotated[bool, Query(description="Replace what is personal.")] = False,
    text: Annotated[str | None, Query(description="The column of queries.")] = None,
    count: Annotated[str | None, Query(description="The column of counts.")] = None,
    replace: Annotated[
        bool,
        Query(
            description="Even if most of an earlier sample is dropped, or judged queries count no "
            "more."
        ),
    ] = False,
) -> Response:
    """Draw queries from a log, and put them into the golden set."""
    found = opened(site, golden)

    def chosen() -> Response:
        with file.named():
            made = choose_queries(
                found,
                file.path,
                size,
                now=site.clock(),
                replace=replace,
                person=asking.person.name,
                bands=read_bands(band or ()),
                quotas=[read_quota(each) for each in quota or ()],
                hard=hard or (),
                mask=mask,
                text=text,
                count=count,
                most=ON_SERVER,
            )
        # The sample, and not every query of the log: it may be long, and hold what is personal.
        return Response(to_json(made, ("log.frame",)), media_type="application/json")

    return await in_turn(request, chosen)
