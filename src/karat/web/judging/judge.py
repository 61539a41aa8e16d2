"""Judging: one card at a time, saved before the next one shows; and settling disagreements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from karat.errors import UsageError
from karat.golden.queue import seconds_left
from karat.store.sql.judgments import LeaseLost, Overtaken
from karat.store.sql.queue import MOST_PUT_OFF, Progress, TooManyPutOff
from karat.web.framework.auth import ARater, Principal, Refused
from karat.web.framework.errors import NotFound
from karat.web.framework.pages import Page, show
from karat.web.framework.state import AppState, TheState
from karat.web.judging.cards import (
    Block,
    Door,
    Grade,
    Shown,
    Ticket,
    dealt,
    grades_of,
    guideline_blocks,
    reasons,
)
from karat.workflows.judging.queue import Card, Judging, TakenBack
from karat.workflows.workspace.workspace import Workspace

ROUTER = APIRouter()
NOTES = {
    "lost": "That pair went to another rater meanwhile, so your answer was not recorded. "
    "Here is the next one.",
    "overtaken": "You have answered for that pair before, and have corrected it, taken it back or "
    "judged another since, so this answer was not recorded. Undo goes back to it, one by one.",
    "many": f"You have put {MOST_PUT_OFF} off already. Settle this one, or say why you cannot.",
    "gone": "There was nothing to undo.",
    "words": "Another reason needs words: write them as the reason, then choose it again.",
    "later": "Put off: it comes back in an hour.",
    "undone": "Taken back. Here is the pair again.",
}
"""What a page may say above a card; an address names one of them and says nothing else."""
_DOOR = Door(
    no_answer="give a grade, or say why you cannot", no_ticket="reload the page, and answer again"
)
_NOT_DONE = frozenset({"lost", "overtaken", "many"})
"""Notes of a part that shows what comes next although what was sent was not done: status 409."""


@dataclass(frozen=True)
class Waiting:
    """A golden set that may be judged.

    Attributes:
        name: Of the golden set.
        left: Judgments that wait for this rater.
        done: Those given.
        minutes: About how many minutes the rest takes; None if that is not known.
        disagreements: Those that wait to be settled by this rater.
    """

    name: str
    left: int
    done: int
    minutes: int | None
    disagreements: int


@dataclass(frozen=True, kw_only=True)
class ChoosePage(Page):
    """What may be judged, where there is more than one thing.

    Attributes:
        waiting: Each golden set.
    """

    template: ClassVar[str] = "judge_choose.html.j2"
    section: ClassVar[str] = "judge"
    waiting: Sequence[Waiting]


@dataclass(frozen=True, kw_only=True)
class JudgePage(Page):
    """One card, or the finish line.

    Attributes:
        golden: Name of the golden set.
        adjudicate: Whether disagreements are settled, rather than pairs rated.
        card: The pair; None if nothing waits.
        grades: The declared scale, lowest first.
        reasons: Why a pair cannot be judged: key, code, words.
        guideline: The guideline.
        version: Its version.
        done: Judgments given.
        left: Judgments to give.
        later: Pairs that were put off and come back.
        minutes: About how many minutes the rest takes; None if that is not known.
        typical: Median of the seconds that the newest judgments took; None if none was timed.
        newest: Number of the judgment that an undo takes back; None if there is none.
        disagreements: At the finish, disagreements that wait for this rater.
        before: What was said of the card before it was taken back; None if it is new.
        reason: The reason given then.
        note: What to say above the card; None for nothing.
    """

    template: ClassVar[str] = "judge.html.j2"
    section: ClassVar[str] = "judge"
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
    typical: float | None
    newest: int | None
    disagreements: int
    before: str | None = None
    reason: str | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class JudgePart(JudgePage):
    """The same without what stands around it, for a script that puts it in place."""

    template: ClassVar[str] = "judge_part.html.j2"


@dataclass(frozen=True)
class Answer:
    """What a form says of a card.

    Attributes:
        grade: The grade.
        cannot: Why it cannot be judged, one of ``karat.golden.queue.REASONS``.
        reason: In the rater's words.
        seconds: How long the card was looked at, by the browser.
        ticket: As the card had it: nothing else says which card it is of.
        do: ``later`` or ``undo``; empty for a judgment.
        newest: For ``undo``, the judgment to take back.
    """

    grade: float | None
    cannot: str
    reason: str
    seconds: float | None
    ticket: str
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
) -> Answer:
    took = _number(seconds)
    given = _number(grade)
    if grade.strip() and given is None:
        raise UsageError(f"{grade!r} is no grade")
    return Answer(given, cannot, reason, took, ticket, do, int(newest) if newest else None)


@ROUTER.get("/judge")
def choose(request: Request, site: TheState, asking: ARater) -> Response:
    """What waits; straight on if that is one thing."""
    waiting = [_waiting(site.opened(row.name), asking, site) for row in site.golden_sets()]
    if len(waiting) == 1 and "format" not in request.query_params:
        only = waiting[0]
        if not (only.disagreements and only.left):
            return _go(site, only.name, adjudicate=bool(only.disagreements))
    return show(request, ChoosePage(title="Judge", waiting=waiting))


@ROUTER.get("/judge/{name}")
def card(request: Request, site: TheState, asking: ARater, name: str) -> Response:
    """The next pair to rate; the same one again until it is dealt with."""
    judging = Judging(opened_of(site, name), asking.person.name, site.clock)
    return _shown(request, site, judging, asking)


@ROUTER.post("/judge/{name}")
def answer(
    request: Request,
    site: TheState,
    asking: ARater,
    name: str,
    said: Annotated[Answer, Depends(_answer)],
) -> Response:
    """Record a rating, put a pair off, or undo; then the next pair."""
    judging = Judging(opened_of(site, name), asking.person.name, site.clock)
    return _done(request, site, judging, said)


@ROUTER.get("/judge/{name}/adjudicate")
def disagreement(request: Request, site: TheState, asking: ARater, name: str) -> Response:
    """The next disagreement to settle, with what the raters said, and no names."""
    opened = opened_of(site, name)
    judging = Judging(opened, asking.person.name, site.clock, adjudicate=True)
    return _shown(request, site, judging, asking)


@ROUTER.post("/judge/{name}/adjudicate")
def settle(
    request: Request,
    site: TheState,
    asking: ARater,
    name: str,
    said: Annotated[Answer, Depends(_answer)],
) -> Response:
    """Record how a disagreement is settled; as for a rating."""
    opened = opened_of(site, name)
    judging = Judging(opened, asking.person.name, site.clock, adjudicate=True)
    return _done(request, site, judging, said)


def opened_of(site: AppState, name: str) -> Workspace:
    """The workspace with a golden set that an address names.

    Raises:
        NotFound: there is no such golden set.
    """
    try:
        return site.opened(name)
    except UsageError as error:
        raise NotFound(error.what, nearest=error.nearest, fix=error.fix) from None


def _shown(request: Request, site: AppState, judging: Judging, asking: Principal) -> Response:
    """The next card, which is dealt: so only to somebody who came for it.

    A browser tells where a request comes from. As a picture or a frame, on whatever page, it would
    lease a pair unseen, or mark the votes of a disagreement as seen; and a link from elsewhere
    leads to what waits, from where one step leads to the card.
    """
    to = request.headers.get("sec-fetch-dest", "document")
    if to != "document" and not (to == "empty" and "x-part" in request.headers):
        raise Refused(403, "a card is shown as a page, and in nothing else")
    if request.headers.get("sec-fetch-site") == "cross-site":
        waiting = [_waiting(judging.opened, asking, site)]
        return show(request, ChoosePage(title="Judge", waiting=waiting))
    note = NOTES.get(request.query_params.get("note", ""))
    was = request.query_params.get("was")
    if was in {"cannot judge", *(f"{each.value:g}" for each in grades_of(judging.opened.golden))}:
        note = f"The pair before: corrected, it was {was}."
    return show(request, _page(request, site, judging, judging.card(), JudgePage, note))


def _done(request: Request, site: AppState, judging: Judging, said: Answer) -> Response:
    """Do what the form says, which is in the store then, and show what comes next."""
    note, was, taken = None, None, None
    if said.do == "undo":
        taken = judging.take_back(said.newest)
        note = "gone" if taken is None else "undone"
    elif said.do == "later":
        note = _put_off(judging, _DOOR.ticket(judging, said.ticket))
    else:
        try:
            was = judging.corrected(_DOOR.record(judging, said))
        except LeaseLost as error:
            note = "overtaken" if isinstance(error, Overtaken) else "lost"
        except UsageError:
            wordless = said.cannot == "other" and not said.reason.strip()
            if not wordless or "x-part" in request.headers:
                raise
            note = "words"
    if "x-part" not in request.headers:  # a form: no page that a reload would send again
        adjudicate = judging.kind == "adjudication"
        return _go(site, judging.opened.golden.name, adjudicate=adjudicate, note=note, was=was)
    following = judging.card() if taken is None else taken.card
    words = NOTES[note] if note in {"gone", *_NOT_DONE} else None
    words = words if was is None else f"The pair before: corrected, it was {was}."
    page = _page(request, site, judging, following, JudgePart, words, taken)
    return show(request, page, 409 if note in _NOT_DONE else 200)


def _put_off(judging: Judging, ticket: Ticket) -> str | None:
    """Put a pair off; nothing is to be said if it is no more theirs, or was put off before."""
    try:
        judging.put_off(ticket.slot)
    except TooManyPutOff:
        return "many"
    except UsageError:
        return None
    return "later"


def _page(
    request: Request,
    site: AppState,
    judging: Judging,
    card: Card | None,
    kind: type[JudgePage],
    note: str | None,
    taken: TakenBack | None = None,
) -> JudgePage:
    opened, far = judging.opened, judging.far()
    golden, adjudicate = opened.golden, judging.kind == "adjudication"
    timed = [each for each in far.seconds if each is not None]
    origin = f"{request.url.scheme}://{request.url.netloc}"
    before, reason, waiting = None, None, 0
    if taken is not None:
        before = "cannot judge" if taken.grade is None else f"{taken.grade:g}"
        reason = taken.reason if taken.grade is not None else None
    if card is None and not adjudicate:
        waiting = Judging(opened, judging.rater, site.clock, adjudicate=True).far().left
    return kind(
        title=f"{'Settle' if adjudicate else 'Judge'} {golden.name}",
        golden=golden.name,
        adjudicate=adjudicate,
        card=None if card is None else dealt(card, judging, origin),
        grades=grades_of(golden),
        reasons=reasons(),
        guideline=guideline_blocks(
            golden.guideline_text if card is None else card.claim.guideline_text
        ),
        version=golden.guideline if card is None else card.claim.guideline,
        done=far.done,
        left=far.left,
        later=far.later,
        minutes=_minutes(far),
        typical=median(timed) if timed else None,
        newest=judging.newest(),
        disagreements=waiting,
        before=before,
        reason=reason,
        note=note,
    )


def _waiting(opened: Workspace, asking: Principal, site: AppState) -> Waiting:
    who = asking.person.name
    far = Judging(opened, who, site.clock).far()
    apart = Judging(opened, who, site.clock, adjudicate=True).far()
    return Waiting(opened.golden.name, far.left, far.done, _minutes(far), apart.left)


def _minutes(far: Progress) -> int | None:
    about = seconds_left(far.left, far.seconds)
    # A file that was imported may say of a judgment that it took ages.
    return None if about is None or not far.left or about > 1e9 else max(1, round(about / 60))


def _go(
    site: AppState, name: str, *, adjudicate: bool, note: str | None = None, was: str | None = None
) -> Response:
    where = f"{site.settings.base}/judge/{quote(name, safe='')}"
    where += "/adjudicate" if adjudicate else ""
    said = {key: value for key, value in (("note", note), ("was", was)) if value}
    return RedirectResponse(f"{where}?{urlencode(said)}" if said else where, 303)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
