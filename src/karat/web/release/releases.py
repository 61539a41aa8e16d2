"""Releases: the board, and each with its next step, its evidence and its story."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Form, Response

from karat.errors import KaratError, UsageError
from karat.release.pipeline import NotAllowed
from karat.reports.experiments.analysis import ROLES
from karat.reports.release import pipeline as reports
from karat.reports.release import story as stories
from karat.reports.release.evidence import tables as behind
from karat.reports.release.review import Section, sections
from karat.reports.table import Table
from karat.tables.experiments.experiment import Effect
from karat.tables.records import record_of
from karat.tables.release.pipeline import (
    EventKind,
    Evidence,
    ReleaseEvent,
    ReleaseStatus,
    ReleaseStory,
    RolledBack,
    TrackRecord,
)
from karat.web.experiments.experiments import axis_of, effect_cells
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import Said, refused
from karat.web.framework.idempotency import redirect_with, show_with
from karat.web.framework.pages import Page, redirect, show
from karat.web.framework.progress import Outcome, begin
from karat.workflows.release import pipeline
from karat.workflows.release.pipeline import Release

ROUTER = APIRouter()
LOG = logging.getLogger("karat.web")
WAIT_S = 3.0
"""Longest wait of the page for evidence."""
Act = Literal[
    "advanced", "skipped", "held", "resumed", "reviewed", "overridden", "rolled_back", "evidence"
]  # fmt: skip


@dataclass(frozen=True)
class EvidenceShown:
    """The evidence of a stage, and what its result has to draw."""

    evidence: Evidence
    tables: Sequence[Table]
    roles: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]
    axis: float


@dataclass(frozen=True)
class Typed:
    """What a refused form had."""

    do: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class BoardPage(Page):
    template: ClassVar[str] = "releases.html.j2"
    words: ClassVar[ModuleType] = reports
    releases: Sequence[ReleaseStatus]
    record: TrackRecord
    in_flight: Sequence[ReleaseStatus] = field(repr=False)
    ended: Sequence[ReleaseStatus] = field(repr=False)
    measured: Table = field(repr=False)
    relation: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ReleasePage(Page):
    template: ClassVar[str] = "release.html.j2"
    words: ClassVar[ModuleType] = reports
    story: ReleaseStory
    choices: Mapping[EventKind, str]  # what the user may do, with its consequence
    evidence: Sequence[EvidenceShown] = field(repr=False)
    events: Sequence[ReleaseEvent] = field(repr=False)
    promised: Table = field(repr=False)
    review: Sequence[Section] = field(repr=False)
    typed: Typed = field(default=Typed(), repr=False)
    wrong: Said | None = field(default=None, repr=False)
    said: str = field(default="", repr=False)


@ROUTER.get("/releases")
def board(call: AReader) -> Response:
    """Show all releases: those in flight first, then promised next to measured."""
    rows, record = pipeline.board(call.site.workspace, now=call.now)
    page = BoardPage(
        title="Releases",
        releases=rows,
        record=record,
        # Users may still get the candidate of one whose switch is not where it should be.
        in_flight=[row for row in rows if not row.over or row.problem],
        ended=[row for row in rows if row.over and not row.problem],
        measured=stories.kept_table(record),
        relation=stories.relation_text(record.relation),
    )
    return show(call, page)


@ROUTER.get("/releases/{release}")
def one_release(call: AReader, release: str) -> Response:
    """Show a release: what is next, what a user may do, its evidence and its story."""
    return show_with(
        call, f"/releases/{release}", lambda flash: _release_page(call, release, said=flash.said)
    )


@ROUTER.post("/releases/{release}")
def act(
    call: AnEngineer,
    release: str,
    do: Annotated[Act, Form()],
    stage: Annotated[str, Form(max_length=40)] = "",
    reason: Annotated[str, Form(max_length=2_000)] = "",
    sure: Annotated[bool, Form()] = False,
) -> Response:
    """Take a step with a release; ``stage`` is the one that the form was shown for."""
    try:
        if do == "evidence":
            return _gather(call, release)
        said = _done(call, release, do, stage, reason.strip(), sure=sure)
    except KaratError as error:
        status, wrong = refused(error)
        typed = Typed(do, reason)
        return show(call, _release_page(call, release, typed=typed, wrong=wrong), status)
    return redirect_with(call, f"/releases/{release}", said=said)


def _done(call: Call, name: str, do: Act, stage: str, reason: str, *, sure: bool) -> str:
    """Take a step; the new state in a sentence."""
    if do != "advanced" and not reason:
        raise UsageError("a reason is missing", fix="say why, in a sentence")
    if do == "rolled_back":
        if not sure:
            raise UsageError("the rollback is not confirmed", fix="tick the box")
        found = roll_back(call, name, reason)
        if found.status is None:
            return f"{name} is rolled back. The ledger could not be written: {found.problem}"
        status = found.status
    elif do == "advanced":
        status = release_of(call, name).advance(by=call.who, stage=stage)
    elif do == "skipped":
        status = release_of(call, name).skip(by=call.who, reason=reason, stage=stage)
    else:
        status = release_of(call, name).note(do, by=call.who, reason=reason)
    return reports.headline(status)


def release_of(call: Call, name: str) -> Release:
    return Release.of(call.site.workspace, name, call.now)


def roll_back(call: Call, name: str, reason: str) -> RolledBack:
    """Roll a release back, users first: also if the ledger cannot be read or written."""
    workspace = call.site.workspace
    try:
        allowed = release_of(call, name).choices(call.who)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - a database may fail in any way; users come first
        LOG.error("the ledger of %s cannot be read: %s", name, error)
    else:
        if "rolled_back" not in {each.kind for each in allowed}:
            raise NotAllowed(f"{name} is over already", fix="start a new release to go back")
    return pipeline.roll_back_first(
        workspace.workspace.root, name, lambda: nullcontext(workspace), by=call.who,
        reason=reason, now=call.now,
    )  # fmt: skip


def _gather(call: Call, name: str) -> Response:
    """Gather evidence in the background, and lead to its progress if it takes long."""
    workspace, where = call.site.workspace, f"/releases/{name}"
    release_of(call, name)

    def work(progress: Any) -> Outcome:
        progress("gathering evidence")
        Release.of(workspace, name, call.site.clock()).evidence()
        return Outcome(where)

    number = hashlib.sha256(name.encode()).hexdigest()[:12]
    job = begin(call.site, f"evidence-{number}", f"Evidence of {name}", work, WAIT_S)
    if job.state == "failed":
        what, _, fix = (job.error or "").partition("\n  fix: ")
        raise UsageError(what, fix=fix or None)
    return redirect(call, f"{where}#evidence" if job.over else f"/jobs/{job.id}")


def _release_page(call: Call, name: str, **more: Any) -> ReleasePage:
    release = release_of(call, name)
    story = release.story()
    return ReleasePage(
        title=name,
        crumbs=[("Board", "/releases")],
        story=story,
        choices={each.kind: each.consequence for each in release.choices(call.who)},
        evidence=[_evidence(each) for each in story.status.evidence],
        events=stories.told(story.events),
        promised=stories.promised(story),
        review=list(sections(story.review)),
        **more,
    )


def _evidence(each: Evidence) -> EvidenceShown:
    effects = [record_of(Effect, row) for row in each.result.get("effects", ())]
    roles = [
        (title, [effect_cells(effect) for effect in effects if effect.role == role])
        for role, title in ROLES.items()
    ]
    return EvidenceShown(
        evidence=each,
        tables=[table for table in behind(each) if table.rows],
        roles=[(title, rows) for title, rows in roles if rows],
        axis=axis_of(effects),
    )
