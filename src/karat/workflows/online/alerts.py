"""Alerts of a workspace: what watches saw, remembered, and what people did about it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import polars as pl
import sqlalchemy as sa

from karat.clients import webhook
from karat.engines.secrets import secret_value
from karat.errors import UsageError
from karat.online.alerts import (
    AGAIN,
    KARAT,
    KnownAlert,
    Step,
    key_of,
    leading,
    state_of,
    steps,
)
from karat.online.rules import DAY, HOUR, duration
from karat.reports.phrases.online import cause_text
from karat.store.sql import alerts as rows
from karat.store.sql import audit
from karat.tables.days import day_text, time_text
from karat.tables.online.alerts import QUIET, Alert, AlertAction, Did
from karat.tables.online.events import EventLog
from karat.tables.online.watch import Cause, Change, Explained, Onset, Watched
from karat.tables.records import record_of
from karat.tables.workspace import WebhookForm
from karat.workflows.online.watch import event
from karat.workflows.online.watch_windows import hour_us
from karat.workflows.workspace.annotations import time_of
from karat.workflows.workspace.workspace import Workspace

_LONGEST = 1_000  # characters of a note
_MOST = 200  # alerts of a list, those with the newest onset
_LONGEST_MUTE = 366 * DAY
_AUDITED: Mapping[Did, str] = {
    "acknowledged": "acknowledge alert",
    "muted": "mute alert",
    "resolved": "resolve alert",
    "reopened": "reopen alert",
}


# --- what a watch saw ---


def remember(
    opened: Workspace,
    log: EventLog,
    watched: Watched,
    *,
    now: int,
    notify: str | None = None,
    form: WebhookForm = "json",
) -> list[webhook.Delivery] | None:
    """Record what the watch of a log saw, and post what is new.

    It is posted to ``notify``, and to the address in ``[watch]`` of ``karat.toml``.

    Returns:
        The outcome of each post; None if nothing is recorded, as the log has a later window.
    """
    if (log.last_us or 0) >= watched.ends_us + watched.hours * HOUR:
        return None
    fresh = record(opened, watched, now=now)
    news = [each for each in lasting(opened, now=now) if each.id in fresh]
    if not news:
        return []
    time = datetime.fromtimestamp(now / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    payload = event(watched, time=time, news=news) or {}
    config, secret = opened.workspace.watch, os.environ.get(webhook.SECRET)
    targets = [(notify, form)] if notify is not None else []
    if config.notify is not None:
        root = opened.workspace.root
        url = secret_value(config.notify, "[watch] notify url", root, os.environ)
        targets.append((url, config.form))
    return [
        webhook.post(url, webhook.formed(payload, each), secret=secret) for url, each in targets
    ]


def record(opened: Workspace, watched: Watched, *, now: int) -> list[int]:
    """Record what a watch saw; the ids of alerts that are new or came back, unless muted.

    Of two processes that record the same, one opens the alert and gets its id.
    """
    ended = {
        key_of(cause.lead): hour_us(cause.onset.ended, watched.timezone)
        for cause in watched.causes
        if cause.onset is not None and cause.onset.ended is not None
    }
    fresh = []
    with opened.store.begin() as c:
        rows.hold(c)
        known = [_known(row) for row in rows.since(c, watched.ends_us - AGAIN)]
        for step in steps(known, watched, ended):
            alert_id = _write(c, step, watched, now)
            if step.kind in ("open", "reopen"):
                fresh.append(alert_id)
        return [each for each in fresh if _find(c, each, now).state not in QUIET]


def _known(row: Mapping[str, Any]) -> KnownAlert:
    content = row["content"]
    return KnownAlert(
        row["id"], row["cause"], row["seen_us"], row["closed_us"], content["hours"],
        record_of(Cause, content["cause"]),
    )  # fmt: skip


def _write(c: sa.Connection, step: Step, watched: Watched, now: int) -> int:
    """Write a step to the store; the id of its alert."""
    if step.cause is None:
        assert step.alert is not None
        rows.change(c, step.alert.id, closed_us=watched.ends_us)
        return step.alert.id
    onset = step.cause.onset
    begun = None if onset is None else onset.at or onset.earliest
    begins_us = watched.ends_us - watched.hours * HOUR
    onset_us = begins_us if begun is None else hour_us(begun, watched.timezone)
    hours = watched.hours if step.alert is None else min(watched.hours, step.alert.hours)
    values: dict[str, Any] = {
        "seen_us": watched.ends_us,
        "content": {
            "cause": asdict(step.cause), "window": watched.window, "hours": hours,
            "timezone": watched.timezone, "simulated": watched.simulated,
        },
    }  # fmt: skip
    if step.alert is None:
        times = {"opened_us": now, "onset_us": onset_us, "closed_us": None}
        return rows.add(c, {"cause": step.key, **times, **values})
    if step.kind == "reopen":
        values |= {"onset_us": onset_us, "closed_us": None}
        action = {"time_us": now, "person": KARAT, "action": "reopened", "until_us": None}
        rows.act(c, step.alert.id, action | {"note": f"it came back: {watched.window}"})
    elif begun is not None and step.alert.cause.onset is not None:
        values |= {"onset_us": onset_us}
    rows.change(c, step.alert.id, **values)
    return step.alert.id


# --- reading ---


def alerts(opened: Workspace, *, now: int) -> list[Alert]:
    """The alerts of a workspace: those that last first, then the newest onset."""
    with opened.store.read() as c:
        found = _read(c, rows.listed(c, _MOST), now)
    return sorted(found, key=lambda each: not each.lasts)


def lasting(opened: Workspace, *, now: int) -> list[Alert]:
    """The alerts that last, the oldest first."""
    with opened.store.read() as c:
        return _read(c, rows.still_open(c), now)


def current(opened: Workspace, *, now: int) -> list[Alert]:
    """The alerts to look at, the newest onset first.

    They last, are neither muted nor resolved, and no other alert explains them.
    """
    found = [each for each in leading(lasting(opened, now=now)) if each.state not in QUIET]
    return sorted(found, key=lambda each: -each.onset_us)


def releases_before(
    annotations: pl.DataFrame, onset: Onset | None, day: int, timezone: str
) -> list[str]:
    """What was released in the week up to the last hour that an onset may be, the latest first.

    Up to the end of a day (since 1970-01-01) if the hour is unknown; all are local. The annotations
    are in order of time.
    """
    hour = onset and (onset.latest or onset.at)
    until = hour_us(hour, timezone) + HOUR if hour else hour_us(day_text(day + 1), timezone)
    rows = annotations.filter(kind="release").select("time_us", "text").rows()
    return [
        f"{time_text(at, timezone)} {text}"
        for at, text in reversed(rows)
        if until - 7 * DAY <= at < until
    ]


def ids_of(opened: Workspace, causes: Sequence[Cause]) -> list[int | None]:
    """The alert that lasts of each cause, or that explains it; None for one without."""
    with opened.store.read() as c:
        known = [_known(row) for row in rows.still_open(c)]
    by_key = {key_of(part): each.id for each in known for part in each.cause.explains}
    by_key |= {each.key: each.id for each in known}
    found = []
    for cause in causes:
        parts: list[Change | Explained] = [cause.lead, *cause.explains]
        ids = (by_key[key] for key in map(key_of, parts) if key in by_key)
        found.append(next(ids, None))
    return found


def find(opened: Workspace, alert_id: int, *, now: int) -> Alert:
    """One of them; raises UsageError if there is none."""
    with opened.store.read() as c:
        return _find(c, alert_id, now)


def _find(c: sa.Connection, alert_id: int, now: int) -> Alert:
    row = rows.find(c, alert_id)
    if row is None:
        raise UsageError(f"there is no alert {alert_id}", fix="karat online alerts list")
    return _read(c, [row], now)[0]


def _read(c: sa.Connection, found: Sequence[Mapping[str, Any]], now: int) -> list[Alert]:
    by_alert: dict[int, list[AlertAction]] = {row["id"]: [] for row in found}
    for row in rows.actions(c, list(by_alert)):
        names = ("time_us", "person", "action", "until_us", "note")
        by_alert[row["alert_id"]].append(AlertAction(**{name: row[name] for name in names}))
    return [_alert(row, by_alert[row["id"]], now) for row in found]


def _alert(row: Mapping[str, Any], actions: Sequence[AlertAction], now: int) -> Alert:
    content = row["content"]
    cause = record_of(Cause, content["cause"])
    state, until_us = state_of(actions, row["closed_us"], now)
    times = {name: row[name] for name in ("opened_us", "onset_us", "seen_us", "closed_us")}
    about = {name: content[name] for name in ("window", "hours", "timezone", "simulated")}
    return Alert(
        id=row["id"], text=cause_text(cause), metric=cause.lead.metric, slice=cause.lead.slice,
        state=state, until_us=until_us, cause=cause, actions=actions, **times, **about,
    )  # fmt: skip


# --- what people do ---


def act(
    opened: Workspace,
    alert_id: int,
    action: Did,
    *,
    person: str,
    now: int,
    until: str | None = None,
    note: str = "",
) -> Alert:
    """Acknowledge, mute, resolve or reopen an alert; audited. Returns it as it is then.

    Args:
        until: When a mute ends: a duration such as ``8h``, or a time in UTC.
    """
    text = " ".join(note.split())
    if len(text) > _LONGEST:
        raise UsageError(f"a note has at most {_LONGEST:,} characters", fix="shorten it")
    until_us = _until(until, now) if action == "muted" else None
    with opened.store.begin() as c:
        rows.hold(c)
        before = _find(c, alert_id, now)
        _check(before, action)
        values = {"time_us": now, "person": person, "action": action, "until_us": until_us}
        rows.act(c, alert_id, values | {"note": text})
        audit.note(c, person, _AUDITED[action], before.text, now, {"alert": alert_id})
        return _find(c, alert_id, now)


def _check(alert: Alert, action: Did) -> None:
    if action == "reopened":
        if alert.state == "open":
            raise UsageError(f"alert {alert.id} is open")
        if not alert.lasts:
            raise UsageError(f"alert {alert.id} is over", fix="a watch reopens it if it comes back")
    elif not alert.lasts and action != "resolved":
        raise UsageError(f"alert {alert.id} is over: there is nothing to do about it")
    elif alert.state == action == "resolved":
        raise UsageError(f"alert {alert.id} is resolved already")
    elif alert.state == "resolved" and action == "muted":
        raise UsageError(f"alert {alert.id} is resolved, and quiet already", fix="reopen it first")


def _until(text: str | None, now: int) -> int:
    if not text or not text.strip():
        raise UsageError("when does the mute end?", fix="--until 8h, or --until 2026-11-21T08:00")
    try:
        until = now + duration(text)
    except UsageError:
        try:
            until = time_of(text)
        except UsageError:
            raise UsageError(
                f"{text!r} is neither a duration of up to 366 days nor a time",
                fix="8h, or 2026-11-21T08:00, in UTC",
            ) from None
    if not now < until <= now + _LONGEST_MUTE:
        raise UsageError(f"{text!r} is not within the next 366 days", fix="8h, or a time in UTC")
    return until
