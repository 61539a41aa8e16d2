"""The design review of a comparison: the one page to discuss before a change is released."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Response

from karat.errors import KaratError, UsageError
from karat.reports.release.review import Section, sections, title
from karat.tables.days import day_text
from karat.tables.online.watch import Watched
from karat.tables.release.review import DesignReview
from karat.tables.workspace import ComparisonRow
from karat.web.framework.auth import AReader
from karat.web.framework.call import Call
from karat.web.framework.form_values import Id
from karat.web.framework.jobs import stored_or_computed
from karat.web.framework.pages import Page, redirect, show
from karat.web.offline.stored_comparisons import axes, look
from karat.web.online.log import find_or_compute
from karat.web.online.watch import watched_of
from karat.workflows.online.log_requests import log_of, watch_of
from karat.workflows.online.slices import GOLDEN
from karat.workflows.online.watch import last_whole_day
from karat.workflows.release.stored_reviews import Reviewing

ROUTER = APIRouter()
WAIT_S = 3.0
"""Longest wait of the page for its numbers."""


@dataclass(frozen=True, kw_only=True)
class ReviewPage(Page):
    template: ClassVar[str] = "review.html.j2"
    row: ComparisonRow
    candidate: str
    candidates: Sequence[str]
    review: DesignReview | None  # None while it is computed
    sections: Sequence[Section] = field(default=(), repr=False)


@ROUTER.get("/comparisons/{comparison_id}/review")
def review_page(call: AReader, comparison_id: Id, candidate: str = "") -> Response:
    """Show what a change catches, gains, costs and risks, on one page that prints."""
    asked, pending = reviewing(call, comparison_id, candidate)
    if asked is None:
        return redirect(call, f"/comparisons/{comparison_id}")
    found = None if pending else stored_or_computed("review", asked, WAIT_S)
    row = asked.row
    page = ReviewPage(
        title=f"Review of {asked.candidate}" if found is None else title(found),
        crumbs=[("Comparisons", "/comparisons"), (row.name, f"/comparisons/{row.id}")],
        row=row,
        candidate=asked.candidate,
        candidates=axes(asked.found.comparison)[1],
        review=found,
        sections=() if found is None else list(
            sections(found, lambda query: f"/comparisons/{row.id}/queries/{quote(query, safe='')}")
        ),
    )  # fmt: skip
    return show(call, page)


def reviewing(
    call: Call, comparison_id: int, candidate: str, *, program: bool | None = None
) -> tuple[Reviewing | None, bool]:
    """What to review, None while the comparison is computed; and whether the log is still read.

    A ``program`` waits for the log.
    """
    workspace, row, found = look(call.site, comparison_id)
    if found is None:
        return None, False
    candidates = axes(found.comparison)[1]
    if candidate and candidate not in candidates:
        raise UsageError(f"the comparison has no candidate {candidate!r}", nearest=candidates)
    watched, pending = _usual(call, row, program)
    return Reviewing(workspace, row, found, candidate or candidates[0], watched), pending


def _usual(call: Call, row: ComparisonRow, program: bool | None) -> tuple[Watched | None, bool]:
    """The metrics of the latest whole day of the log, if there is one; whether it is computed."""
    names = [prefix + name for name in row.settings["by"] for prefix in ("", GOLDEN)]
    try:
        log = log_of(call.site.workspace)
        day = day_text(last_whole_day(log))
        for name in (*names, ""):
            with suppress(UsageError):  # the log does not have this attribute
                by = [name] if name else []
                asked, _ = watch_of(call.site.workspace, log, "1d", day, by)
                break
        answer = find_or_compute(call, log, asked, program=program)
    except KaratError:
        return None, False
    return (None, True) if answer is None else (watched_of(answer), False)
