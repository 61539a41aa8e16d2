"""Import and export: files of karat's formats and of other tools."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Depends, File, Form, Query, Response, UploadFile

from karat.errors import KaratError
from karat.formats.exchange.catalogue import EXCHANGES
from karat.reports.table import Column
from karat.tables.golden.golden_sets import Exchange
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import opened, refused
from karat.web.framework.lists import listed
from karat.web.framework.pages import Page, show
from karat.web.framework.uploads import file_response, uploaded
from karat.web.golden.golden_sets import golden_page
from karat.workflows.golden.editions import list_editions
from karat.workflows.golden.export import export_golden_set
from karat.workflows.golden.import_ import file_name, import_upload
from karat.workflows.golden.judgment_sources import sources_of
from karat.workflows.golden.queries import imports_in
from karat.workflows.workspace.stored_runs import stored_run_names
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
READ = {
    "queries": "queries, in karat's own formats",
    "documents": "documents, in karat's own formats",
    **{peer.name: peer.what for peer in EXCHANGES.values()},
    "beir": f"{EXCHANGES['beir'].what}, in a ZIP file",
}
WRITTEN = {peer.name: peer.what for peer in EXCHANGES.values() if peer.write is not None}
"""Formats of uploads, and of downloads: name and description."""
_ENDINGS = {"trec": ".qrels", "beir": ".zip", "quepid-ltr": ".txt"}


@dataclass(frozen=True)
class Wanted:
    to: str = "beir"
    edition: str = ""
    each_rater: bool = False
    runs: Annotated[Sequence[str], Query(alias="run")] = ()


Asked = Annotated[Wanted, Depends()]
"""A route parameter: the export options in the address."""


@ROUTER.get("/golden/{name}/exchange")
def exchange(call: AReader, name: str, wanted: Asked) -> Response:
    """Show the forms; with ``?to=``, also what such an export would keep, assume and lose."""
    workspace = opened(call.site, name)
    if "to" not in call.request.query_params:
        return show(call, _page(workspace, call, wanted=wanted))
    try:
        with tempfile.TemporaryDirectory(prefix="karat-") as folder:
            leaving = exported(workspace, wanted, Path(folder))[1]
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(workspace, call, wanted=wanted, wrong_out=wrong), status)
    params = {"to": wanted.to, "edition": wanted.edition, "run": wanted.runs}
    params |= {"each_rater": "true"} if wanted.each_rater else {}
    query = urlencode({key: value for key, value in params.items() if value}, doseq=True)
    download = f"/golden/{quote(name, safe='')}/exchange/file?{query}"
    page = _page(workspace, call, wanted=wanted, leaving=leaving, download=download)
    return show(call, page)


@ROUTER.get("/golden/{name}/exchange/file")
def download(call: AReader, name: str, wanted: Asked) -> Response:
    """Download the golden set, or an edition of it, as a file for another tool."""
    workspace = opened(call.site, name)
    try:
        return file_response(lambda folder: (exported(workspace, wanted, folder)[0], {}))
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(workspace, call, wanted=wanted, wrong_out=wrong), status)


@ROUTER.post("/golden/{name}/exchange")
def upload(
    call: AnEngineer,
    name: str,
    file: Annotated[UploadFile | None, File()] = None,
    name_of_format: Annotated[str, Form()] = "",
    rater: Annotated[str, Form()] = "",
    source: Annotated[str, Form()] = "",
) -> Response:
    """Import a whole file or nothing; report what was kept, assumed and lost."""
    workspace, filename = opened(call.site, name), None
    try:
        with uploaded(file) as (path, filename):
            imported = import_upload(
                workspace,
                path,
                filename,
                **call.by,
                format=name_of_format.strip(),
                rater=rater.strip(),
                sources=sources_of([source] if source else ()),
            )
    except KaratError as error:
        status, wrong = refused(error)
        typed = {"name_of_format": name_of_format, "rater": rater, "source": source}
        page = _page(workspace, call, file=filename, wrong_in=wrong, typed=typed)
        return show(call, page, status)
    return show(call, _page(workspace, call, file=filename, taken=imported))


def exported(workspace: Workspace, wanted: Wanted, folder: Path) -> tuple[Path, Exchange]:
    """Export to one file in an empty folder; several files become a ZIP file."""
    stem = file_name(f"{workspace.golden.name}-{wanted.edition or 'now'}")
    ending = _ENDINGS.get(wanted.to, ".csv" if wanted.to.endswith("csv") else ".json")
    path = folder / (stem if wanted.to == "beir" else f"{stem}{ending}")
    outcome = export_golden_set(
        workspace,
        path,
        wanted.to,
        edition=wanted.edition or None,
        each_rater=wanted.each_rater,
        runs=wanted.runs,
    )
    if path.is_dir():
        path = Path(shutil.make_archive(str(folder / stem), "zip", folder, stem))
    return path, outcome


def _page(workspace: Workspace, call: Call, **more: Any) -> Page:
    name = workspace.golden.name
    frame = imports_in(workspace).with_columns(
        pl.col("file").str.split("/").list.last().alias("file")  # without the folder
    )
    columns = (
        Column("file", "File"),
        Column("format", "Format"),
        Column("time_us", "When", "time"),
    )
    return golden_page(
        "exchange.html.j2",
        name,
        f"Import and export of {name}",
        read=list(READ.items()),
        written=list(WRITTEN.items()),
        editions=[row.name for row in reversed(list_editions(workspace))],
        runs=stored_run_names(workspace),
        imports=listed(frame, columns, call.ask, search=["file"]),
        not_in_json={"typed": more.pop("typed", {})},
        **dict.fromkeys(("file", "taken", "leaving", "download", "wrong_in", "wrong_out"))
        | {"wanted": Wanted(), **more},
    )
