"""Trends: each measure over time, from the histories that a workspace names."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from karat.errors import nearest
from karat.web.api.responses import Paged, printed
from karat.web.framework.auth import AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.workflows.release.stored_trends import History, find_history, histories_of
from karat.workflows.release.trend import trend as trended
from karat.workflows.workspace.display_names import told_as

ROUTER = APIRouter(prefix="/api", tags=["numbers"])


@ROUTER.get(
    "/trends",
    response_description="List of `name` (of the file), `points`, `series` (how many), `lacking` "
    "(why there are none, or null), `damaged` (lines that are left out of these counts, or "
    "why it cannot be read; in sentences).",
)
def list_trends(site: TheState, _asking: AReader, page: Paged) -> Response:
    """List the histories that karat.toml names."""

    def told(found: History) -> dict[str, Any]:
        counts = {"points": len(found.points), "series": len(found.series)}
        wrong = {"lacking": found.lacking, "damaged": found.damaged}
        return {"name": found.name, **counts, **wrong}

    return page.over(histories_of(site.workspace), told)


@ROUTER.get("/trends/{history:path}", response_description="As `karat trend --format json`.")
async def trend(
    request: Request,
    site: TheState,
    _asking: AReader,
    history: str,
    measure: Annotated[list[str] | None, Query(description="A measure; repeat it.")] = None,
    slice: Annotated[  # noqa: A002 - as the command line has it
        str | None, Query(description="One slice, as `class=name`.")
    ] = None,
    run: Annotated[str | None, Query(description="One run.")] = None,
    series: Annotated[
        str | None, Query(description="One series, or a pattern of names, as `night*`.")
    ] = None,
    last: Annotated[int | None, Query(ge=1, lt=2**31, description="Show so many points.")] = None,
) -> Response:
    """Each measure over time, what changed between points, drops, and drift."""

    def made() -> Response:
        found = find_history(site.workspace, history)
        if found is None:
            names = [each.name for each in histories_of(site.workspace)]
            raise NotFound(
                f"the workspace has no history {history!r}",
                nearest=nearest(history, names, 1),
                fix="name its file in karat.toml, [web] histories",
            )
        if not found.path.is_file():
            raise NotFound(f"{found.name}: {found.lacking}", fix=found.fix)
        with told_as(found.path, found.name):
            wanted = trended(
                found.path, measure or None, slice=slice, run=run, series=series, last=last
            )
        return printed(wanted.to_dict())

    return await in_turn(request, made)
