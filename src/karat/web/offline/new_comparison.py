"""The form for a new comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Response
from pydantic import Field

from karat.errors import KaratError, UsageError
from karat.web.framework.auth import AnEngineer
from karat.web.framework.errors import refused
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.offline.stored_comparisons import ask
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.offline.catalogue import default_measures
from karat.workflows.workspace.listed import list_runs
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_evaluations import attributes_of
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
Number = Annotated[int, Field(ge=1, lt=2**63)]
_MOST_RUNS = 100


@dataclass(frozen=True)
class Typed:
    """What the form has, besides the runs."""

    measures: Annotated[Sequence[str], Form(alias="measure")] = ()
    other: Annotated[str, Form(max_length=500)] = ""
    by: Annotated[Sequence[str], Form()] = ()
    by_other: Annotated[str, Form(max_length=200)] = ""
    margin: Annotated[str, Form(max_length=30)] = ""
    edition: Annotated[str, Form()] = NOW
    name: Annotated[str, Form(max_length=200)] = ""

    @property
    def more(self) -> bool:
        """Whether the folded fields (slices, margin, name) are used."""
        return bool(self.by or self.by_other or self.margin or self.name)


@ROUTER.get("/comparisons/new")
def choose(call: AnEngineer, baseline: Number | None = None) -> Response:
    """Show the form; the address may preselect runs."""
    workspace = call.workspace
    values = call.request.query_params.getlist("candidate")[:_MOST_RUNS]
    candidates = [int(value) for value in values if value.isdecimal() and len(value) < 19]
    return show(call, _new_page(workspace, baseline, candidates))


def _new_page(
    workspace: Workspace, baseline: int | None, candidates: Sequence[int], **more: Any
) -> Page:
    """The form; the baseline defaults to the oldest run."""
    rows = list_runs(workspace)[0]
    selected = [row.id for row in rows if row.id in candidates]
    if baseline not in {row.id for row in rows}:
        baseline = next((row.id for row in rows[::-1] if row.id not in selected), None)
    others = [row.id for row in rows if row.id != baseline]
    return PlainPage(
        "comparison_new.html.j2",
        "Compare runs",
        [("Comparisons", "/comparisons")],
        runs=rows,
        baseline=baseline,
        candidates=[each for each in selected if each != baseline] or others[:1],
        measures=default_measures(),
        attributes=attributes_of(workspace),
        editions=[row.name for row in list_editions(workspace)],
        **{"typed": Typed(default_measures()), "wrong": None, **more},
    )


@ROUTER.post("/comparisons/new")
def make(
    call: AnEngineer,
    typed: Annotated[Typed, Depends()],
    baseline: Annotated[Number, Form()],
    candidate: Annotated[Sequence[Number], Form(max_length=_MOST_RUNS)] = (),
) -> Response:
    """Create a comparison, and wait briefly for its results."""
    workspace = call.workspace
    others = [each for each in candidate if each != baseline]
    try:
        if not others:
            raise UsageError(
                "no candidate is selected", fix="select at least one run other than the baseline"
            )
        inputs = Asked(
            [baseline, *others],
            [*typed.measures, *filter(None, map(str.strip, typed.other.split(";")))],
            [*typed.by, *filter(None, [typed.by_other.strip()])],
            _margin(typed.margin),
            typed.edition,
            typed.name,
        )
        comparison_id = ask(call.site, workspace, inputs, by=call.who)
    except KaratError as error:
        status, wrong = refused(error)
        page = _new_page(workspace, baseline, candidate, typed=typed, wrong=wrong)
        return show(call, page, status)
    return redirect(call, f"/comparisons/{comparison_id}")


def _margin(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"the margin {text!r} is not a number", fix="0.01, for example") from None
