"""Evaluate: what kept runs are worth."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from karat.web.api.bodies import Body, Said
from karat.web.api.responses import printed
from karat.web.api.runs import of_golden
from karat.web.framework.auth import AReader
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.workflows.golden.editions import NOW
from karat.workflows.workspace.evaluate_stored import evaluate_kept

ROUTER = APIRouter(prefix="/api", tags=["numbers"])
Name = Annotated[str, Field(max_length=500)]


class Evaluate(Said):
    """What is to be evaluated, and how; what is left out is as the command line has it.

    Attributes:
        runs: Kept runs, by name or number.
        measures: Names of measures; the usual ones if empty.
        by: Attributes to slice by.
        golden: Name of the golden set; that of the workspace if empty.
        edition: Name of an edition; `now` is the golden set as it stands.
        per_query: Keep each query's value too.
        interval: `t`, `bca` or `none`.
        seed: Of the bootstrap.
        rel: Lowest grade that counts as relevant, where a measure does not say.
        complete: Every query of the golden set counts.
        depth: Cut rankings after so many documents.
        judged_only: Drop unjudged documents.
        collapse: Fold chunks into the document named in this attribute of documents.
        threshold: Best scores below it count as silence, for queries marked no_answer.
        outcomes: Attributes to correlate measures with.
        bounds: Work out what unjudged documents could change.
    """

    runs: list[int | str] = Field(min_length=1, max_length=1000)
    measures: list[Name] = Field(default_factory=list, max_length=200)
    by: list[Name] = Field(default_factory=list, max_length=50)
    golden: Name = ""
    edition: str = NOW
    per_query: bool = False
    interval: Literal["t", "bca", "none"] = "t"
    seed: int = Field(0, ge=0, lt=2**31)
    rel: float | None = None
    complete: bool = False
    depth: int | None = Field(None, ge=1, lt=2**31)
    judged_only: bool = False
    collapse: Name | None = None
    threshold: float | None = None
    outcomes: list[Name] = Field(default_factory=list, max_length=50)
    bounds: bool | None = True


@ROUTER.post("/evaluate", response_description="As `karat evaluate --format json`.")
async def evaluate(
    request: Request,
    site: TheState,
    _asking: AReader,
    asked: Annotated[Evaluate, Depends(Body(Evaluate))],
) -> Response:
    """Evaluate kept runs: numbers with intervals, counts and notes. Nothing is kept."""
    found = of_golden(site, asked.golden)
    settings = asked.model_dump(exclude={"runs", "measures", "golden"})
    results = await in_turn(
        request, lambda: evaluate_kept(found, asked.runs, asked.measures, **settings)
    )
    return printed(results.to_dict())
