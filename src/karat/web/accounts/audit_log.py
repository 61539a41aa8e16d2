"""The audit log, for owners; rows are only ever added."""

from __future__ import annotations

import polars as pl
from fastapi import APIRouter, Response

from karat.reports.table import Column
from karat.web.framework.auth import AnOwner
from karat.web.framework.lists import listed
from karat.web.framework.pages import PlainPage, show

ROUTER = APIRouter()
_HASH = r"\b([0-9a-f]{12})[0-9a-f]{52}\b"
_COLUMNS = (
    Column("time_us", "When", "time"),
    Column("person", "User", choices=True),
    Column("action", "Action", choices=True),
    Column("subject", "Subject"),
    Column("more", "Details"),
    Column("about", "Full details", shown=False),
)


@ROUTER.get("/audit")
def audit(call: AnOwner) -> Response:
    actions = call.site.accounts.done()
    short = pl.col("about").str.replace_all(_HASH, "$1…")
    rows = listed(
        actions.with_columns(more=short),
        _COLUMNS,
        call.ask,
        search=["person", "action", "subject", "about"],
    )
    return show(call, PlainPage("audit.html.j2", "Audit log", rows=rows))
