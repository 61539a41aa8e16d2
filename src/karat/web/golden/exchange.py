"""Exchange: files of karat's formats and of other tools into a golden set, and out of it."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import quote, urlencode

import polars as pl
from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from karat.errors import KaratError, on_page
from karat.formats.exchange.catalogue import EXCHANGES
from karat.tables.golden.exchange import Exchange
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import Said, refused
from karat.web.framework.lists import Ask, Column, Listed, listed
from karat.web.framework.pages import show
from karat.web.framework.state import TheState
from karat.web.framework.uploads import uploaded
from karat.web.golden.golden_sets import GoldenPage, crumbs, opened
from karat.workflows.golden.audited import file_name, take_upload
from karat.workflows.golden.editions import list_editions
from karat.workflows.golden.export import export_golden_set
from karat.workflows.golden.import_ import TakenIn
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
"""What is read from an upload, and what can be downloaded: names and what they are."""
_ENDINGS = {"trec": ".qrels", "beir": ".zip", "quepid-ltr": ".txt"}


@dataclass(frozen=True)
class Wanted:
    """What is to be exported.

    Attributes:
        to: Name of the format.
        edition: Name of the edition; empty for the golden set as it stands.
        each_rater: Whether every rater's judgment is wanted, not the grade of all.
        runs: Names of kept runs, for a format that holds runs.
    """

    to: str = "beir"
    edition: str = ""
    each_rater: bool = False
    runs: Sequence[str] = ()


def _wanted(
    to: str = "beir",
    edition: str = "",
    each_rater: bool = False,
    run: Annotated[list[str] | None, Query()] = None,
) -> Wanted:
    """What an address says is to be exported."""
    return Wanted(to, edition, each_rater, run or ())


Asked = Annotated[Wanted, Depends(_wanted)]
"""A parameter of a route; its list does not take what the address says of it for its own."""


@dataclass(frozen=True, kw_only=True)
class ExchangePage(GoldenPage):
    """Files in and out.

    Attributes:
        read: Formats that are read: name and what it is.
        written: Formats that are written, likewise.
        editions: Names of the editions, the newest first.
        runs: Names of the kept runs.
        wanted: What the form of the export says.
        file: What the file that was sent is called; None if none was.
        taken: What became of it; None if none was taken in.
        leaving: What an export would keep, assume and lose; None if nobody asked.
        download: Where that export is downloaded from, without the base path.
        wrong_in: Why a file was not taken in; None if nothing went wrong.
        typed: What was typed into the form of the import that was refused: ``name_of_format``,
            ``rater`` and ``source``.
        wrong_out: Why nothing was exported, likewise.
        imports: Files that were taken in before, the newest first.
    """

    template: ClassVar[str] = "exchange.html.j2"
    tab: ClassVar[str] = "exchange"
    read: Sequence[tuple[str, str]]
    written: Sequence[tuple[str, str]]
    editions: Sequence[str]
    runs: Sequence[str]
    wanted: Wanted
    file: str | None = None
    taken: TakenIn | None = None
    leaving: Exchange | None = None
    download: str | None = None
    wrong_in: Said | None = None
    wrong_out: Said | None = None
    typed: Mapping[str, str] = field(default_factory=dict, repr=False)
    imports: Listed


@ROUTER.get("/golden/{name}/exchange")
def exchange(
    request: Request, site: TheState, _asking: AReader, name: str, wanted: Asked
) -> Response:
    """Show the forms; with ``?to=`` what such an export would keep, assume and lose."""
    found = opened(site, name)
    if "to" not in request.query_params:
        return show(request, _page(found, request, wanted=wanted))
    try:
        with exported(found, wanted) as (_, made):
            leaving = replace(made, lost=[on_page(each) for each in made.lost])
    except KaratError as error:
        status, wrong = refused(error)
        return show(request, _page(found, request, wanted=wanted, wrong_out=wrong), status)
    asked = {"to": wanted.to, "edition": wanted.edition, "run": wanted.runs}
    asked |= {"each_rater": "true"} if wanted.each_rater else {}
    query = urlencode({key: value for key, value in asked.items() if value}, doseq=True)
    download = f"/golden/{quote(name, safe='')}/exchange/file?{query}"
    page = _page(found, request, wanted=wanted, leaving=leaving, download=download)
    return show(request, page)


@ROUTER.get("/golden/{name}/exchange/file")
def download(
    request: Request, site: TheState, _asking: AReader, name: str, wanted: Asked
) -> Response:
    """The golden set, or an edition of it, as a file for another tool."""
    found = opened(site, name)
    folder = tempfile.mkdtemp(prefix="karat-")
    try:
        with exported(found, wanted) as (made, _):
            kept = Path(folder) / made.name
            shutil.move(made, kept)
    except KaratError as error:
        shutil.rmtree(folder, ignore_errors=True)
        status, wrong = refused(error)
        return show(request, _page(found, request, wanted=wanted, wrong_out=wrong), status)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    gone = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    kind = "application/octet-stream"  # whatever it holds, no browser is to run or show it
    return FileResponse(kept, media_type=kind, filename=kept.name, background=gone)


@ROUTER.post("/golden/{name}/exchange")
def upload(
    request: Request,
    site: TheState,
    asking: AnEngineer,
    name: str,
    file: Annotated[UploadFile | None, File()] = None,
    name_of_format: Annotated[str, Form()] = "",
    rater: Annotated[str, Form()] = "",
    source: Annotated[str, Form()] = "",
) -> Response:
    """Take a file in, all of it or nothing, and say what was kept, assumed and lost."""
    found, called = opened(site, name), None
    try:
        with uploaded(file) as (where, called):
            taken = take_upload(
                found,
                where,
                called,
                person=asking.person.name,
                now=site.clock(),
                format=name_of_format.strip(),
                rater=rater.strip(),
                sources=sources_of([source] if source else ()),
            )
    except KaratError as error:
        status, wrong = refused(error)
        typed = {"name_of_format": name_of_format, "rater": rater, "source": source}
        page = _page(found, request, file=called, wrong_in=wrong, typed=typed)
        return show(request, page, status)
    return show(request, _page(found, request, file=called, taken=taken))


@contextmanager
def exported(found: Workspace, wanted: Wanted) -> Iterator[tuple[Path, Exchange]]:
    """An export as one file, which is gone afterwards; of a folder a ZIP file."""
    with tempfile.TemporaryDirectory(prefix="karat-") as folder:
        stem = file_name(f"{found.golden.name}-{wanted.edition or 'now'}")
        ending = _ENDINGS.get(wanted.to, ".csv" if wanted.to.endswith("csv") else ".json")
        where = Path(folder) / (stem if wanted.to == "beir" else f"{stem}{ending}")
        leaving = export_golden_set(
            found,
            where,
            wanted.to,
            edition=wanted.edition or None,
            each_rater=wanted.each_rater,
            runs=wanted.runs,
        )
        if where.is_dir():
            packed = Path(folder) / f"{stem}.zip"
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for each in sorted(where.rglob("*")):
                    archive.write(each, f"{stem}/{each.relative_to(where).as_posix()}")
            where = packed
        yield where, leaving


def _page(
    found: Workspace,
    request: Request,
    *,
    wanted: Wanted | None = None,
    file: str | None = None,
    taken: TakenIn | None = None,
    leaving: Exchange | None = None,
    download: str | None = None,
    wrong_in: Said | None = None,
    wrong_out: Said | None = None,
    typed: Mapping[str, str] | None = None,
) -> ExchangePage:
    name = found.golden.name
    frame = imports_in(found).with_columns(
        pl.col("file").str.split("/").list.last().alias("file")  # not where it once lay
    )
    columns = (
        Column("file", "File"),
        Column("format", "Format"),
        Column("time_us", "When", "time"),
    )
    return ExchangePage(
        title=f"Import and export of {name}",
        crumbs=crumbs(name),
        golden=name,
        read=list(READ.items()),
        written=list(WRITTEN.items()),
        editions=[row.name for row in reversed(list_editions(found))],
        runs=stored_run_names(found),
        wanted=wanted or Wanted(),
        file=file,
        taken=taken,
        leaving=leaving,
        download=download,
        wrong_in=wrong_in,
        wrong_out=wrong_out,
        typed=typed or {},
        imports=listed(frame, columns, Ask.of(request), search=["file"]),
    )
