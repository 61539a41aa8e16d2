"""Judging: one card at a time, each answer saved before the next card; and adjudication."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Form, Response

from karat.errors import UsageError
from karat.golden import queue
from karat.web.framework.auth import ARater, Refused
from karat.web.framework.call import Call
from karat.web.framework.errors import opened
from karat.web.framework.pages import Page, PlainPage, redirect, show
from karat.web.judging.cards import (
    Answer,
    Block,
    EntryPoint,
    Grade,
    Shown,
    Ticket,
    grades_of,
    guideline_blocks,
    lease_card,
    reasons,
)
from karat.workflows.judging.queue import Card, Judging, MachineVote, Undone
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
NOTES = {
    "lost": "Your lease on this pair expired and another rater has it now, so your answer was not "
    "recorded. Here is the next pair.",
    "overtaken": "Your answer was not recorded: you have since corrected or undone your rating of "
    "that pair, or judged another. Undo goes back to it, one pair at a time.",
    "many": f"You have put off {queue.MOST_PUT_OFF} pairs. Judge this one, or say why you cannot.",
    "gone": "There was nothing to undo.",
    "words": "“Another reason” needs a comment: write it, then choose the reason again.",
    "later": "Put off: it returns in an hour.",
    "undone": "Undone. Here is the pair again.",
}
"""Notes above a card; an address names one by its key."""
_ENTRY = EntryPoint(
    no_answer="give a grade, or say why you cannot", no_ticket="reload the page and answer again"
)
_NOT_DONE = frozenset({"lost", "overtaken", "many"})
"""Notes of answers that were not recorded: the next card has status 409."""


@dataclass(frozen=True, kw_only=True)
class JudgePage(Page):
    """One card, or the finish."""

    template: ClassVar[str] = "judge.html.j2"
    golden: str
    adjudicate: bool
    card: Shown | None
    grades: Sequence[Grade]
    reasons: Sequence[tuple[str, str, str]]
    guideline: Sequence[Block]
    version: str
    done: int
    left: int
    later: int
    minutes: int | None
    typical: float | None  # median seconds of the newest judgments; None if none was timed
    newest: int | None
    disagreements: int
    before: str | None = None
    reason: str | None = None
    note: str | None = None
    machines: Sequence[MachineVote] = ()  # what machines say of the pair that was settled last


@dataclass(frozen=True, kw_only=True)
class JudgePart(JudgePage):
    """The same without the frame of the page, for a script that inserts it."""

    template: ClassVar[str] = "judge_part.html.j2"


@dataclass(frozen=True)
class Sent(Answer):
    """What the form of a card has."""

    do: str
    newest: int | None


def _answer(
    grade: Annotated[str, Form(max_length=40)] = "",
    cannot: Annotated[str, Form(max_length=200)] = "",
    reason: Annotated[str, Form()] = "",
    seconds: Annotated[str, Form(max_length=40)] = "",
    ticket: Annotated[str, Form(max_length=4000)] = "",
    do: Annotated[str, Form(pattern="^(later|undo|)$")] = "",
    newest: Annotated[str, Form(pattern=r"^\d{0,18}$")] = "",
) -> Sent:
    took = _number(seconds)
    value = _number(grade)
    if grade.strip() and value is None:
        raise UsageError(f"{grade!r} is not a grade")
    return Sent(value, cannot, reason, took, ticket, do, int(newest) if newest else None)


@ROUTER.get("/judge")
def choose(call: ARater) -> Response:
    """List the golden sets to judge; redirect if there is only one."""
    waiting = [_waiting(call.site.opened(row.name), call) for row in call.site.golden_sets()]
    if len(waiting) == 1 and "format" not in call.request.query_params:
        only = waiting[0]
        if not (only["disagreements"] and only["left"]):
            return _go(call, only["name"], adjudicate=bool(only["disagreements"]))
    return show(call, PlainPage("judge_choose.html.j2", "Judge", waiting=waiting))


@ROUTER.get("/judge/{name}")
def card(call: ARater, name: str) -> Response:
    """Show the next pair to rate; it stays the same until answered."""
    return _shown(call, _judging(call, name))


@ROUTER.post("/judge/{name}")
def answer(call: ARater, name: str, form: Annotated[Sent, Depends(_answer)]) -> Response:
    """Record a rating, put a pair off, or undo; then show the next pair."""
    return _done(call, _judging(call, name), form)


@ROUTER.get("/judge/{name}/adjudicate")
def disagreement(call: ARater, name: str) -> Response:
    """Show the next disagreement to settle, with the anonymous votes."""
    return _shown(call, _judging(call, name, adjudicate=True))


@ROUTER.post("/judge/{name}/adjudicate")
def settle(call: ARater, name: str, form: Annotated[Sent, Depends(_answer)]) -> Response:
    """Record how a disagreement is settled; as ``answer``."""
    return _done(call, _judging(call, name, adjudicate=True), form)


def _judging(call: Call, name: str, *, adjudicate: bool = False) -> Judging:
    return Judging(opened(call.site, name), call.who, call.site.clock, adjudicate=adjudicate)


def _shown(call: Call, judging: Judging) -> Response:
    """Show the next card, which leases it: so only if the user opened the page.

    Embedded as an image or a frame, a card would be leased unseen, or the votes of a disagreement
    marked as seen. A link from another site leads to the overview, one click from the card.
    """
    destination = call.request.headers.get("sec-fetch-dest", "document")
    if destination != "document" and not (
        destination == "empty" and "x-part" in call.request.headers
    ):
        raise Refused(403, "a card can only be opened as a page")
    if call.request.headers.get("sec-fetch-site") == "cross-site":
        waiting = [_waiting(judging.opened, call)]
        return show(call, PlainPage("judge_choose.html.j2", "Judge", waiting=waiting))
    note = NOTES.get(call.request.query_params.get("note", ""))
    was = call.request.query_params.get("was")
    if was in {"cannot judge", *(f"{each.value:g}" for each in grades_of(judging.opened.golden))}:
        note = f"The previous pair was corrected from {was}."
    return show(call, _page(call, judging, judging.card(), JudgePage, note))


def _done(call: Call, judging: Judging, form: Sent) -> Response:
    """Do what the form asks, and show what comes next."""
    note, was, undone = None, None, None
    if form.do == "undo":
        undone = judging.undo(form.newest)
        note = "gone" if undone is None else "undone"
    elif form.do == "later":
        note = _put_off(judging, _ENTRY.ticket(judging, form.ticket))
    else:
        try:
            was = judging.corrected(_ENTRY.record(judging, form))
        except queue.LeaseLost as error:
            note = "overtaken" if isinstance(error, queue.Overtaken) else "lost"
        except UsageError:
            lacks_comment = form.cannot == "other" and not form.reason.strip()
            if not lacks_comment or "x-part" in call.request.headers:
                raise
            note = "words"
    # A form: redirect, so that a reload does not send it again.
    if "x-part" not in call.request.headers:
        adjudicate = judging.kind == "adjudication"
        return _go(call, judging.opened.golden.name, adjudicate=adjudicate, note=note, was=was)
    next_card = judging.card() if undone is None else undone.card
    message = NOTES[note] if note in {"gone", *_NOT_DONE} else None
    message = message if was is None else f"The previous pair was corrected from {was}."
    page = _page(call, judging, next_card, JudgePart, message, undone)
    return show(call, page, 409 if note in _NOT_DONE else 200)


def _put_off(judging: Judging, ticket: Ticket) -> str | None:
    """Put a pair off; return the note, None if the lease is gone or it was put off before."""
    try:
        judging.later(ticket.slot)
    except queue.TooManyPutOff:
        return "many"
    except UsageError:
        return None
    return "later"


def _page(
    call: Call,
    judging: Judging,
    card: Card | None,
    kind: type[JudgePage],
    note: str | None,
    undone: Undone | None = None,
) -> JudgePage:
    workspace, progress, newest = judging.opened, judging.far(), judging.newest()
    golden, adjudicate = workspace.golden, judging.kind == "adjudication"
    seconds = [each for each in progress.seconds if each is not None]
    origin = f"{call.request.url.scheme}://{call.request.url.netloc}"
    before, reason, disagreements = None, None, 0
    if undone is not None:
        before = "cannot judge" if undone.grade is None else f"{undone.grade:g}"
        reason = undone.reason if undone.grade is not None else None
    if card is None and not adjudicate:
        disagreements = (
            Judging(workspace, judging.rater, call.site.clock, adjudicate=True).far().left
        )
    return kind(
        title=f"{'Settle' if adjudicate else 'Judge'} {golden.name}",
        golden=golden.name,
        adjudicate=adjudicate,
        card=None if card is None else lease_card(card, judging, origin),
        grades=grades_of(golden),
        reasons=reasons(),
        guideline=guideline_blocks(
            golden.guideline_text if card is None else card.claim.guideline_text
        ),
        version=golden.guideline if card is None else card.claim.guideline,
        done=progress.done,
        left=progress.left,
        later=progress.later,
        minutes=_minutes(progress),
        typical=median(seconds) if seconds else None,
        newest=newest,
        disagreements=disagreements,
        before=before,
        reason=reason,
        note=note,
        machines=judging.machines(newest) if adjudicate and newest and not undone else (),
    )


def _waiting(workspace: Workspace, call: Call) -> dict[str, Any]:
    """Work of the rater in a golden set."""
    rater = call.who
    progress = Judging(workspace, rater, call.site.clock).far()
    adjudication = Judging(workspace, rater, call.site.clock, adjudicate=True).far()
    return {
        "name": workspace.golden.name,
        "left": progress.left,
        "done": progress.done,
        "minutes": _minutes(progress),
        "disagreements": adjudication.left,
    }


def _minutes(progress: queue.Progress) -> int | None:
    seconds = queue.seconds_left(progress.left, progress.seconds)
    # Imported judgments may have absurd durations.
    if seconds is None or not progress.left or seconds > 1e9:
        return None
    return max(1, round(seconds / 60))


def _go(
    call: Call, name: str, *, adjudicate: bool, note: str | None = None, was: str | None = None
) -> Response:
    where = f"/judge/{quote(name, safe='')}"
    where += "/adjudicate" if adjudicate else ""
    params = {key: value for key, value in (("note", note), ("was", was)) if value}
    return redirect(call, f"{where}?{urlencode(params)}" if params else where)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
