"""Home: what needs attention across golden sets, and where things stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from karat.reports.figures import counted
from karat.web.access import ARater
from karat.web.golden import address, place
from karat.web.page import Page, show
from karat.web.site import Site, TheSite
from karat.workflows.golden_status import Status, status

ROUTER = APIRouter()


@dataclass(frozen=True)
class Attention:
    """Something to do.

    Attributes:
        what: In words, with its number.
        where: The page on which it is done, without the base path.
        of: Name of the golden set, or whatever else it belongs to; None if to nothing.
    """

    what: str
    where: str
    of: str | None = None


@dataclass(frozen=True, kw_only=True)
class HomePage(Page):
    """Where things stand.

    Attributes:
        attention: What to do, the most urgent first.
        golden: Each golden set.
    """

    template: ClassVar[str] = "home.html.j2"
    section: ClassVar[str] = "home"
    attention: Sequence[Attention]
    golden: Sequence[Status]


Watch = Callable[[Site, Sequence[Status]], Iterable[Attention]]
"""Looks for what needs attention: the site, and where each golden set stands."""


def to_settle(_site: Site, found: Sequence[Status]) -> Iterable[Attention]:
    """Disagreements, adjudications, and imported grades that raters contradict."""
    for each in found:
        here = address(each.name, "disagreements")
        if each.disagreements:
            said = counted(each.disagreements, "disagreement", "disagreements")
            yield Attention(f"{said} to put before an adjudicator", here, each.name)
        if each.adjudications:
            said = counted(each.adjudications, "disagreement", "disagreements")
            where = place(each.name, "karat judge --adjudicate")
            yield Attention(f"{said} for an adjudicator to settle", where, each.name)
        if each.contradictions:
            said = counted(each.contradictions, "imported grade", "imported grades")
            where = address(each.name, "disagreements", between="import")
            yield Attention(f"{said} contradicted by raters", where, each.name)


def gone_stale(_site: Site, found: Sequence[Status]) -> Iterable[Attention]:
    """Judgments of documents whose text changed since."""
    for each in found:
        if each.stale:
            said = counted(each.stale, "judgment", "judgments")
            where = address(each.name, "judgments", stale="yes")
            yield Attention(f"{said} of documents that changed since", where, each.name)


def to_judge(_site: Site, found: Sequence[Status]) -> Iterable[Attention]:
    """Judgments that the queues wait for."""
    for each in found:
        if each.waiting:
            said = counted(each.waiting, "judgment", "judgments")
            yield Attention(f"{said} to give", place(each.name, "karat judge"), each.name)


def to_begin_or_freeze(_site: Site, found: Sequence[Status]) -> Iterable[Attention]:
    """What a golden set lacks before it can be used: queries, pairs, an edition."""
    for each in found:
        for what, command in each.todo:
            if command.startswith(("karat golden choose", "karat golden pool")):
                yield Attention(what[:1].upper() + what[1:], place(each.name, command), each.name)
            elif command.startswith("karat golden freeze"):
                new = "something is new since the newest edition" if each.edition else "no edition"
                said = f"Freeze what is judged: {new}" + ("" if each.edition else " yet")
                yield Attention(said, place(each.name, command), each.name)


WATCHES: list[Watch] = [to_settle, gone_stale, to_judge, to_begin_or_freeze]
"""Who looks, in the order of what is most urgent; other pages add theirs here."""


@ROUTER.get("/")
def home(request: Request, site: TheSite, asking: ARater) -> Response:
    """The first page; a rater's is the judging page."""
    if asking.person.role == "rater":
        return RedirectResponse(f"{site.settings.base}/judge", 303)
    found = [status(site.opened(row.name), now=site.clock()) for row in site.golden_sets()]
    attention = [each for watch in WATCHES for each in watch(site, found)]
    return show(request, HomePage(title="Home", attention=attention, golden=found))
