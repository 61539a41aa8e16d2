"""Exchange: files into a golden set, and out of it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from karat.web.api.bodies import Uploaded
from karat.web.api.responses import said
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.jobs import in_turn
from karat.web.framework.state import TheState
from karat.web.golden.exchange import Wanted, exported
from karat.web.golden.golden_sets import opened
from karat.workflows.golden.audited import take_upload
from karat.workflows.golden.judgment_sources import sources_of
from karat.workflows.workspace.evaluate_stored import find_runs

ROUTER = APIRouter(prefix="/api", tags=["exchange"])
_COUNTS = ("queries", "documents", "judgments", "corrected", "changed", "runs")


@ROUTER.post(
    "/golden/{golden}/import",
    response_description="The object of one file of `karat golden import --json`.",
)
async def take_in(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    golden: str,
    file: Uploaded,
    format: Annotated[  # noqa: A002 - as the command line has it
        str, Query(max_length=100, description="Its format; told by content if it is left out.")
    ] = "",
    rater: Annotated[
        str, Query(max_length=200, description="Who judged, where the file names nobody.")
    ] = "",
    source: Annotated[
        list[str] | None,
        Query(
            max_length=100,
            description="Where the grades come from: human, llm, clicks or import; of one rater "
            "as RATER=SOURCE; repeat it. Needed where the name of a rater is plainly a model's.",
        ),
    ] = None,
) -> Response:
    """Import a file: all of it, or nothing."""
    found, sources = opened(site, golden), sources_of(source or ())
    who, now = asking.person.name, site.clock()

    def taken() -> Response:
        done = take_upload(
            found,
            file.path,
            file.called,
            person=who,
            now=now,
            format=format,
            rater=rater,
            sources=sources,
        )
        told = done.exchange
        return said(
            {"file": file.called, "format": told.format}
            | {name: getattr(done, name) for name in _COUNTS}
            | {"kept": told.kept, "assumed": told.assumed, "lost": told.lost}
        )

    return await in_turn(request, taken)


@ROUTER.get(
    "/golden/{golden}/export",
    response_description="The file; of a BEIR folder a ZIP file. What was assumed and lost is "
    "said in the header `X-Karat-Notes`, as the JSON of `karat golden export --json`; `{}` where "
    "that is longer than 4,000 characters.",
    response_class=FileResponse,
)
async def export_golden_set(
    request: Request,
    site: TheState,
    _asking: AReader,
    golden: str,
    format: Annotated[  # noqa: A002 - as the command line has it
        str, Query(max_length=100, description="Its format.")
    ] = "beir",
    edition: Annotated[str, Query(description="An edition; else as it stands.")] = "",
    each_rater: Annotated[bool, Query(description="Every rater's judgment.")] = False,
    run: Annotated[
        list[str] | None, Query(description="A kept run, for a format that holds runs; repeat it.")
    ] = None,
) -> Response:
    """Export the golden set or an edition: to evaluate with, or for another tool."""
    found = opened(site, golden)

    def made() -> Response:
        names = [row.name for row in find_runs(found, run or [])]
        folder = tempfile.mkdtemp(prefix="karat-")
        try:
            with exported(found, Wanted(format, edition, each_rater, names)) as (path, told):
                kept = Path(folder) / path.name
                shutil.move(path, kept)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        notes = said(
            {
                "file": kept.name,
                "format": told.format,
                "kept": told.kept,
                "assumed": told.assumed,
                "lost": told.lost,
            }
        )
        return FileResponse(
            kept,
            media_type="application/octet-stream",
            filename=kept.name,
            headers={"x-karat-notes": _one_line(bytes(notes.body))},
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )

    return await in_turn(request, made)


def _one_line(text: bytes) -> str:
    """JSON as a header can hold it: ASCII, on one line, and not endless."""
    plain = " ".join(text.decode().split())
    short = plain.encode("ascii", "backslashreplace").decode()
    return short if len(short) <= 4000 else "{}"
