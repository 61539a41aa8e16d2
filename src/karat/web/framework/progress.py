"""Long work: its stage, share and time left are shown, and it can be cancelled.

The state of a job is a file in the folder ``jobs`` of the workspace, so that every worker process
of the server can show and cancel it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Response

from karat.errors import KaratError
from karat.web.framework.auth import AnEngineer
from karat.web.framework.errors import NotFound
from karat.web.framework.jobs import COMPUTING, REMEMBERED_S, JobQueue, Place
from karat.web.framework.pages import PlainPage, redirect, show
from karat.web.framework.state import AppState
from karat.workflows.offline.stages import Cancelled

ROUTER = APIRouter()
FOLDER = "jobs"
_MOST = 200  # files
_EVERY_US = 200_000  # between writes of the same stage
_LOST_US = 600_000_000  # without news, after which a job is given up
_ID = re.compile(r"[\w-]{1,80}")
JobStatus = Literal["waiting", "running", "cancelling", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Job:
    """A long computation, and how far it is."""

    id: str
    title: str  # what it does
    state: JobStatus
    stage: str  # what it does now
    done: int  # how much of the stage is done
    total: int  # of how much; 0 if unknown
    started_us: int  # when it was started, microseconds UTC
    stage_us: int  # when the stage began
    updated_us: int  # when this was written
    page: str | None = None  # address of its result, without the base; None before
    error: str | None = None  # why it failed; None if it did not
    result: Any = None

    @property
    def over(self) -> bool:
        return self.state in {"done", "failed", "cancelled"}

    @property
    def left_s(self) -> float | None:
        """Seconds that the stage still takes at its pace so far; None if unknown."""
        took_us = self.updated_us - self.stage_us
        if self.over or not self.done or not took_us or self.total <= self.done:
            return None
        return took_us / 1e6 * (self.total - self.done) / self.done


@dataclass(frozen=True)
class Outcome:
    page: str | None = None  # address of the page with its result
    result: Any = None  # as JSON


class Progress:
    def __init__(self, site: AppState, job: Job) -> None:
        self.job = job
        self._site, self._path = site, _place(site, job.id)

    def __call__(self, stage: str, done: int = 0, total: int = 0) -> None:
        """Report the stage, and how much of it is done; raises Cancelled if it was cancelled."""
        now, before = self._site.clock(), self.job
        new = stage != before.stage
        if not new and done < total and now - before.updated_us < _EVERY_US:
            return
        if self._path.with_suffix(".cancel").exists():
            raise Cancelled
        self.write(state="running", stage=stage, done=done, total=total,
                   stage_us=now if new else before.stage_us)  # fmt: skip

    def write(self, **fields: Any) -> None:
        self.job = replace(self.job, **fields, updated_us=self._site.clock())
        beside = self._path.with_suffix(f".{os.getpid()}.part")
        with suppress(OSError):  # a full disk stops no computation
            self._path.parent.mkdir(exist_ok=True)
            beside.write_text(json.dumps(asdict(self.job)), encoding="utf-8")
            beside.replace(self._path)

    def forget(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def begin(
    site: AppState, job_id: str, title: str, work: Callable[[Progress], Outcome], wait_s: float
) -> Job:
    """Start a job, unless it is running, and wait a little for it; its state is returned."""
    with suppress(KaratError):  # its state has the error
        run(site, job_id, title, work, wait_s, remembered_s=0.0)
    return find(site, job_id)


def run(
    site: AppState,
    job_id: str,
    title: str,
    work: Callable[[Progress], Outcome | None],  # None if its result is elsewhere: no state is left
    wait_s: float,
    *,
    queue: JobQueue = COMPUTING,
    remembered_s: float = REMEMBERED_S,
    place: Place | None = None,
) -> bool:
    """Run a job as ``JobQueue.run``; its state can be seen, and it can be cancelled.

    A job that was cancelled is not started again within ``remembered_s`` seconds.
    """
    key, now = queue_key(site, job_id), site.clock()
    progress = Progress(site, Job(job_id, title, "waiting", "", 0, 0, now, now, now))
    with ExitStack() as stack:
        if not queue.has(key):
            before = last(site, job_id)
            if before is not None and before.state == "cancelling":  # in another process
                return False
            again_us = 0.0 if before is None else before.updated_us + remembered_s * 1e6
            if before is not None and before.state == "cancelled" and now < again_us:
                raise Cancelled
            place = place or stack.enter_context(queue.place())
            _forget_old(site)
            _place(site, job_id).with_suffix(".cancel").unlink(missing_ok=True)
            progress.write()
        return queue.run(key, lambda: _run(progress, work), wait_s, remembered_s, place)


def queue_key(site: AppState, job_id: str) -> tuple[str, str, str]:
    """The key of a job in its queue."""
    return "job", str(site.workspace.workspace.root), job_id


def _run(progress: Progress, work: Callable[[Progress], Outcome | None]) -> None:
    try:
        outcome = work(progress)
    except Cancelled:
        progress.write(state="cancelled")
        raise
    except KaratError as error:
        progress.write(state="failed", error=str(error))
        raise
    except BaseException:
        progress.write(state="failed", error="this is a bug in karat; see the server's log")
        raise
    if outcome is None:
        progress.forget()
    else:
        progress.write(state="done", page=outcome.page, result=outcome.result)


def find(site: AppState, job_id: str) -> Job:
    """The state of a job; NotFound if there is none."""
    found = last(site, job_id)
    if found is None:
        raise NotFound("there is no such job", fix="it may have ended long ago")
    return found


def last(site: AppState, job_id: str) -> Job | None:
    """The state of a job; None if there is none."""
    if not _ID.fullmatch(job_id):
        return None
    try:
        job = Job(**json.loads(_place(site, job_id).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if not job.over and site.clock() - job.updated_us > _LOST_US:
        return replace(job, state="failed", error="the server stopped before it had finished")
    if not job.over and _place(site, job_id).with_suffix(".cancel").exists():
        return replace(job, state="cancelling")
    return job


def cancel(site: AppState, job_id: str) -> Job:
    """Ask a job to stop; it does at its next step."""
    job = find(site, job_id)
    if not job.over:
        _place(site, job_id).with_suffix(".cancel").touch()
    return job


def _place(site: AppState, job_id: str) -> Path:
    return site.workspace.workspace.root / FOLDER / f"{job_id}.json"


def _forget_old(site: AppState) -> None:
    files = list((site.workspace.workspace.root / FOLDER).glob("*"))
    with suppress(OSError):  # another process does the same
        for path in sorted(files, key=lambda path: path.stat().st_mtime)[:-_MOST]:
            path.unlink()


@ROUTER.get("/jobs/{job_id}")
def job_page(call: AnEngineer, job_id: str) -> Response:
    """Show how far a job is; the page follows it."""
    job = find(call.site, job_id)
    return show(call, PlainPage("job.html.j2", job.title, job=job))


@ROUTER.post("/jobs/{job_id}/cancel")
def cancel_job(
    call: AnEngineer, job_id: str, back: Annotated[str, Form(max_length=8_000)] = ""
) -> Response:
    own = back.startswith("/") and not {"//", "/\\"} & {back[:2]}
    if not own or last(call.site, job_id) is not None:  # else it has just ended
        cancel(call.site, job_id)
    return redirect(call, back if own else f"/jobs/{job_id}")
