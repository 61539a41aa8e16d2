"""The form that asks for a comparison: runs, measures, slices, margin, whose grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field

from karat.errors import KaratError, UsageError
from karat.measures import DEFAULTS
from karat.store.sql import runs
from karat.store.sql.runs import RunRow
from karat.web.framework.auth import AnEngineer
from karat.web.framework.errors import Said, refused
from karat.web.framework.pages import Page, show
from karat.web.framework.state import TheState
from karat.web.offline.stored_comparisons import ask
from karat.workflows.golden.editions import NOW, list_editions
from karat.workflows.workspace.stored_comparisons import Asked
from karat.workflows.workspace.stored_evaluations import attributes_of
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
Number = Annotated[int, Field(ge=1, lt=2**63)]
_MOST_RUNS = 100


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What the form says besides runs.

    Attributes:
        measures: The usual measures that are ticked.
        other: Other measures, with a semicolon between them.
        by: Attributes that are ticked, to slice by.
        by_other: Another slicing.
        margin: The margin.
        edition: Whose grades count, or ``now``.
        name: Of the comparison.
    """

    measures: Sequence[str] = DEFAULTS
    other: str = ""
    by: Sequence[str] = ()
    by_other: str = ""
    margin: str = ""
    edition: str = NOW
    name: str = ""

    @property
    def more(self) -> bool:
        """Whether it says something of slices, margin or name."""
        return bool(self.by or self.by_other or self.margin or self.name)


@dataclass(frozen=True, kw_only=True)
class NewPage(Page):
    """What to compare.

    Attributes:
        runs: To choose among, the newest first.
        baseline: Number of the run that is chosen as the baseline.
        candidates: Numbers of those that are chosen to be compared with it.
        measures: The usual measures.
        attributes: What can be sliced by.
        editions: The editions to choose from.
        typed: What else the form says.
        wrong: Why nothing was compared; None if nothing went wrong.
    """

    template: ClassVar[str] = "comparison_new.html.j2"
    section: ClassVar[str] = "comparisons"
    runs: Sequence[RunRow]
    baseline: int | None
    candidates: Sequence[int]
    measures: Sequence[str]
    attributes: Sequence[str]
    editions: Sequence[str]
    typed: Typed = field(default_factory=Typed)
    wrong: Said | None = None


@ROUTER.get("/comparisons/new")
def choose(
    request: Request, site: TheState, _asking: AnEngineer, baseline: Number | None = None
) -> Response:
    """What to compare; runs may be chosen in the address."""
    opened = site.opened(site.workspace.golden.name)
    said = request.query_params.getlist("candidate")[:_MOST_RUNS]
    wanted = [int(each) for each in said if each.isdecimal() and len(each) < 19]
    return show(request, _new_page(opened, baseline, wanted))


def _new_page(
    opened: Workspace, baseline: int | None, candidates: Sequence[int], **more: Any
) -> NewPage:
    """The form: with the oldest run as the baseline, unless another is named."""
    with opened.store.read() as connection:
        rows = runs.runs(connection, opened.golden.id)[::-1]
    named = [row.id for row in rows if row.id in candidates]
    if baseline not in {row.id for row in rows}:
        baseline = next((row.id for row in rows[::-1] if row.id not in named), None)
    others = [row.id for row in rows if row.id != baseline]
    return NewPage(
        title="Compare runs",
        crumbs=[("Comparisons", "/comparisons")],
        runs=rows,
        baseline=baseline,
        candidates=[each for each in named if each != baseline] or others[:1],
        measures=DEFAULTS,
        attributes=attributes_of(opened),
        editions=[row.name for row in list_editions(opened)],
        **more,
    )


@ROUTER.post("/comparisons/new")
def make(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    baseline: Annotated[Number, Form()],
    candidate: Annotated[list[Number], Form(max_length=_MOST_RUNS)] = [],  # noqa: B006 - FastAPI copies it
    measure: Annotated[list[str], Form()] = [],  # noqa: B006
    other: Annotated[str, Form(max_length=500)] = "",
    by: Annotated[list[str], Form()] = [],  # noqa: B006
    by_other: Annotated[str, Form(max_length=200)] = "",
    margin: Annotated[str, Form(max_length=30)] = "",
    edition: Annotated[str, Form()] = NOW,
    name: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Ask for a comparison, and compute it: at once if that is quick."""
    opened = site.opened(site.workspace.golden.name)
    others = [each for each in candidate if each != baseline]
    try:
        if not others:
            raise UsageError(
                "no candidate is selected", fix="select at least one run besides the baseline"
            )
        asked = Asked(
            [baseline, *others],
            [*measure, *(each.strip() for each in other.split(";") if each.strip())],
            [*by, *([by_other.strip()] if by_other.strip() else [])],
            _margin(margin),
            edition,
            name,
        )
        made = ask(site, opened, asked, by=asking.person.name)
    except KaratError as error:
        status, wrong = refused(error)
        typed = Typed(
            measures=measure,
            other=other,
            by=by,
            by_other=by_other,
            margin=margin,
            edition=edition,
            name=name,
        )
        page = _new_page(opened, baseline, candidate, typed=typed, wrong=wrong)
        return show(request, page, status)
    return RedirectResponse(f"{site.settings.base}/comparisons/{made}", 303)


def _margin(said: str) -> float | None:
    if not said.strip():
        return None
    try:
        return float(said)
    except ValueError:
        raise UsageError(f"the margin {said!r} is no number", fix="0.01, for example") from None
