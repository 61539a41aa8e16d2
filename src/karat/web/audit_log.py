"""Who did what: an owner's list, to which rows are only ever added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Request, Response

from karat.web.access import AnOwner
from karat.web.listing import Ask, Column, Listed, listed
from karat.web.page import Page, show
from karat.web.site import TheSite

ROUTER = APIRouter()
_COLUMNS = (
    Column("time_us", "When", "time"),
    Column("person", "Who", choices=True),
    Column("action", "Did", choices=True),
    Column("subject", "To what"),
    Column("about", "More"),
)


@dataclass(frozen=True, kw_only=True)
class AuditPage(Page):
    """Who did what.

    Attributes:
        rows: Everything that was done, the newest first.
    """

    template: ClassVar[str] = "audit.html.j2"
    section: ClassVar[str] = "audit"
    rows: Listed


@ROUTER.get("/audit")
def audit(request: Request, site: TheSite, _asking: AnOwner) -> Response:
    """Everything that people did."""
    found = listed(
        site.accounts.done(),
        _COLUMNS,
        Ask.of(request),
        search=["person", "action", "subject", "about"],
    )
    return show(request, AuditPage(title="Who did what", rows=found))
