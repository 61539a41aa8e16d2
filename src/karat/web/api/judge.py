"""Judging by programs: one card at a time, by the same rules as in the browser."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from karat.web.api.bodies import Body, Said
from karat.web.api.responses import Paged, said
from karat.web.framework.auth import ARater, Principal
from karat.web.framework.state import AppState, TheState
from karat.web.golden.golden_sets import opened
from karat.web.judging.cards import Door, dealt, grades_of
from karat.workflows.judging.queue import Card, Judging

ROUTER = APIRouter(prefix="/api", tags=["judging"])
CARD = (
    "`ticket` (send it back), `query_id`, `query`, `need`, `doc_id`, `title`, "
    "`text`, `url`, `image`, `more` (attributes a rater may see), `votes` (of an adjudication: "
    "`grade`, `reason`), `grades` (of the scale), `guideline` (its text), `leased_until_us`"
)
_DOOR = Door(
    no_answer="give a grade, or say in cannot why there is none",
    no_ticket="send the ticket back as it came, for the same golden set and desk",
)


class Desk(Said):
    """At which desk somebody judges.

    Attributes:
        adjudicate: Whether disagreements are settled, rather than pairs rated.
    """

    adjudicate: bool = False


class Judgment(Desk):
    """A judgment of a card.

    Attributes:
        ticket: Of the card, as it came; sent twice, a judgment counts once.
        grade: The grade; null if it cannot be judged.
        cannot: Why it cannot be judged: `query_unclear`, `document_empty`, `language`,
            `needs_expert` or `other`, which takes a reason in words.
        reason: In words.
        seconds: How long it took.
    """

    ticket: str = Field(min_length=1, max_length=4000)
    grade: float | None = None
    cannot: str = Field("", max_length=200)
    reason: str = ""
    seconds: float | None = Field(None, ge=0, le=86_400)


class Later(Desk):
    """A card that is put off.

    Attributes:
        ticket: Of the card, as it came.
    """

    ticket: str = Field(min_length=1, max_length=4000)


class Undo(Desk):
    """A judgment to take back.

    Attributes:
        newest: Its number, so that what is sent twice takes one back; null for whichever it is.
    """

    newest: Annotated[int, Field(ge=0, lt=2**63)] | None = None


@ROUTER.get(
    "/judge",
    response_description="List of `golden`, `rater`, `done`, `left`, `later`, `disagreements`.",
)
def waiting(site: TheState, asking: ARater, page: Paged) -> Response:
    """List what waits for whoever asks."""
    rows = []
    for row in site.golden_sets():
        found = site.opened(row.name)
        who = asking.person.name
        far = Judging(found, who, site.clock).far()
        apart = Judging(found, who, site.clock, adjudicate=True).far()
        rows.append(
            {
                "golden": row.name,
                "rater": who,
                "done": far.done,
                "left": far.left,
                "later": far.later,
                "disagreements": apart.left,
            }
        )
    return page.over(rows)


@ROUTER.get(
    "/judge/{golden}/progress",
    response_description="`done`, `left`, `total`, `later`, `seconds` (of the newest judgments), "
    "`newest` (number of the judgment that an undo takes back, or null), `text`.",
)
def progress(
    site: TheState,
    asking: ARater,
    golden: str,
    adjudicate: Annotated[bool, Query(description="Of disagreements.")] = False,
) -> Response:
    """Say how far whoever asks is."""
    judging = _judging(site, asking, golden, adjudicate=adjudicate)
    return said({**vars(judging.far()), "newest": judging.newest(), "text": judging.progress()})


@ROUTER.post("/judge/{golden}/claim", response_description=f"`card`, null if nothing waits: {CARD}")
def claim(
    request: Request,
    site: TheState,
    asking: ARater,
    golden: str,
    asked: Annotated[Desk, Depends(Body(Desk, required=False))],
) -> Response:
    """The next card; the same again until it is dealt with, for as long as its lease goes."""
    judging = _judging(site, asking, golden, adjudicate=asked.adjudicate)
    return said({"card": _card(request, judging, judging.card())})


@ROUTER.post(
    "/judge/{golden}/submit",
    response_description="`judgment`: its number; it is in the store.",
)
def submit(
    site: TheState,
    asking: ARater,
    golden: str,
    given: Annotated[Judgment, Depends(Body(Judgment))],
) -> Response:
    """Record a judgment; 409 if the lease ran out and another has the pair."""
    judging = _judging(site, asking, golden, adjudicate=given.adjudicate)
    number = _DOOR.record(judging, given)
    return said({"judgment": number})


@ROUTER.post("/judge/{golden}/later", response_description="`later`: true.")
def later(
    site: TheState, asking: ARater, golden: str, asked: Annotated[Later, Depends(Body(Later))]
) -> Response:
    """Put a card off for an hour."""
    judging = _judging(site, asking, golden, adjudicate=asked.adjudicate)
    judging.put_off(_DOOR.ticket(judging, asked.ticket).slot)
    return said({"later": True})


@ROUTER.post(
    "/judge/{golden}/undo",
    response_description="`undone` (whether there was one), and then `grade` and `reason` as they "
    "were, and `card`.",
)
def undo(
    request: Request,
    site: TheState,
    asking: ARater,
    golden: str,
    asked: Annotated[Undo, Depends(Body(Undo, required=False))],
) -> Response:
    """Take the newest judgment back."""
    judging = _judging(site, asking, golden, adjudicate=asked.adjudicate)
    taken = judging.take_back(asked.newest)
    if taken is None:
        return said({"undone": False, "grade": None, "reason": None, "card": None})
    card = _card(request, judging, taken.card)
    return said({"undone": True, "grade": taken.grade, "reason": taken.reason, "card": card})


def _judging(site: AppState, asking: Principal, golden: str, *, adjudicate: bool) -> Judging:
    return Judging(opened(site, golden), asking.person.name, site.clock, adjudicate=adjudicate)


def _card(request: Request, judging: Judging, card: Card | None) -> dict[str, Any] | None:
    """A card with what a rater may know, and no more."""
    if card is None:
        return None
    claim, golden = card.claim, judging.opened.golden
    on_it = dealt(card, judging, f"{request.url.scheme}://{request.url.netloc}")
    return {
        "ticket": on_it.ticket,
        "query_id": claim.query_id,
        "query": on_it.query,
        "need": on_it.need,
        "doc_id": claim.doc_id,
        "title": "".join(text for text, _ in on_it.title),
        "text": "".join(text for text, _ in (*on_it.body, *on_it.rest)),
        "url": on_it.address,
        "image": on_it.image,
        "more": dict(on_it.more),
        "votes": on_it.votes,
        "grades": [each.value for each in grades_of(golden)],
        "guideline": claim.guideline_text,
        "leased_until_us": claim.leased_until_us,
    }
