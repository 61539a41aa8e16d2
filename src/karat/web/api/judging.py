"""Judging by the API: one card at a time, with the rules of the browser."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from karat.web.api.bodies import Body, RequestBody
from karat.web.api.responses import Paged, json_response
from karat.web.framework.auth import ARater, Principal
from karat.web.framework.state import AppState, TheState
from karat.web.golden.golden_sets import opened
from karat.web.judging.cards import EntryPoint, grades_of, lease_card
from karat.workflows.judging.queue import Card, Judging

ROUTER = APIRouter(prefix="/api", tags=["judging"])
CARD = (
    "`ticket` (to send back), `query_id`, `query`, `need`, `doc_id`, `title`, "
    "`text`, `url`, `image`, `more` (attributes a rater may see), `votes` (in adjudication: "
    "`grade`, `reason`), `grades` (of the scale), `guideline` (its text), `leased_until_us`"
)
_DOOR = EntryPoint(
    no_answer="send a grade, or the reason in cannot",
    no_ticket="send the ticket back unchanged, for the same golden set and the same adjudicate",
)


class Desk(RequestBody):
    """Which queue to judge.

    Attributes:
        adjudicate: Adjudicate disagreements instead of rating pairs.
    """

    adjudicate: bool = False


class Judgment(Desk):
    """A judgment of a card.

    Attributes:
        ticket: Ticket of the card; a judgment sent twice counts once.
        grade: The grade; null if the pair cannot be judged.
        cannot: Why it cannot be judged: `query_unclear`, `document_empty`, `language`,
            `needs_expert` or `other`, which requires a `reason`.
        reason: An explanation.
        seconds: Time taken.
    """

    ticket: str = Field(min_length=1, max_length=4000)
    grade: float | None = None
    cannot: str = Field("", max_length=200)
    reason: str = ""
    seconds: float | None = Field(None, ge=0, le=86_400)


class Later(Desk):
    """A card to postpone.

    Attributes:
        ticket: Ticket of the card.
    """

    ticket: str = Field(min_length=1, max_length=4000)


class Undo(Desk):
    """A judgment to undo.

    Attributes:
        newest: Its number, so that sending this twice undoes one judgment; null for the newest.
    """

    newest: Annotated[int, Field(ge=0, lt=2**63)] | None = None


@ROUTER.get(
    "/judge",
    response_description="List of `golden`, `rater`, `done`, `left`, `later`, `disagreements`.",
)
def waiting(site: TheState, principal: ARater, page: Paged) -> Response:
    """List the queues of the caller."""
    rows = []
    for row in site.golden_sets():
        workspace = site.opened(row.name)
        rater = principal.person.name
        progress = Judging(workspace, rater, site.clock).far()
        disagreements = Judging(workspace, rater, site.clock, adjudicate=True).far()
        rows.append(
            {
                "golden": row.name,
                "rater": rater,
                "done": progress.done,
                "left": progress.left,
                "later": progress.later,
                "disagreements": disagreements.left,
            }
        )
    return page.items(rows)


@ROUTER.get(
    "/judge/{golden}/progress",
    response_description="`done`, `left`, `total`, `later`, `seconds` (of the newest judgments), "
    "`newest` (number of the judgment that undo would undo, or null), `text`.",
)
def progress(
    site: TheState,
    principal: ARater,
    golden: str,
    adjudicate: Annotated[bool, Query(description="Progress with disagreements.")] = False,
) -> Response:
    """Progress of the caller."""
    judging = _judging(site, principal, golden, adjudicate=adjudicate)
    status = vars(judging.far()) | {"newest": judging.newest(), "text": judging.progress()}
    return json_response(status)


@ROUTER.post(
    "/judge/{golden}/claim", response_description=f"`card`, null if the queue is empty: {CARD}"
)
def claim(
    request: Request,
    site: TheState,
    principal: ARater,
    golden: str,
    body: Annotated[Desk, Depends(Body(Desk, required=False))],
) -> Response:
    """The next card; the same one until it is judged or postponed, or its lease expires."""
    judging = _judging(site, principal, golden, adjudicate=body.adjudicate)
    return json_response({"card": _card(request, judging, judging.card())})


@ROUTER.post(
    "/judge/{golden}/submit",
    response_description="`judgment`: its number; it is stored.",
)
def submit(
    site: TheState,
    principal: ARater,
    golden: str,
    body: Annotated[Judgment, Depends(Body(Judgment))],
) -> Response:
    """Record a judgment; 409 if the lease expired and another rater has the pair."""
    judging = _judging(site, principal, golden, adjudicate=body.adjudicate)
    number = _DOOR.record(judging, body)
    return json_response({"judgment": number})


@ROUTER.post("/judge/{golden}/later", response_description="`later`: true.")
def later(
    site: TheState, principal: ARater, golden: str, body: Annotated[Later, Depends(Body(Later))]
) -> Response:
    """Postpone a card for an hour."""
    judging = _judging(site, principal, golden, adjudicate=body.adjudicate)
    judging.snooze(_DOOR.ticket(judging, body.ticket).slot)
    return json_response({"later": True})


@ROUTER.post(
    "/judge/{golden}/undo",
    response_description="`undone` (whether there was one), and if so its `grade` and `reason`, "
    "and `card`.",
)
def undo(
    request: Request,
    site: TheState,
    principal: ARater,
    golden: str,
    body: Annotated[Undo, Depends(Body(Undo, required=False))],
) -> Response:
    """Undo the newest judgment."""
    judging = _judging(site, principal, golden, adjudicate=body.adjudicate)
    undone = judging.take_back(body.newest)
    if undone is None:
        return json_response({"undone": False, "grade": None, "reason": None, "card": None})
    card = _card(request, judging, undone.card)
    return json_response(
        {"undone": True, "grade": undone.grade, "reason": undone.reason, "card": card}
    )


def _judging(site: AppState, principal: Principal, golden: str, *, adjudicate: bool) -> Judging:
    return Judging(opened(site, golden), principal.person.name, site.clock, adjudicate=adjudicate)


def _card(request: Request, judging: Judging, card: Card | None) -> dict[str, Any] | None:
    """A card, with only what a rater may see."""
    if card is None:
        return None
    claim, golden = card.claim, judging.opened.golden
    shown = lease_card(card, judging, f"{request.url.scheme}://{request.url.netloc}")
    return {
        "ticket": shown.ticket,
        "query_id": claim.query_id,
        "query": shown.query,
        "need": shown.need,
        "doc_id": claim.doc_id,
        "title": "".join(text for text, _ in shown.title),
        "text": "".join(text for text, _ in (*shown.body, *shown.rest)),
        "url": shown.address,
        "image": shown.image,
        "more": dict(shown.more),
        "votes": shown.votes,
        "grades": [grade.value for grade in grades_of(golden)],
        "guideline": claim.guideline_text,
        "leased_until_us": claim.leased_until_us,
    }
