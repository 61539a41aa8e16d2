"""Alerts: the list, and each with its chart, what it explains, and what was done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Form, Response

from karat.errors import InputError, KaratError
from karat.reports.online.alerts import action_text, state_text
from karat.reports.phrases.online import where
from karat.reports.table import Column
from karat.tables.days import day_number, day_of
from karat.tables.online.alerts import Alert, Did
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.call import Call
from karat.web.framework.errors import Said, or_not_found, refused
from karat.web.framework.form_values import Id
from karat.web.framework.idempotency import redirect_with, show_with
from karat.web.framework.lists import Listed, frame_of, listed
from karat.web.framework.pages import Page, show
from karat.web.online.causes import CauseShown, shown
from karat.workflows.online import alerts
from karat.workflows.online.log_requests import log_of
from karat.workflows.online.slices import dimensions
from karat.workflows.workspace.annotations import annotations_of

ROUTER = APIRouter()
MUTES = (("1h", "1 hour"), ("8h", "8 hours"), ("24h", "1 day"), ("7d", "7 days"))
"""How long the page offers to mute."""


@dataclass(frozen=True, kw_only=True)
class AlertsPage(Page):
    template: ClassVar[str] = "online_alerts.html.j2"
    alerts: Listed
    lasting: int  # how many last


@dataclass(frozen=True, kw_only=True)
class AlertPage(Page):
    template: ClassVar[str] = "online_alert.html.j2"
    alert: Alert
    state: str  # in words
    cause: CauseShown
    history: Sequence[tuple[int, str]]  # what happened, in order, and when
    mutes: Sequence[tuple[str, str]] = field(default=MUTES, repr=False)
    note: str = field(default="", repr=False)
    wrong: Said | None = field(default=None, repr=False)
    said: str = field(default="", repr=False)


@ROUTER.get("/online/alerts")
def alerts_page(call: AReader) -> Response:
    """List the alerts: those that last first, then the newest."""
    found = alerts.alerts(call.site.workspace, now=call.now)
    columns = [
        Column("text", "What", link=lambda row: f"/online/alerts/{row['id']}"),
        Column("status", "State"),
        Column("metric", "Metric", choices=True, shown=False),
        Column("slice", "Slice", choices=True, shown=False),
        Column("state", "Kind of state", choices=True, shown=False),
        Column("onset_us", "Since", "time"),
        Column("seen_us", "Seen until", "time", shown=False),
        Column("id", "Alert", "count", shown=False),
    ]
    rows = (
        (each, {"status": state_text(each), "slice": where(each.slice) or None}) for each in found
    )
    listing = listed(frame_of(rows, columns), columns, call.ask, search=["text"], per_page=25)
    lasting = sum(each.lasts for each in found)
    return show(call, AlertsPage(title="Alerts", alerts=listing, lasting=lasting))


@ROUTER.get("/online/alerts/{alert_id}")
def alert_page(call: AReader, alert_id: Id) -> Response:
    """Show an alert: what, since when, for whom, and what was done about it."""
    with or_not_found():
        found = alerts.find(call.site.workspace, alert_id, now=call.now)
    here = f"/online/alerts/{alert_id}"
    return show_with(call, here, lambda flash: _page(call, found, said=flash.said))


@ROUTER.post("/online/alerts/{alert_id}")
def act_on_alert(
    call: AnEngineer,
    alert_id: Id,
    do: Annotated[Did, Form()],
    note: Annotated[str, Form(max_length=1_000)] = "",
    until: Annotated[str, Form(max_length=40)] = "",
) -> Response:
    """Acknowledge, mute, resolve or reopen an alert."""
    with or_not_found():
        found = alerts.find(call.site.workspace, alert_id, now=call.now)
    try:
        found = alerts.act(call.site.workspace, alert_id, do, until=until, note=note, **call.by)
    except KaratError as error:
        status, wrong = refused(error)
        return show(call, _page(call, found, note=note, wrong=wrong), status)
    said = state_text(found)
    return redirect_with(call, f"/online/alerts/{alert_id}", said=f"{said[:1].upper()}{said[1:]}.")


def _page(call: Call, found: Alert, **more: Any) -> AlertPage:
    onset = found.cause.onset
    last = (found.closed_us or found.seen_us) - 1
    days = day_of(found.onset_us, found.timezone), day_of(last, found.timezone)
    if onset is not None and onset.ended is not None:
        days = days[0], max(days[0], day_number(onset.ended[:10]))
    annotations = annotations_of(call.site.workspace)
    history = [(found.opened_us, "opened by a watch")]
    history += [(each.time_us, action_text(each)) for each in found.actions]
    history += [(found.closed_us, "usual again")] if found.closed_us is not None else []
    return AlertPage(
        title=found.metric + (f" of {where(found.slice)}" if found.slice else ""),
        crumbs=[("Alerts", "/online/alerts")],
        alert=found,
        state=state_text(found),
        cause=shown(call, found.cause, days, _names(call), found.timezone, annotations),
        history=sorted(history, key=lambda each: each[0]),
        **more,
    )


def _names(call: Call) -> Mapping[str, str]:
    """What addresses call the dimensions of slices; those of the log come first."""
    try:
        known = dimensions(call.site.workspace, log_of(call.site.workspace))
    except InputError:  # the events were removed
        return {}
    return {each.key: each.name for each in reversed(known)}
