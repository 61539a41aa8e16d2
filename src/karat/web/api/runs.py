"""Runs: which are kept, bringing one, and getting one back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathOf
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from karat.errors import nearest
from karat.formats import write_run
from karat.store.sql import comparisons, golden_sets
from karat.store.sql import runs as stored
from karat.store.sql.runs import RunRow
from karat.web.api.bodies import Uploaded
from karat.web.api.responses import Paged, printed, said
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import AppState, TheState
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.audited import file_name
from karat.workflows.golden.editions import NOW
from karat.workflows.workspace import run_import
from karat.workflows.workspace.evaluate_stored import explain_kept
from karat.workflows.workspace.stored_runs import read_kept
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter(prefix="/api", tags=["runs"])
RUN = (
    "`id`, `golden`, `name`, `also` (other names that mean it), `sha256`, `queries`, "
    "`rows`, `about`, `added_us`, `kept_by` (who kept it first; null where nobody is named)"
)
_LISTED = "GET /api/runs lists them"
_DIGITS = 19  # numbers of the store have fewer
_ENDINGS = {
    "parquet": ".parquet",
    "json": ".json",
    "jsonl": ".jsonl",
    "csv": ".csv",
    "tsv": ".tsv",
    "trec": ".trec",
}
Format = Literal["parquet", "json", "jsonl", "csv", "tsv", "trec"]
Golden = Annotated[
    str, Query(max_length=200, description="The golden set; else that of the workspace.")
]
Wanted = Annotated[
    str,
    PathOf(
        max_length=500,
        description="Its number; or its name in the golden set: then what was last kept under it.",
    ),
]


@ROUTER.get("/runs", response_description=f"List of {RUN}; the newest first.")
def list_runs(site: TheState, _asking: AReader, page: Paged, golden: Golden = "") -> Response:
    """List the runs that are kept."""
    found = of_golden(site, golden)
    rows, who = _kept(found)
    meant = stored.by_name(rows)
    return page.over(rows[::-1], lambda row: _told(row, found, meant, who))


@ROUTER.post(
    "/runs",
    status_code=201,
    response_description=f"The run as it is kept: {RUN}; and `said`, what became of a content that "
    "was kept already (null if it is new; the status is then 201, else 200).",
)
async def bring_run(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    file: Uploaded,
    run: Annotated[
        str, Query(max_length=200, description="What the run is called; else as its file says.")
    ] = "",
    golden: Golden = "",
) -> Response:
    """Keep a run; one of the same content is kept once, and gets this name too."""
    found, who, now = of_golden(site, golden), asking.person.name, site.clock()

    def brought() -> Response:
        made = run_import.import_run(found, file.path, file.called, name=run, person=who, now=now)
        told = _told_alone(made.row, found) | {"said": made.said}
        return said(told, 201 if made.new else 200)

    return await in_turn(request, brought)


# A name may hold slashes, so that the addresses with something behind it come first.


@ROUTER.get(
    "/runs/{run:path}/file",
    response_description="The run as a file.",
    response_class=FileResponse,
)
async def run_file(
    request: Request,
    site: TheState,
    _asking: AReader,
    run: Wanted,
    format: Annotated[  # noqa: A002 - as the command line has it
        Format,
        Query(description="All but `trec` keep which queries failed or got nothing."),
    ] = "parquet",
    golden: Golden = "",
) -> Response:
    """Get a run back."""
    found, row = _run(site, run, golden)

    def written() -> Response:
        [kept] = read_kept(found, [row])
        folder = tempfile.mkdtemp(prefix="karat-")
        try:
            path = Path(folder) / f"{file_name(row.name)}{_ENDINGS[format]}"
            write_run(kept, path, sidecar=False)  # it would stay behind
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return FileResponse(
            path,
            media_type="application/octet-stream",
            filename=path.name,
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )

    return await in_turn(request, written)


@ROUTER.get(
    "/runs/{run:path}/explain",
    response_description="As `karat explain --format json`.",
)
async def explain(
    request: Request,
    site: TheState,
    _asking: AReader,
    run: Wanted,
    query_id: str,
    measure: Annotated[str, Query(max_length=500)] = "nDCG@10",
    edition: Annotated[str, Query(description="An edition.")] = NOW,
    golden: Golden = "",
) -> Response:
    """Explain one value: which documents add what."""
    found, row = _run(site, run, golden)
    made = await in_turn(request, lambda: explain_kept(found, row.id, query_id, measure, edition))
    return printed(made.to_dict())


@ROUTER.get("/runs/{run:path}", response_description=RUN)
def one_run(site: TheState, _asking: AReader, run: Wanted, golden: Golden = "") -> Response:
    """What is known of one run."""
    found, row = _run(site, run, golden)
    return said(_told_alone(row, found))


@ROUTER.delete("/runs/{run:path}", response_description="`removed`, the number of the run.")
def remove_run(
    site: TheState,
    asking: AnEngineer,
    run: Wanted,
    sha256: Annotated[
        str, Query(max_length=64, description="That of the run: another of its number stays.")
    ] = "",
    golden: Golden = "",
) -> Response:
    """Remove a run with its file; refused while a comparison needs it."""
    found, row = _run(site, run, golden)
    if sha256 not in {"", row.sha256}:
        raise NotFound(f"the run {run} is another by now", fix=_LISTED)
    run_import.remove_run(found, row, person=asking.person.name, now=site.clock())
    return said({"removed": row.id})


def of_golden(site: AppState, golden: str) -> Workspace:
    """The workspace with a golden set; with its own if none is named.

    Raises:
        NotFound: there is none of that name.
    """
    return opened(site, golden or site.workspace.golden.name)


def _run(site: AppState, wanted: str, golden: str) -> tuple[Workspace, RunRow]:
    """A run by its number, of whatever golden set; else by its name in one.

    Raises:
        NotFound: there is none.
    """
    if wanted.isascii() and wanted.isdigit() and len(wanted) < _DIGITS:
        with site.workspace.store.read() as connection:
            found = comparisons.find_run(connection, int(wanted))
            if found is not None:
                name = golden_sets.by_id(connection, found[0]).name
        if found is not None:
            return site.opened(name), found[1]
    own = of_golden(site, golden)
    meant = stored.by_name(_rows(own))
    if wanted not in meant:
        what = f"there is no run {wanted!r} in the golden set {own.golden.name!r}"
        raise NotFound(what, nearest=nearest(wanted, meant, 1), fix=_LISTED)
    return own, meant[wanted]


def _rows(found: Workspace) -> list[RunRow]:
    with found.store.read() as connection:
        return stored.runs(connection, found.golden.id)


def _kept(found: Workspace) -> tuple[list[RunRow], dict[str, str]]:
    """The runs of a golden set, and by its SHA-256 who kept each."""
    with found.store.read() as connection:
        rows = stored.runs(connection, found.golden.id)
        return rows, comparisons.who_kept(connection, run_import.KEPT, run_import.REMOVED)


def _told_alone(row: RunRow, found: Workspace) -> dict[str, Any]:
    rows, who = _kept(found)
    return _told(row, found, stored.by_name(rows), who)


def _told(
    row: RunRow, found: Workspace, meant: Mapping[str, RunRow], who: Mapping[str, str]
) -> dict[str, Any]:
    names = ("sha256", "queries", "rows", "about", "added_us")
    also = stored.others(row, meant)
    held = {"id": row.id, "golden": found.golden.name, "name": row.name, "also": also}
    told = {name: getattr(row, name) for name in names}
    return held | told | {"kept_by": who.get(row.sha256)}
