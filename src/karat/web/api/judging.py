"""Judging by the API: one card at a time, with the rules of the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from karat.golden.queue import Progress
from karat.tables.golden.machine_judges import JudgeReport, JudgeState
from karat.web.api.bodies import Body, RequestBody
from karat.web.api.models import many, one, picked
from karat.web.api.responses import Paged, Several, TheGolden, json_response
from karat.web.framework.auth import AnEngineer, ARater, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import or_not_found
from karat.web.judging.cards import Answer, EntryPoint, grades_of, lease_card
from karat.workflows.judging.doubts import Doubts
from karat.workflows.judging.machine_grades import doubts_stored, judge_in, judges_in
from karat.workflows.judging.queue import Card as LeasedCard
from karat.workflows.judging.queue import Judging, Vote
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter(prefix="/api", tags=["judging"])
_DOOR = EntryPoint(
    no_answer="send a grade, or the reason in cannot",
    no_ticket="send the ticket back unchanged, for the same golden set and the same adjudicate",
)


class Desk(RequestBody):
    """Which queue to judge."""

    adjudicate: bool = False  # adjudicate disagreements instead of rating pairs


class Judgment(Desk):
    """A judgment of a card."""

    # Ticket of the card; a judgment sent twice counts once
    ticket: str = Field(min_length=1, max_length=4000)
    grade: float | None = None  # the grade; null if the pair cannot be judged
    # Why it cannot be judged: `query_unclear`, `document_empty`, `language`, `needs_expert` or
    # `other`, which requires a `reason`
    cannot: str = Field("", max_length=200)
    reason: str = ""  # an explanation
    seconds: float | None = Field(None, ge=0, le=86_400)  # time taken


class Later(Desk):
    """A card to postpone."""

    ticket: str = Field(min_length=1, max_length=4000)  # ticket of the card


class Undo(Desk):
    """A judgment to undo."""

    # Its number, so that sending this twice undoes one judgment; null for the newest
    newest: Annotated[int, Field(ge=0, lt=2**63)] | None = None


@dataclass(frozen=True)
class JudgingQueue:
    """A queue of the caller."""

    golden: str  # name of the golden set
    rater: str
    done: int  # judgments given
    left: int  # judgments left
    later: int  # of these, postponed ones
    disagreements: int  # disagreements left to adjudicate


@dataclass(frozen=True)
class RaterProgress(Progress):
    """Progress of the caller."""

    newest: int | None  # number of the judgment that undo would undo; None without one
    text: str  # the progress in words


@dataclass(frozen=True)
class Card:
    """A card, with only what a rater may see."""

    ticket: str  # to send back
    query_id: str
    query: str  # text of the query
    need: str | None  # the information need; None if unknown
    doc_id: str
    title: str  # title of the document
    text: str  # its text
    url: str | None  # its address; None if unknown
    image: str | None  # address of its image; None without one
    more: dict[str, str]  # attributes that a rater may see
    votes: Sequence[Vote]  # in adjudication, the judgments of the raters: `grade` and `reason`
    grades: list[float]  # grades of the scale
    guideline: str  # its text
    leased_until_us: int  # when the lease ends, microseconds UTC


@dataclass(frozen=True)
class Claimed:
    """The next card."""

    card: Card | None  # none if the queue is empty


@dataclass(frozen=True)
class Submitted:
    """A recorded judgment."""

    judgment: int  # its number; it is stored


@dataclass(frozen=True)
class Postponed:
    """A postponed card."""

    later: bool = True


@dataclass(frozen=True)
class UndoneJudgment:
    """The outcome of undoing a judgment."""

    undone: bool  # whether there was one
    grade: float | None = None  # its grade; None if there was none, or it could not be judged
    reason: str | None = None  # its reason; None likewise
    card: Card | None = None  # its card, leased again; None if there was none


@ROUTER.get("/judge", response_model=many(JudgingQueue))
def waiting(call: ARater, page: Paged) -> Response:
    """List the queues of the caller."""
    rater = call.who
    queues = []
    for row in call.site.golden_sets():
        workspace = call.site.opened(row.name)
        progress = Judging(workspace, rater, call.site.clock).far()
        disagreements = Judging(workspace, rater, call.site.clock, adjudicate=True).far()
        more = {"golden": row.name, "rater": rater, "disagreements": disagreements.left}
        queues.append(picked(JudgingQueue, progress, **more))
    return page.items(queues)


@ROUTER.get("/judge/{golden}/progress", response_model=one(RaterProgress))
def progress(
    call: ARater,
    workspace: TheGolden,
    adjudicate: bool = False,  # Progress with disagreements.
) -> Response:
    """Progress of the caller."""
    judging = _judging(call, workspace, adjudicate=adjudicate)
    more = {"newest": judging.newest(), "text": judging.progress()}
    return json_response(picked(RaterProgress, judging.far(), **more))


@ROUTER.post("/judge/{golden}/claim", response_model=one(Claimed))
def claim(
    call: ARater, workspace: TheGolden, body: Annotated[Desk, Depends(Body(Desk, required=False))]
) -> Response:
    """The next card; the same one until it is judged or postponed, or its lease expires."""
    judging = _judging(call, workspace, adjudicate=body.adjudicate)
    return json_response(Claimed(_card(call, judging, judging.card())))


@ROUTER.post("/judge/{golden}/submit", response_model=one(Submitted))
def submit(
    call: ARater, workspace: TheGolden, body: Annotated[Judgment, Depends(Body(Judgment))]
) -> Response:
    """Record a judgment; 409 if the lease expired and another rater has the pair."""
    judging = _judging(call, workspace, adjudicate=body.adjudicate)
    answer = Answer(body.grade, body.cannot, body.reason, body.seconds, body.ticket)
    return json_response(Submitted(_DOOR.record(judging, answer)))


@ROUTER.post("/judge/{golden}/later", response_model=one(Postponed))
def later(
    call: ARater, workspace: TheGolden, body: Annotated[Later, Depends(Body(Later))]
) -> Response:
    """Postpone a card for an hour."""
    judging = _judging(call, workspace, adjudicate=body.adjudicate)
    judging.later(_DOOR.ticket(judging, body.ticket).slot)
    return json_response(Postponed())


@ROUTER.post("/judge/{golden}/undo", response_model=one(UndoneJudgment))
def undo(
    call: ARater, workspace: TheGolden, body: Annotated[Undo, Depends(Body(Undo, required=False))]
) -> Response:
    """Undo the newest judgment."""
    judging = _judging(call, workspace, adjudicate=body.adjudicate)
    undone = judging.undo(body.newest)
    if undone is None:
        return json_response(UndoneJudgment(undone=False))
    card = _card(call, judging, undone.card)
    return json_response(
        UndoneJudgment(undone=True, grade=undone.grade, reason=undone.reason, card=card)
    )


def _judging(call: Call, workspace: Workspace, *, adjudicate: bool) -> Judging:
    return Judging(workspace, call.who, call.site.clock, adjudicate=adjudicate)


def _card(call: Call, judging: Judging, card: LeasedCard | None) -> Card | None:
    if card is None:
        return None
    claim, golden = card.claim, judging.opened.golden
    shown = lease_card(card, judging, f"{call.request.url.scheme}://{call.request.url.netloc}")
    return picked(
        Card,
        shown,
        query_id=claim.query_id,
        doc_id=claim.doc_id,
        title="".join(text for text, _ in shown.title),
        text="".join(text for text, _ in (*shown.body, *shown.rest)),
        url=shown.address,
        more=dict(shown.more),
        grades=[grade.value for grade in grades_of(golden)],
        guideline=claim.guideline_text,
        leased_until_us=claim.leased_until_us,
    )


@ROUTER.get("/judges", response_model=many(JudgeState))
def machine_judges(call: AReader, page: Paged) -> Response:
    """List the machine judges that karat.toml declares."""
    return page.items(judges_in(call.site.workspace, now=call.now))


@ROUTER.get("/judges/{judge}", response_model=one(JudgeReport))
def machine_judge(call: AReader, judge: str) -> Response:
    """One machine judge: its passport, what it may grade, and its last run."""
    with or_not_found():
        return json_response(judge_in(call.site.workspace, judge, now=call.now))


@ROUTER.get("/golden/{golden}/doubts", response_model=one(Doubts))
def doubts(
    call: AReader,
    workspace: TheGolden,
    judge: Annotated[list[str], Query()],  # A judge of karat.toml; repeatable.
    run: Several = None,  # A stored run whose mean is to be known; of two, the difference.
    measure: str = "DCG@10",  # The measure of the runs: P@k, DCG@k or RBP.
    budget: Annotated[int, Query(ge=1, lt=2**31)] = 50,  # Number of pairs to draw.
) -> Response:
    """Pairs that people should look at next to what machine judges graded."""
    how: dict[str, Any] = {"now": call.now, "measure": measure, "budget": budget}
    return json_response(doubts_stored(workspace, judge, run or (), **how), without=["chances"])


class DoubtsRequest(RequestBody):
    """Pairs to draw, and to put into the queue."""

    judges: list[str] = Field(min_length=1, max_length=1000)  # judges of karat.toml
    runs: list[int | str] = Field([], max_length=2)  # stored runs, by name or number
    measure: str = "DCG@10"  # the measure of the runs: P@k, DCG@k or RBP
    budget: int = Field(50, ge=1, lt=2**31)  # number of pairs to draw


@ROUTER.post("/golden/{golden}/doubts/queue", response_model=one(Doubts))
def queue_doubts(
    call: AnEngineer,
    workspace: TheGolden,
    body: Annotated[DoubtsRequest, Depends(Body(DoubtsRequest))],
) -> Response:
    """Put such pairs into the queue, each with its chance."""
    found = doubts_stored(workspace, **body.model_dump(), **call.by, queue=True)
    return json_response(found, without=["chances"])
