"""Engines: their health, index, latency and newest run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fastapi import APIRouter, Response

from karat.errors import UsageError
from karat.tables.engines import EngineCheck, EngineState
from karat.web.framework.auth import AnEngineer, AReader
from karat.web.framework.errors import or_not_found
from karat.web.framework.pages import PlainPage, redirect, show
from karat.web.framework.progress import Job, Outcome, begin, last
from karat.web.framework.state import AppState
from karat.workflows.engines.check import check_in
from karat.workflows.engines.tries import engine_states

ROUTER = APIRouter()
Health = Literal["not checked", "checking", "ok", "fail"]
WAIT_S = 1.0


@dataclass(frozen=True)
class ShownEngine:
    """A declared engine and its last check."""

    state: EngineState
    health: Health
    checks: Sequence[EngineCheck]  # of the last check; empty before
    checked_us: int | None  # when it was checked, microseconds UTC
    error: str | None  # why the check itself failed


@ROUTER.get("/engines")
def engines(call: AReader) -> Response:
    """Show the declared engines; none is asked."""
    found = shown_engines(call.site)
    checking = any(each.health == "checking" for each in found)
    return show(call, PlainPage("engines.html.j2", "Engines", engines=found, checking=checking))


def shown_engines(site: AppState) -> list[ShownEngine]:
    workspace = site.opened(site.workspace.golden.name)
    return [_shown(each, last(site, _job(each.name))) for each in engine_states(workspace)]


def _shown(state: EngineState, job: Job | None) -> ShownEngine:
    if job is None:
        return ShownEngine(state, "not checked", [], None, None)
    checks = [EngineCheck(**check) for check in job.result or []]
    health: Health = "ok" if job.state == "done" else "fail" if job.over else "checking"
    if any(check.state == "fail" for check in checks):
        health = "fail"
    return ShownEngine(state, health, checks, job.updated_us if job.over else None, job.error)


def start_check(site: AppState, name: str) -> Job:
    workspace = site.opened(site.workspace.golden.name)
    if name not in {each.name for each in engine_states(workspace)}:
        raise UsageError(f"there is no engine {name!r}", fix="declare it in karat.toml")

    def work(progress: Any) -> Outcome:
        progress("asking")
        return Outcome("/engines", [asdict(check) for check in check_in(workspace, name)])

    return begin(site, _job(name), f"Check of {name}", work, WAIT_S)


def _job(name: str) -> str:
    return f"check-{name}"


@ROUTER.post("/engines/{name}/check")
def check(call: AnEngineer, name: str) -> Response:
    with or_not_found():
        start_check(call.site, name)
    return redirect(call, "/engines")
